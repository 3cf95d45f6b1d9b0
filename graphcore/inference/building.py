"""Construction of shapes from parts, concatenations, replacements and sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from graphcore.attrs import Array
from graphcore.dtypes import as_dtype
from graphcore.errors import InvalidArgumentError
from graphcore.inference.dimensions import DimensionOrConstant
from graphcore.inference.handles import UNKNOWN, DimensionHandle, ShapeHandle, checked_rank, shape_of_sizes, shape_to_handle
from graphcore.inference.merging import Merging
from graphcore.shapes import Shape, validate_sizes

END: Final = 2**63 - 1
"""The end of any shape, whatever its rank."""


class ShapeBuilding(Merging):
    """New handles from old ones. Dimensions are shared, never copied."""

    __slots__ = ()

    def rank(self, shape: ShapeHandle) -> int:
        """The number of dimensions, -1 if unknown."""
        return UNKNOWN if shape.dims is None else len(shape.dims)

    def rank_known(self, shape: ShapeHandle) -> bool:
        """True iff the rank is known."""
        return shape.dims is not None

    def fully_defined(self, shape: ShapeHandle) -> bool:
        """True iff the rank and every size are known."""
        return shape.dims is not None and all(dim.value != UNKNOWN for dim in shape.dims)

    def dim(self, shape: ShapeHandle, index: int) -> DimensionHandle:
        """Dimension `index` (negative ones count from the end); a new unknown one if the rank is unknown.

        Raises:
            InvalidArgumentError: there is no such dimension.
        """
        if shape.dims is None:
            return DimensionHandle()
        try:
            return shape.dims[index]
        except IndexError:
            raise InvalidArgumentError(f"Out of range dim_index {index} for shape with {len(shape.dims)} dimensions") from None

    def num_elements(self, shape: ShapeHandle) -> DimensionHandle:
        """The number of elements; an existing dimension of size 0 is returned unchanged.

        Raises:
            InvalidArgumentError: the number does not fit int64.
        """
        if shape.dims is None:
            return DimensionHandle()
        is_known, product = True, DimensionHandle(1)
        for dim in shape.dims:
            if dim.value == 0:
                return dim
            if dim.value == UNKNOWN:
                is_known = False
            else:
                product = self.make_dim(self.multiply(product, dim.value))
        return self.make_dim(product.value) if is_known else DimensionHandle()

    def make_shape(self, dims: Iterable[DimensionOrConstant]) -> ShapeHandle:
        """A new shape of these dimensions (ints and None make new ones)."""
        return ShapeHandle(tuple([self.make_dim(dim) for dim in dims]))

    def unknown_shape(self) -> ShapeHandle:
        """A new shape of unknown rank."""
        return ShapeHandle()

    def unknown_shape_of_rank(self, rank: int) -> ShapeHandle:
        """A new shape of `rank` unknown dimensions; of unknown rank if `rank` is -1.

        Raises:
            InvalidArgumentError: no shape has so many dimensions.
        """
        if rank < 0:
            return ShapeHandle()
        return ShapeHandle(tuple([DimensionHandle() for _ in range(checked_rank(rank))]))

    def scalar(self) -> ShapeHandle:
        """A new shape of rank 0."""
        return ShapeHandle(())

    def vector(self, size: DimensionOrConstant) -> ShapeHandle:
        """A new shape of rank 1."""
        return ShapeHandle((self.make_dim(size),))

    def matrix(self, rows: DimensionOrConstant, columns: DimensionOrConstant) -> ShapeHandle:
        """A new shape of rank 2."""
        return ShapeHandle((self.make_dim(rows), self.make_dim(columns)))

    def subshape(self, shape: ShapeHandle, start: int, end: int | None = None, stride: int = 1) -> ShapeHandle:
        """The dimensions from `start` up to `end` (default: all that follow) in steps of `stride`.

        Negative positions count from the end, positions beyond the rank are clamped. If nothing is cut off, `shape` itself is returned.

        Raises:
            InvalidArgumentError: a position before the first dimension, or start and end in the wrong order.
        """
        end_in = END if end is None else end
        if shape.dims is None:
            return shape if start == 0 and stride == 1 and end_in == END else ShapeHandle()
        rank = len(shape.dims)
        if start == 0 and stride == 1 and end_in >= rank:
            return shape
        first, last = min(start, rank), min(end_in, rank)
        if stride < 0 and first == rank:
            first -= 1
        if first < 0:
            first += rank
            if first < 0:
                raise InvalidArgumentError(f"Subshape start out of bounds: {start}, for shape with rank {rank}")
        if last < 0:
            last += rank
            if last < 0:
                raise InvalidArgumentError(f"Subshape end out of bounds: {end_in}, for shape with rank {rank}")
        if first != last and (first > last) == (stride > 0):
            required = "start <= end" if stride > 0 else "start >= end since stride is negative"
            raise InvalidArgumentError(
                f"Subshape must have computed {required}, but is {first} and {last} "
                f"(computed from start {start} and end {end_in} over shape with rank {rank})"
            )
        return ShapeHandle(tuple([shape.dims[i] for i in range(first, last, stride)]))

    def concatenate(self, first: ShapeHandle, second: ShapeHandle) -> ShapeHandle:
        """A new shape of the dimensions of both in a row; of unknown rank if either is."""
        if first.dims is None or second.dims is None:
            return ShapeHandle()
        return ShapeHandle(first.dims + second.dims)

    def replace_dim(self, shape: ShapeHandle, index: int, dim: DimensionOrConstant) -> ShapeHandle:
        """A new shape with dimension `index` replaced; of unknown rank if `shape` is.

        A negative index counts from the end.

        Raises:
            InvalidArgumentError: there is no such dimension.
        """
        if shape.dims is None:
            return ShapeHandle()
        rank = len(shape.dims)
        position = index + rank if index < 0 else index
        if not 0 <= position < rank:
            raise InvalidArgumentError(f"Out of range dim_index {index} for shape with {rank} dimensions")
        return ShapeHandle((*shape.dims[:position], self.make_dim(dim), *shape.dims[position + 1 :]))

    def make_shape_from_shape(self, shape: Shape) -> ShapeHandle:
        """A fresh handle for a shape value."""
        return shape_to_handle(shape)

    def make_shape_from_shape_proto(self, sizes: Sequence[int], unknown_rank: bool = False) -> ShapeHandle:
        """A fresh handle for the contents of a TensorShapeProto: sizes, -1 where unknown.

        Raises:
            InvalidArgumentError: sizes below -1, sizes given although the rank is unknown, too many dimensions.
        """
        validate_sizes(sizes, unknown_rank)
        return ShapeHandle() if unknown_rank else shape_of_sizes(sizes)

    def make_shape_from_tensor(self, value: Array | None, shape_of_value: ShapeHandle) -> ShapeHandle:
        """The shape given by a vector of sizes, or by the vector's length if it has no value.

        Raises:
            InvalidArgumentError: no vector, no int32 or int64, too long for a shape, or a size below -1.
        """
        if value is None:
            length = self.with_rank(shape_of_value, 1).dims
            return self.unknown_shape_of_rank(length[0].value if length else UNKNOWN)
        if value.ndim != 1:
            raise InvalidArgumentError(f"Input tensor must be rank 1, but was rank {value.ndim}")
        dtype = as_dtype(value.dtype).text
        if dtype not in {"int32", "int64"}:
            raise InvalidArgumentError(f"Input tensor must be int32 or int64, but was {dtype}")
        checked_rank(value.size)
        sizes: list[int] = value.tolist()
        for size in sizes:
            if size < UNKNOWN:
                raise InvalidArgumentError(f"Invalid value in tensor used for shape: {size}")
        return shape_of_sizes(sizes)
