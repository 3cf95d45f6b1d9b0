"""Shapes as values: known, partly known (`[?,3]`) or of unknown rank (`?`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

from graphcore.errors import InvalidArgumentError

MAX_RANK: Final = 254
_INT64_MAX: Final = 2**63 - 1


class Shape:
    """A partial shape: `Shape([None, 3])` is `[?,3]`, `Shape(None)` has unknown rank, `Shape([])` is a scalar.

    Sizes are ints >= 0; None or -1 stands for an unknown size.

    Raises:
        InvalidArgumentError: a size below -1, more than 254 dimensions, or more than int64 elements.
    """

    __slots__ = ("dims",)

    dims: tuple[int | None, ...] | None

    def __init__(self, dims: Iterable[int | None] | int | Shape | None = None) -> None:
        if isinstance(dims, Shape):
            self.dims = dims.dims
            return
        if dims is None:
            self.dims = None
            return
        sizes = (dims,) if isinstance(dims, int) else dims
        self.dims = tuple(_checked_size(size) for size in sizes)
        if len(self.dims) > MAX_RANK:
            raise InvalidArgumentError(f"Too many dimensions: required at most {MAX_RANK}, got {len(self.dims)}")
        if self.num_elements > _INT64_MAX:
            raise InvalidArgumentError(f"Shape {self} has more elements than an int64 can count")

    @property
    def rank(self) -> int | None:
        """The number of dimensions, None if unknown."""
        return None if self.dims is None else len(self.dims)

    @property
    def is_fully_defined(self) -> bool:
        """True iff the rank and every size are known."""
        return self.dims is not None and None not in self.dims

    @property
    def num_elements(self) -> int:
        """The number of elements, -1 unless fully defined."""
        if self.dims is None or None in self.dims:
            return -1
        return math.prod(size for size in self.dims if size is not None)

    def as_list(self) -> list[int | None]:
        """The sizes as a list, None for unknown ones.

        Raises:
            InvalidArgumentError: the rank is unknown.
        """
        if self.dims is None:
            raise InvalidArgumentError("as_list() needs a known rank, but the shape is ?")
        return list(self.dims)

    def is_compatible_with(self, other: Shape) -> bool:
        """True iff some full shape fits both."""
        if self.dims is None or other.dims is None:
            return True
        return len(self.dims) == len(other.dims) and all(
            a is None or b is None or a == b for a, b in zip(self.dims, other.dims, strict=True)
        )

    def is_identical_to(self, other: Shape) -> bool:
        """True iff rank and sizes are the same, unknown ones included."""
        return self.dims == other.dims

    def merge_with(self, other: Shape) -> Shape:
        """The shape that knows what either of the two knows.

        Raises:
            InvalidArgumentError: they are incompatible.
        """
        if not self.is_compatible_with(other):
            raise InvalidArgumentError(f"Incompatible shapes during merge: {self} and {other}")
        if self.dims is None or other.dims is None:
            return other if self.dims is None else self
        return Shape([a if a is not None else b for a, b in zip(self.dims, other.dims, strict=True)])

    def concatenate(self, other: Shape) -> Shape:
        """The dimensions of both in a row; unknown if either rank is."""
        if self.dims is None or other.dims is None:
            return Shape(None)
        return Shape(self.dims + other.dims)

    def __len__(self) -> int:
        return len(self.as_list())

    def __iter__(self) -> Iterator[int | None]:
        return iter(self.as_list())

    def __getitem__(self, index: int) -> int | None:
        return self.as_list()[index]

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


def _checked_size(size: object) -> int | None:
    if size is None:
        return None
    try:
        number = int(size)  # type: ignore[call-overload]  # whatever int() takes, NumPy integers included
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"A size must be an integer >= 0 or None, got {size!r}") from None
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
        raise InvalidArgumentError(f"A shape must be a list of sizes or None, got {value!r}") from None
    return Shape(sizes)
