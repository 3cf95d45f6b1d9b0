"""Handles: immutable shapes and dimensions; identical handles stand for the same unknown size."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from graphcore.dtypes import DType
from graphcore.errors import InvalidArgumentError
from graphcore.shapes import MAX_RANK, Shape

UNKNOWN: Final = -1
"""The value of an unknown dimension and the rank of a shape of unknown rank."""


class DimensionHandle(msgspec.Struct, eq=False, gc=False):
    """One dimension: its size, -1 if unknown. Two unknown dimensions are equal iff they are the same object.

    `origin` may explain the size. It must be plain data (names and numbers, no nodes): the garbage collector does not track handles.
    """

    value: int = UNKNOWN
    origin: object | None = None

    def __str__(self) -> str:
        return "?" if self.value < 0 else str(self.value)


class ShapeHandle(msgspec.Struct, eq=False, gc=False):
    """A shape of known rank (a tuple of dimensions) or of unknown rank (`dims` is None).

    Equality is identity, as for dimensions: a shape of unknown rank is equal to itself only.
    """

    dims: tuple[DimensionHandle, ...] | None = None
    shape: Shape | None = None
    """The same as a value, made by the first `handle_to_shape`."""

    @property
    def rank(self) -> int:
        """The number of dimensions, -1 if unknown."""
        return UNKNOWN if self.dims is None else len(self.dims)

    def __str__(self) -> str:
        if self.dims is None:
            return "?"
        return "[" + ",".join(["?" if dim.value < 0 else str(dim.value) for dim in self.dims]) + "]"

    def __repr__(self) -> str:
        return f"ShapeHandle({self})"


class ShapeAndType(msgspec.Struct, frozen=True, eq=False):
    """The shape and type behind a resource or variant handle; `dtype` None stands for DT_INVALID."""

    shape: ShapeHandle
    dtype: DType | None = None


HandleData = list[ShapeAndType]
"""The shapes and types behind a handle: one entry for most resources, one a component for queues."""


def checked_rank(rank: int) -> int:
    """Return `rank` after checking that shapes of this rank exist.

    Raises:
        InvalidArgumentError: the rank is too large.
    """
    if rank > MAX_RANK:
        raise InvalidArgumentError(f"Too many dimensions: required at most {MAX_RANK}, got {rank}")
    return rank


def handle_to_shape(handle: ShapeHandle) -> Shape:
    """The value of a handle: sizes, None where unknown. Cached on the handle."""
    shape = handle.shape
    if shape is not None:
        return shape
    shape = Shape(None) if handle.dims is None else Shape([dim.value for dim in handle.dims])
    handle.shape = shape
    return shape


def shape_to_handle(shape: Shape) -> ShapeHandle:
    """A fresh handle with fresh dimensions for a value."""
    if shape.dims is None:
        return ShapeHandle(None, shape)
    return ShapeHandle(tuple([DimensionHandle(UNKNOWN if size is None else size) for size in shape.dims]), shape)


def shape_of_sizes(sizes: Iterable[int]) -> ShapeHandle:
    """A fresh handle for sizes, -1 where unknown."""
    return ShapeHandle(tuple([DimensionHandle(size) for size in sizes]))


def is_fully_defined(handle: ShapeHandle) -> bool:
    """True iff the rank and every size are known."""
    if handle.dims is None:
        return False
    for dim in handle.dims:  # noqa: SIM110 - called for every node of a plan; a generator takes three times as long
        if dim.value < 0:
            return False
    return True


def same_defined_shape(a: ShapeHandle, b: ShapeHandle) -> bool:
    """True iff two shapes are known to be equal: the same handle, or equal dimensions."""
    if a is b:
        return True
    if a.dims is None or b.dims is None or len(a.dims) != len(b.dims):
        return False
    for d, e in zip(a.dims, b.dims, strict=True):  # noqa: SIM110 - called as often; a generator takes 1.5 times as long
        if d is not e and (d.value != e.value or d.value < 0):
            return False
    return True


def same_handle_data(first: HandleData | None, second: HandleData | None) -> bool:
    """True iff two lists of handle data are known to be equal: equal lengths, dtypes and shapes."""
    if first is second:
        return True
    if not first or not second:
        return not first and not second
    if len(first) != len(second):
        return False
    return all(a.dtype is b.dtype and same_defined_shape(a.shape, b.shape) for a, b in zip(first, second, strict=True))
