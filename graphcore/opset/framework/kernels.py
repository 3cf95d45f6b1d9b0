"""Kernel factories for op blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from graphcore.attrs import Array, Attrs
from graphcore.dtypes import string
from graphcore.errors import InvalidArgumentError, UnimplementedError
from graphcore.kernel_context import KernelContext
from graphcore.registry import Kernel, KernelFactory
from graphcore.traits import MostBytes, declares_traits

_AS_METHOD: Final = {"maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any"}
_AT_ON_DEVICES: Final = {"add": "iIlLqQefd", "maximum": "iIfd", "minimum": "iIfd"}
"""The type codes for which CuPy's ufuncs have the method `at`."""
_BYTES_OF_STRING: Final = 48
"""The bytes of a string beside its content."""
_LARGE: Final = 4096
_LONG_RUN: Final = 64
_MOST_REPEATED: Final = 1 << 16
_MOST_ROWS: Final = 16
_ELEMENTWISE: Final = declares_traits(elementwise=True, pure=True, can_fail=False, memory="fresh", reuses_input=True)
_SAME_WIDTH: Final = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def ufunc(name: str) -> KernelFactory:
    """A kernel that is the array module's own function `name`, without a wrapper."""

    @_ELEMENTWISE
    def kernel(k: KernelContext) -> Kernel:
        operation: Kernel = getattr(k.xp, name)
        return operation

    return kernel


def _bytes_of_sums(_attrs: Attrs, inputs: Sequence[Array]) -> int | None:
    """The most bytes of strings joined as numbers are added; None for numbers."""
    first, second = inputs
    if first.dtype != object:
        return None
    count = max(first.size, second.size) if first.shape == second.shape else first.size * second.size
    longest = [max([len(text) for text in value.reshape(-1).tolist()], default=0) for value in inputs]
    return count * (sum(longest) + _BYTES_OF_STRING)


def joining_ufunc(name: str) -> KernelFactory:
    """Like `ufunc`, but for strings too: of two scalar strings the array module gives no array."""

    @declares_traits(most_bytes=_bytes_of_sums)
    @_ELEMENTWISE
    def kernel(k: KernelContext) -> Kernel:
        operation: Kernel = getattr(k.xp, name)

        def joined(x: Any, y: Any, out: Any = None) -> Any:
            del out
            return np.asarray(operation(x, y), object)

        return joined if k.attr("T") is string else operation

    return kernel


def floating_ufunc(name: str) -> KernelFactory:
    """Like `ufunc`, but integer inputs are refused as in TensorFlow (the array module returns doubles)."""

    @_ELEMENTWISE
    def kernel(k: KernelContext) -> Kernel:
        dtype = k.output_types[0]
        if not (dtype.is_floating or dtype.is_complex):
            raise UnimplementedError(
                f"{k.op} needs a floating point or complex type, got {dtype.text}", op=k.op, node=k.node_name, source=k.source
            )
        operation: Kernel = getattr(k.xp, name)
        return operation

    return kernel


def in_proportion(times: int) -> MostBytes:
    """The trait `most_bytes` of an op whose outputs take no more than `times` the bytes of its inputs."""

    def most_bytes(_attrs: Attrs, inputs: Sequence[Array]) -> int:
        return times * sum([value.nbytes for value in inputs])

    return most_bytes


def with_number(xp: Any, name: str, number: Any) -> Kernel:
    """`getattr(xp, name)(x, number)` as a function of x.

    In NumPy a maximum of an array and a number is several times slower than that of two arrays, so the number is repeated along the last
    dimensions.
    """
    operation: Kernel = getattr(xp, name)
    rows: dict[tuple[int, ...], Array] = {}

    def call(x: Any) -> Any:
        tail = _tail(x.shape) if x.size >= _LARGE else ()
        row = rows.get(tail) if tail else number
        if row is None:
            if len(rows) >= _MOST_ROWS:
                rows.clear()
            row = rows[tail] = np.full(tail, number, number.dtype)
        return operation(x, row)

    return call if xp is np else lambda x: operation(x, number)


def into_itself(xp: Any, name: str) -> Kernel:
    """`getattr(xp, name)(x)` for an array x that nothing else needs, in its memory where that is faster."""
    operation: Kernel = getattr(xp, name)
    return (lambda x: operation(x, x) if x.shape else operation(x)) if xp is np else operation


