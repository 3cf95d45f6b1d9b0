"""Shapes as values: known, partly known (`[?,3]`) or of unknown rank (`?`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, overload

from graphcore.brief import brief
from graphcore.dimension import CallableCount, CallableFlag, Dimension
from graphcore.errors import InvalidArgumentError

MAX_RANK: Final = 254
_INT64_MAX: Final = 2**63 - 1


class Shape:
    """A shape, possibly partial: `Shape([None, 3])` is `[?,3]`, `Shape(None)` has unknown rank.

    `Shape([])` is a scalar's. Sizes are ints >= 0; None or -1 stands for an unknown size.

    Raises:
        InvalidArgumentError: a size below -1, more than 254 dimensions, or more than int64 elements.
    """

    __slots__ = ("_names", "dims")

    dims: tuple[int | None, ...] | None
    _names: tuple[str, ...]

    def __init__(self, dims: Iterable[int | None] | int | Shape | None = None) -> None:
        if isinstance(dims, Shape):
            self.dims = dims.dims
            return
        if dims is None:
            self.dims = None
            return
        sizes = (dims,) if isinstance(dims, int) else dims
        self.dims = tuple([_checked_size(size) for size in sizes])
        if len(self.dims) > MAX_RANK:
            raise InvalidArgumentError(f"Too many dimensions: required at most {MAX_RANK}, got {len(self.dims)}")
        if self.num_elements > _INT64_MAX:
            raise InvalidArgumentError(f"Shape {self} has more elements than an int64 can count")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the dimensions in the file that the shape was read from; () if it names none.

        An unnamed dimension has the name "". Names are kept so that they can be written again. They do not affect sizes: shapes that differ
        in names only are equal.
        """
        return getattr(self, "_names", ())  # the slot is left empty, since few shapes have names

    def with_names(self, names: tuple[str, ...]) -> Shape:
        """A copy with named dimensions, one name a dimension.

        Raises:
            InvalidArgumentError: the number of names is not the rank, or the rank is unknown.
        """
        if len(names) != len(self):
            raise InvalidArgumentError(f"Shape {self} has {len(self)} dimensions, got {len(names)} names for them: {', '.join(names)}")
        named = Shape(self)
        named._names = names
        return named

    @property
    def rank(self) -> int | None:
        """The number of dimensions, None if unknown."""
        return None if self.dims is None else len(self.dims)

    @property
    def ndims(self) -> int | None:
        """The number of dimensions, None if unknown (TF1's name)."""
        return self.rank

    @property
    def is_fully_defined(self) -> CallableFlag:
        """True iff the rank and every size are known; `is_fully_defined()` is the same."""
        return _YES if self.dims is not None and None not in self.dims else _NO

    @property
    def num_elements(self) -> CallableCount:
        """The number of elements, -1 unless fully defined; `num_elements()` gives None then."""
        if self.dims is None or None in self.dims:
            return _UNCOUNTED
        return CallableCount(math.prod(self.dims))  # type: ignore[arg-type]  # None is not among them

    def with_rank(self, rank: int) -> Shape:
        """This shape with a known rank.

        Raises:
            InvalidArgumentError: it has another rank.
        """
        if self.dims is None:
            return Shape([None] * rank)
        if len(self.dims) != rank:
            raise InvalidArgumentError(f"Shape {self} must have rank {rank}")
        return self

    def with_rank_at_least(self, rank: int) -> Shape:
        """This shape, which must have this rank or a higher one, if it is known.

        Raises:
            InvalidArgumentError: it has a lower rank.
        """
        if self.rank is not None and self.rank < rank:
            raise InvalidArgumentError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> Shape:
        """This shape, which must have this rank or a lower one, if it is known.

        Raises:
            InvalidArgumentError: it has a higher rank.
        """
        if self.rank is not None and self.rank > rank:
            raise InvalidArgumentError(f"Shape {self} must have rank at most {rank}")
        return self

    def assert_has_rank(self, rank: int) -> None:
        """Raise an error for another known rank.

        Raises:
            InvalidArgumentError: it has another rank.
        """
        if self.rank not in {None, rank}:
            raise InvalidArgumentError(f"Shape {self} must have rank {rank}")

    def assert_is_compatible_with(self, other: object) -> None:
        """Raise an error unless some full shape fits both.

        Raises:
            InvalidArgumentError: none does.
        """
        if not self.is_compatible_with(as_shape(other)):
            raise InvalidArgumentError(f"Shapes {self} and {as_shape(other)} are incompatible")

    def as_list(self) -> list[int | None]:
        """The sizes as a list, None for unknown ones.

        Raises:
            InvalidArgumentError: the rank is unknown.
        """
        if self.dims is None:
            raise InvalidArgumentError("as_list() needs a known rank, but the shape is ?")
        return list(self.dims)

    def is_compatible_with(self, other: object) -> bool:
        """True iff some full shape fits both."""
        other = as_shape(other)
        if self.dims is None or other.dims is None:
            return True
        return len(self.dims) == len(other.dims) and all(
            a is None or b is None or a == b for a, b in zip(self.dims, other.dims, strict=True)
        )

    def is_identical_to(self, other: Shape) -> bool:
        """True iff rank and sizes are the same, unknown ones included."""
        return self.dims == other.dims

    def merge_with(self, other: object) -> Shape:
        """The most specific shape implied by both.

        Raises:
            InvalidArgumentError: they are incompatible.
        """
        other = as_shape(other)
        if not self.is_compatible_with(other):
            raise InvalidArgumentError(f"Incompatible shapes during merge: {self} and {other}")
        if self.dims is None or other.dims is None:
            return other if self.dims is None else self
        return Shape([a if a is not None else b for a, b in zip(self.dims, other.dims, strict=True)])

    def concatenate(self, other: Shape | Iterable[int | None] | int | None) -> Shape:
        """The dimensions of both in a row; unknown if either rank is. An int (-1, None: unknown) is one dimension."""
        if not isinstance(other, Shape):
            other = Shape([other]) if other is None or isinstance(other, int) else Shape(other)
        if self.dims is None or other.dims is None:
            return Shape(None)
        return Shape(self.dims + other.dims)

    def as_tensor_shape(self) -> Shape:
        """This shape, which must be full.

        Raises:
            InvalidArgumentError: the rank or a size is unknown.
        """
        if not self.is_fully_defined:
            raise InvalidArgumentError(f"Shape {self} is not fully defined")
        return self

    def set_dim(self, index: int, size: int | None) -> Shape:
        """A copy with dimension `index` (negative ones count from the end) of another size.

        Raises:
            InvalidArgumentError: the rank is unknown, there is no such dimension, or the result is no valid shape.
        """
        sizes = self.as_list()
        if not -len(sizes) <= index < len(sizes):
            raise InvalidArgumentError(f"Out of range dimension {index} for shape {self} of {len(sizes)} dimensions")
        sizes[index] = size
        return Shape(sizes)

    def remove_dim_range(self, begin: int, end: int) -> Shape:
        """A copy without the dimensions from `begin` up to `end`; negative ones count as index + rank + 1.

        `begin` >= `end` removes nothing.

        Raises:
            InvalidArgumentError: the rank is unknown, or a position lies outside the shape.
        """
        sizes = self.as_list()
        rank = len(sizes)
        first, last = (i + rank + 1 if i < 0 else i for i in (begin, end))
        if not (0 <= first <= rank and 0 <= last <= rank):
            raise InvalidArgumentError(f"Out of range dimensions {begin} to {end} for shape {self} of {rank} dimensions")
        return Shape(sizes[:first] + sizes[last:]) if first < last else self

    def __len__(self) -> int:
        return len(self.as_list())

    def __iter__(self) -> Iterator[Dimension]:
        return iter([Dimension(size) for size in self.as_list()])

    @overload
    def __getitem__(self, index: int) -> Dimension: ...

    @overload
    def __getitem__(self, index: slice) -> Shape: ...

    def __getitem__(self, index: int | slice) -> Dimension | Shape:
        if isinstance(index, slice):
            return Shape(None if self.dims is None else self.dims[index])
        return Dimension(None if self.dims is None else self.dims[index])

    def __bool__(self) -> bool:
        """True iff the rank is known, as in TensorFlow 1."""
        return self.dims is not None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Shape):
            return self.dims == other.dims
        if isinstance(other, list | tuple):
            return self.dims == tuple(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.dims)

    def __str__(self) -> str:
        if self.dims is None:
            return "?"
        return "[" + ",".join("?" if size is None else str(size) for size in self.dims) + "]"

    def __repr__(self) -> str:
        return f"Shape({None if self.dims is None else list(self.dims)})"


