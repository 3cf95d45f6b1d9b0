"""Merging of handles, which combines two shapes, and relaxing, which keeps their common part."""

from __future__ import annotations

from graphcore.errors import InvalidArgumentError
from graphcore.inference.dimensions import DimensionArithmetic
from graphcore.inference.handles import UNKNOWN, DimensionHandle, ShapeHandle, checked_rank

DimPair = tuple[DimensionHandle, DimensionHandle]
ShapePair = tuple[ShapeHandle, ShapeHandle]


class Merging(DimensionArithmetic):
    """Rank and size requirements, merging, relaxing. Merges are recorded as equalities of unknowns."""

    __slots__ = ("_merged_dims", "_merged_shapes")

    _merged_dims: list[DimPair] | None
    _merged_shapes: list[ShapePair] | None

    @property
    def merged_dims(self) -> tuple[DimPair, ...]:
        """The pairs of different dimensions, at least one of them unknown, that were merged."""
        return tuple(self._merged_dims or ())

    @property
    def merged_shapes(self) -> tuple[ShapePair, ...]:
        """The pairs of different shapes that were merged; if the result is a new shape, also (first, result)."""
        return tuple(self._merged_shapes or ())

    def forget_merges(self) -> None:
        """Discard the records after the inputs changed, since the equalities may no longer hold."""
        self._merged_dims = None
        self._merged_shapes = None

    def with_rank(self, shape: ShapeHandle, rank: int) -> ShapeHandle:
        """`shape` itself if it has that rank; a fresh shape of unknown dimensions if its rank is unknown.

        Raises:
            InvalidArgumentError: it has another rank, or there are no shapes of that rank.
        """
        dims = shape.dims
        if dims is None:
            return self.merge(shape, ShapeHandle(tuple([DimensionHandle() for _ in range(checked_rank(rank))])))
        if len(dims) != rank:
            raise InvalidArgumentError(f"Shape must be rank {rank} but is rank {len(dims)}")
        return shape

    def with_rank_at_least(self, shape: ShapeHandle, rank: int) -> ShapeHandle:
        """`shape` itself.

        Raises:
            InvalidArgumentError: its rank is known and less.
        """
        if shape.dims is not None and len(shape.dims) < rank:
            raise InvalidArgumentError(f"Shape must be at least rank {rank} but is rank {len(shape.dims)}")
        return shape

    def with_rank_at_most(self, shape: ShapeHandle, rank: int) -> ShapeHandle:
        """`shape` itself.

        Raises:
            InvalidArgumentError: its rank is known and greater.
        """
        if shape.dims is not None and len(shape.dims) > rank:
            raise InvalidArgumentError(f"Shape must be at most rank {rank} but is rank {len(shape.dims)}")
        return shape

    def with_value(self, dim: DimensionHandle, value: int) -> DimensionHandle:
        """`dim` itself if it has that size, a new dimension if its size is unknown.

        Raises:
            InvalidArgumentError: it has another size.
        """
        if dim.value == value:
            return dim
        if dim.value == UNKNOWN:
            return self.merge_dim(dim, self.make_dim(value))
        raise InvalidArgumentError(f"Dimension must be {value} but is {dim.value}")

    def merge_dim(self, first: DimensionHandle, second: DimensionHandle) -> DimensionHandle:
        """The known dimension of the two; `first` if both or neither are known.

        Raises:
            InvalidArgumentError: both sizes are known and differ.
        """
        if first is second:
            return first
        a, b = first.value, second.value
        if a < 0 or b < 0:
            if self._merged_dims is None:
                self._merged_dims = []
            self._merged_dims.append((first, second))
            return first if b == UNKNOWN else second
        if a == b:
            return first
        raise InvalidArgumentError(f"Dimensions must be equal, but are {a} and {b}")

    def merge(self, first: ShapeHandle, second: ShapeHandle) -> ShapeHandle:
        """The combination of both shapes: one of them if it implies the other, else a new shape.

        Raises:
            InvalidArgumentError: known ranks or sizes differ.
        """
        if first is second:
            return first
        dims0, dims1 = first.dims, second.dims
        if dims0 is None or dims1 is None:
            self._record(first, second)
            return second if dims0 is None and dims1 is not None else first
        if len(dims0) != len(dims1):
            raise InvalidArgumentError(f"Shapes must be equal rank, but are {len(dims0)} and {len(dims1)}")
        return_first = return_second = True
        for i, dim0 in enumerate(dims0):
            a, b = dim0.value, dims1[i].value
            if a == b:
                continue
            if a == UNKNOWN:
                return_first = False
            elif b == UNKNOWN:
                return_second = False
            else:
                raise InvalidArgumentError(
                    f"Dimension {i} in both shapes must be equal, but are {a} and {b}. Shapes are {first} and {second}."
                )
        self._record(first, second)
        if return_first or return_second:
            return first if return_first else second
        merged = ShapeHandle(tuple([self.merge_dim(a, b) for a, b in zip(dims0, dims1, strict=True)]))
        self._record(first, merged)
        return merged

    def merge_prefix(self, shape: ShapeHandle, prefix: ShapeHandle) -> tuple[ShapeHandle, ShapeHandle]:
        """Merge `prefix` with the leading dimensions of `shape`; both unchanged if either rank is unknown.

        Returns:
            the refined shape and the refined prefix.

        Raises:
            InvalidArgumentError: the shape is shorter than the prefix, or sizes differ.
        """
        if shape.dims is None or prefix.dims is None:
            return shape, prefix
        rank = len(prefix.dims)
        self.with_rank_at_least(shape, rank)
        dims = tuple([self.merge_dim(a, b) for a, b in zip(shape.dims, prefix.dims, strict=False)])
        return ShapeHandle(dims + shape.dims[rank:]), ShapeHandle(dims)

    def relax_dim(self, old: DimensionHandle, new: DimensionHandle) -> DimensionHandle:
        """Relax `old` to agree with `new`: their common part, `old` itself if nothing changes."""
        if old is new:
            return old
        if new.value == UNKNOWN:
            self.forget_merges()
            return new
        if old.value == new.value:
            return old
        self.forget_merges()
        return DimensionHandle()

    def relax(self, old: ShapeHandle, new: ShapeHandle) -> ShapeHandle:
        """Relax `old` to agree with `new`: their common part, `old` itself if nothing changes."""
        if old is new:
            return old
        dims0, dims1 = old.dims, new.dims
        if dims1 is None:
            self.forget_merges()
            return new
        if dims0 is None or len(dims0) != len(dims1):
            self.forget_merges()
            return ShapeHandle()
        if all(a is b or (a.value == b.value and a.value != UNKNOWN) for a, b in zip(dims0, dims1, strict=True)):
            return old
        relaxed = tuple([self.relax_dim(a, b) for a, b in zip(dims0, dims1, strict=True)])
        self.forget_merges()
        return ShapeHandle(relaxed)

    def _record(self, first: ShapeHandle, second: ShapeHandle) -> None:
        if self._merged_shapes is None:
            self._merged_shapes = []
        self._merged_shapes.append((first, second))