def _tail(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shortest suffix of dimensions with many elements, () if that is too large."""
    size = 1
    for axis in range(len(shape) - 1, 0, -1):
        size *= shape[axis]
        if size >= _LONG_RUN:
            return shape[axis:] if size <= _MOST_REPEATED else ()
    return ()


@declares_traits(can_fail=False, memory="alias")
def pass_through(_k: KernelContext) -> Kernel:
    """Return the value itself: values are never changed in place, so no copy is needed."""
    return _first


def _first(x: Array) -> Array:
    return x


def constant_ints(k: KernelContext, index: int) -> tuple[int, ...] | None:
    """Input `index` as ints if it is the same in every run, else None; a scalar is one int."""
    value = k.constant(index)
    return None if value is None else ints(value)


def ints(value: Any) -> tuple[int, ...]:
    """The elements of an integer array (on any device) or scalar as Python ints."""
    return tuple(value.reshape(-1).tolist())


def constant_int(k: KernelContext, index: int) -> int | None:
    """The single element of input `index` if it is the same in every run, else None.

    Raises:
        InvalidArgumentError: it has not exactly one element.
    """
    value = k.constant(index)
    return None if value is None else one_int(k, value)


def one_int(k: KernelContext, value: Any) -> int:
    """The single element of an integer array or scalar.

    Raises:
        InvalidArgumentError: it has not exactly one element.
    """
    if value.size != 1:
        raise invalid(k, f"required one integer, got a tensor of shape {list(value.shape)}")
    return int(value.item())


def float_attr(k: KernelContext, name: str) -> float:
    """The value of float attr `name`.

    Raises:
        InvalidArgumentError: it is not a number.
    """
    value = k.attr(name)
    if not isinstance(value, int | float):
        raise invalid(k, f"attr '{name}' must be a number, got {value!r}")
    return float(value)


def invalid(k: KernelContext, text: str) -> InvalidArgumentError:
    """An error that names the node."""
    return InvalidArgumentError(f"{k.op} node '{k.node_name}': {text}", op=k.op, node=k.node_name, source=k.source)


def unimplemented(k: KernelContext, text: str) -> UnimplementedError:
    """An unimplemented feature of the op (in TensorFlow too), as an error that names the node."""
    return UnimplementedError(f"{k.op} node '{k.node_name}': {text}", op=k.op, node=k.node_name, source=k.source)


def normal_axis(k: KernelContext, axis: int, rank: int) -> int:
    """The `axis` counted from the front.

    Raises:
        InvalidArgumentError: there is no such axis.
    """
    if not -rank <= axis < rank:
        raise invalid(k, f"required an axis in [{-rank}, {rank}), got {axis}")
    return axis + rank if axis < 0 else axis


def masked(xp: Any, values: Any, mask: Any) -> Any:
    """The values where `mask` is true, else 0.

    Computed on bits, several times faster than `where` for irregular masks.
    """
    kind = _SAME_WIDTH.get(values.dtype.itemsize)
    if kind is None:
        return xp.where(mask, values, values.dtype.type(0))
    bits = mask.astype(kind)
    xp.negative(bits, bits)
    bits &= values.view(kind)
    return bits.view(values.dtype)


def narrow(dtype: np.dtype[Any]) -> bool:
    """True for the 16-bit floats, with sums and products computed in float32 as in TensorFlow."""
    return dtype.itemsize == 2 and dtype.kind in "fV"


def on_host(value: Any) -> Any:
    """A value as a NumPy array, from any device."""
    return value.get() if hasattr(value, "get") else np.asarray(value)


def reduction(xp: Any, name: str) -> Any:
    """The reduction by ufunc `name`, called as `reduce(x, axis, dtype, out, keepdims)`.

    NumPy's is the method of the ufunc, the fastest; other array modules have some reductions only as methods of their arrays.
    """
    if xp is np or name not in _AS_METHOD:
        return getattr(xp, name).reduce
    method = _AS_METHOD[name]

    def reduce(x: Any, axis: Any = 0, _dtype: Any = None, _out: Any = None, keepdims: bool = False) -> Any:
        return getattr(x, method)(axis=axis, keepdims=keepdims)

    return reduce


def combining_at(xp: Any, name: str) -> Any:
    """An in-place combination by ufunc `name`, called as `at(result, places, values)`.

    `places` are rows, or a tuple of an index array for each of the first dimensions. Repeated ones are combined repeatedly.
    """
    operation = getattr(xp, name)
    if xp is np:
        return operation.at

    def at(result: Any, places: Any, values: Any) -> None:
        code = result.dtype.char
        if name == "subtract" and code in _AT_ON_DEVICES["add"]:
            xp.add.at(result, places, -values)
        elif code not in _AT_ON_DEVICES.get(name, ""):
            _combine_in_rounds(xp, operation, result, places, values)
        elif name == "add" or code not in "fd":
            operation.at(result, places, values)
        else:
            _extremes_at(xp, operation, result, places, values)

    return at


def _extremes_at(xp: Any, operation: Any, result: Any, places: Any, values: Any) -> None:
    """Combine floats by a maximum or minimum. CuPy's `at` ignores NaN, NumPy's gives it."""
    was_nan = xp.isnan(result)
    operation.at(result, places, values)
    xp.add.at(result, places, xp.where(xp.isnan(values), values, -0.0).astype(result.dtype, copy=False))
    result[was_nan] = np.nan


def _combine_in_rounds(xp: Any, operation: Any, result: Any, places: Any, values: Any) -> None:
    """Combine each place once in a round, as long as there are any."""
    depth = len(places) if isinstance(places, tuple) else 1
    rest = result.shape[depth:]
    if isinstance(places, tuple):
        rows = xp.zeros(values.shape[: values.ndim - len(rest)], np.int64)
        for size, part in zip(result.shape, places, strict=False):
            rows = rows * size + part
    else:
        rows = places
    rows, flat = rows.reshape(-1), result.reshape(-1, *rest)
    values = xp.broadcast_to(values, (rows.size, *rest)) if values.ndim == 0 else values.reshape(-1, *rest)
    order = rows.argsort()
    sorted_rows = rows[order]
    while sorted_rows.size:
        first = xp.ones(sorted_rows.shape, bool)
        first[1:] = sorted_rows[1:] != sorted_rows[:-1]
        now = sorted_rows[first]
        flat[now] = operation(flat[now], values[order[first]])
        sorted_rows, order = sorted_rows[~first], order[~first]