def validate_sizes(sizes: Sequence[int], unknown_rank: bool = False, *, full: bool = False) -> None:
    """Validate the contents of a TensorShapeProto, with -1 for an unknown size.

    Args:
        sizes: the sizes of the dimensions, empty if the rank is unknown.
        unknown_rank: True for an unknown rank.
        full: require that every size is known.

    Raises:
        InvalidArgumentError: sizes of an unknown rank, sizes that are too low, too many dimensions or elements.
    """
    if unknown_rank:
        if sizes:
            raise InvalidArgumentError("An unknown shape must not have any dimensions set.")
        if full:
            raise InvalidArgumentError("Shape ? is not fully defined")
        return
    text = "[" + ",".join(["?" if size == -1 else str(size) for size in sizes]) + "]"
    if any(size < -1 for size in sizes):
        raise InvalidArgumentError(f"Shape {text} has dimensions with values below -1 (where -1 means unknown)")
    if full and -1 in sizes:
        raise InvalidArgumentError(f"Shape {text} is not fully defined")
    if len(sizes) > MAX_RANK:
        raise InvalidArgumentError(f"Shape {text} has too many dimensions: required at most {MAX_RANK}, got {len(sizes)}")
    if -1 not in sizes and math.prod(sizes) > _INT64_MAX:
        raise InvalidArgumentError(f"Shape {text} has more elements than an int64 can count")


def is_valid_shape(sizes: Sequence[int], unknown_rank: bool = False, *, full: bool = False) -> bool:
    """True iff `validate_sizes` accepts the shape."""
    try:
        validate_sizes(sizes, unknown_rank, full=full)
    except InvalidArgumentError:
        return False
    return True


_YES: Final = CallableFlag(True)
_NO: Final = CallableFlag(False)
_UNCOUNTED: Final = CallableCount(-1)


def _checked_size(size: object) -> int | None:
    if size is None:
        return None
    try:
        number = int(size)  # type: ignore[call-overload]  # any type that int() accepts, NumPy integers included
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"A size must be an integer >= 0 or None, got {brief(size)}") from None
    if number < -1:
        raise InvalidArgumentError(f"A size must be an integer >= 0 or None, got {number}")
    return None if number == -1 else number


def as_shape(value: object) -> Shape:
    """Turn a Shape, a list or tuple of sizes, one size, or None into a Shape.

    Raises:
        InvalidArgumentError: it is none of these.
    """
    if isinstance(value, Shape):
        return value
    if value is None or isinstance(value, int):
        return Shape(value)
    try:
        sizes = list(value)  # type: ignore[call-overload]  # anything iterable; the rest is refused below
    except TypeError:
        raise InvalidArgumentError(f"A shape must be a list of sizes or None, got {brief(value)}") from None
    return Shape(sizes)
