"""Shape functions of ops that make arrays from numbers: Range, LinSpace, Fill, OneHot."""

from __future__ import annotations

import math

from graphcore.attrs import Array
from graphcore.errors import InvalidArgumentError
from graphcore.inference.context import InferenceContext
from graphcore.inference.handles import UNKNOWN, ShapeHandle


def _scalars(c: InferenceContext, names: tuple[str, ...]) -> None:
    for i, name in enumerate(names):
        try:
            c.with_rank(c.input(i), 0)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{error.message}\n\t for '{name}'", input=name) from error


def range_shape(c: InferenceContext) -> None:
    """`start: []  limit: []  delta: [] -> [number of steps]`."""
    _scalars(c, ("start", "limit", "delta"))
    start, limit, delta = c.input_tensor(0), c.input_tensor(1), c.input_tensor(2)
    if start is None or limit is None or delta is None:
        c.set_output(0, c.vector(UNKNOWN))
        return
    c.set_output(0, c.vector(range_size(start, limit, delta)))


def range_size(start: Array, limit: Array, delta: Array) -> int:
    """The number of elements of a range between three scalar arrays.

    Raises:
        InvalidArgumentError: delta is 0 or leads away from limit.
    """
    if delta > 0 and start > limit:
        raise InvalidArgumentError(f"Requires start <= limit: {_number(start)}/{_number(limit)}")
    if delta < 0 and start < limit:
        raise InvalidArgumentError(f"Requires start >= limit when delta < 0: {_number(start)}/{_number(limit)}")
    if delta == 0:
        raise InvalidArgumentError("Requires delta != 0")
    if delta.dtype.kind in "iu":
        return int(-(-abs(int(limit) - int(start)) // abs(int(delta))))
    # Computed in the type's precision, as the kernel does: 0.3 / 0.1 is 3 in single precision and more than 3 in double.
    return math.ceil(abs(float((limit - start) / delta)))


def _number(value: Array) -> str:
    return str(int(value)) if value.dtype.kind in "iu" else f"{float(value):g}"


def linspace_shape(c: InferenceContext) -> None:
    """`start: []  stop: []  num: [] -> [num]`."""
    _scalars(c, ("start", "stop", "num"))
    value = c.input_tensor(2)
    if value is None:
        c.set_output(0, c.vector(UNKNOWN))
        return
    if int(value) <= 0:
        raise InvalidArgumentError(f"Requires num > 0: {int(value)}")
    c.set_output(0, c.vector(int(value)))


def fill_shape(c: InferenceContext) -> None:
    """`dims: [rank]  value: []`: the shape given by dims."""
    c.with_rank(c.input(0), 1)
    c.with_rank(c.input(1), 0)
    value = c.input_tensor(0)
    if value is not None and value.size and int(value.min()) < 0:
        raise InvalidArgumentError("Fill dimensions must be >= 0")
    c.set_output(0, c.make_shape_from_shape_tensor(0))


def one_hot_shape(c: InferenceContext) -> None:
    """`indices  depth: []`: a new dimension of size depth at attr `axis` (-1: last)."""
    axis = c.int_attr("axis")
    if axis < -1:
        raise InvalidArgumentError("axis must be >= -1")
    depth = c.make_dim_for_scalar_input(1)
    indices = c.input(0).dims
    if indices is None:
        c.set_output(0, c.unknown_shape())
        return
    position = axis % (len(indices) + 1)
    c.set_output(0, ShapeHandle((*indices[:position], depth, *indices[position:])))


def random_shape(c: InferenceContext, index: int = 0) -> None:
    """The shape given by the value of input `index` (random ops)."""
    c.set_output(0, c.make_shape_from_shape_tensor(index))
