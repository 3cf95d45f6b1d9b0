"""Arithmetic on dimensions: the base layer of the inference context."""

from __future__ import annotations

from typing import Final

from graphcore.errors import InvalidArgumentError
from graphcore.inference.handles import UNKNOWN, DimensionHandle

DimensionOrConstant = DimensionHandle | int | None
"""A dimension, or a size for a new one (-1 or None: unknown)."""
INT64_MAX: Final = 2**63 - 1


def overflow(first: int, second: int) -> InvalidArgumentError:
    """The error of a product that does not fit int64."""
    return InvalidArgumentError(f"Negative dimension size caused by overflow when multiplying {first} and {second}")


class DimensionArithmetic:
    """Sizes that may be unknown. Results share a handle wherever the result is one of the operands."""

    __slots__ = ()

    def make_dim(self, value: DimensionOrConstant) -> DimensionHandle:
        """A new dimension of size `value`; a dimension is returned unchanged."""
        if isinstance(value, DimensionHandle):
            return value
        return DimensionHandle(UNKNOWN if value is None else value)

    def unknown_dim(self) -> DimensionHandle:
        """A new dimension of unknown size."""
        return DimensionHandle()

    def value(self, dim: DimensionOrConstant) -> int:
        """The size, -1 if unknown."""
        if isinstance(dim, DimensionHandle):
            return dim.value
        return UNKNOWN if dim is None else dim

    def value_known(self, dim: DimensionOrConstant) -> bool:
        """True iff the size is known."""
        return self.value(dim) != UNKNOWN

    def add(self, first: DimensionHandle, second: DimensionOrConstant) -> DimensionHandle:
        """The sum; adding 0 gives the other operand itself.

        Raises:
            InvalidArgumentError: the sum does not fit int64.
        """
        a, b = first.value, self.value(second)
        if a == 0:
            return self.make_dim(second)
        if b == 0:
            return first
        if a < 0 or b < 0:
            return DimensionHandle()
        if a + b > INT64_MAX:
            raise InvalidArgumentError(f"Dimension size overflow from adding {a} and {b}")
        return self.make_dim(a + b)

    def subtract(self, first: DimensionHandle, second: DimensionOrConstant) -> DimensionHandle:
        """The difference; subtracting 0 gives `first` itself.

        Raises:
            InvalidArgumentError: the difference is negative.
        """
        a, b = first.value, self.value(second)
        if b == 0:
            return first
        if a < 0 or b < 0:
            return DimensionHandle()
        if a < b:
            raise InvalidArgumentError(f"Negative dimension size caused by subtracting {b} from {a}")
        return self.make_dim(a - b)

    def multiply(self, first: DimensionHandle, second: DimensionOrConstant) -> DimensionHandle:
        """The product; 0 times unknown is 0, and a factor 1 gives the other operand itself.

        Raises:
            InvalidArgumentError: the product does not fit int64.
        """
        a, b = first.value, self.value(second)
        if a == 0 or b == 1:
            return first
        if b == 0 or a == 1:
            return self.make_dim(second)
        if a < 0 or b < 0:
            return DimensionHandle()
        if a * b > INT64_MAX:
            raise overflow(a, b)
        return self.make_dim(a * b)

    def divide(self, dividend: DimensionHandle, divisor: DimensionOrConstant, evenly_divisible: bool) -> DimensionHandle:
        """The quotient, rounded down unless `evenly_divisible`; dividing by 1 returns `dividend` itself.

        Raises:
            InvalidArgumentError: a divisor that is not positive, or a remainder although `evenly_divisible`.
        """
        a, b = dividend.value, self.value(divisor)
        if b == 1:
            return dividend
        if a == UNKNOWN or (b == UNKNOWN and not isinstance(divisor, int)):
            return DimensionHandle()
        if b <= 0:
            raise InvalidArgumentError(f"Divisor must be positive but is {b}")
        if evenly_divisible and a % b:
            raise InvalidArgumentError(f"Dimension size must be evenly divisible by {b} but is {a}")
        return self.make_dim(a // b)

    def min(self, first: DimensionHandle, second: DimensionOrConstant) -> DimensionHandle:
        """The smaller one: 0 if either is 0, unknown if either is unknown, the first if they are equal."""
        a, b = first.value, self.value(second)
        if a == 0:
            return first
        if b == 0:
            return self.make_dim(second)
        if a < 0 or b < 0:
            return DimensionHandle()
        return first if a <= b else self.make_dim(second)

    def max(self, first: DimensionHandle, second: DimensionOrConstant) -> DimensionHandle:
        """The larger one: unknown if either is unknown, the first if they are equal."""
        a, b = first.value, self.value(second)
        if a < 0 or b < 0:
            return DimensionHandle()
        return first if a >= b else self.make_dim(second)
