"""Sizes of dimensions with TensorFlow 1's methods, and numbers that may be called as its methods are."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, Self

from graphcore.errors import InvalidArgumentError

_UNKNOWN: Final = -1


class Dimension(int):
    """One size of a shape: an int with a `value`, which is None for an unknown size.

    An unknown size is -1 where a number is wanted, as in the sizes of a reshape, and sums with it are unknown. It equals None.

    Args:
        value: a size; None for an unknown one.
    """

    def __new__(cls, value: int | None) -> Self:
        """A size of `value`."""
        return super().__new__(cls, _UNKNOWN if value is None else value)

    @property
    def value(self) -> int | None:
        """The size, None if unknown."""
        number = int(self)
        return None if number == _UNKNOWN else number

    def is_compatible_with(self, other: object) -> bool:
        """True iff one is unknown or both are the same."""
        there = _value(other)
        return self.value is None or there is None or self.value == there

    def merge_with(self, other: object) -> Dimension:
        """The known one of both.

        Raises:
            InvalidArgumentError: they are incompatible.
        """
        if not self.is_compatible_with(other):
            raise InvalidArgumentError(f"Dimensions {self} and {other} are not compatible")
        return Dimension(_value(other) if self.value is None else self.value)

    def __eq__(self, other: object) -> bool:
        return bool(self.value == _value(other))

    def __ne__(self, other: object) -> bool:
        return bool(self.value != _value(other))

    def __hash__(self) -> int:
        return int.__hash__(self)

    def __repr__(self) -> str:
        return f"Dimension({self.value})"

    def __str__(self) -> str:
        return "?" if self.value is None else str(self.value)

    def __format__(self, form: str) -> str:
        return format(int(self) if form else str(self), form)

    def _with(self, other: Any, compute: Callable[[Any, Any], Any], *, swapped: bool = False) -> Any:
        if not isinstance(other, int | None):
            return NotImplemented
        here, there = self.value, _value(other)
        if here is None or there is None:
            return Dimension(None)
        return Dimension(compute(there, here) if swapped else compute(here, there))

    def __add__(self, other: Any) -> Any:
        return self._with(other, operator.add)

    def __sub__(self, other: Any) -> Any:
        return self._with(other, operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, operator.sub, swapped=True)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, operator.mul)

    def __floordiv__(self, other: Any) -> Any:
        return self._with(other, operator.floordiv)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._with(other, operator.floordiv, swapped=True)

    def __mod__(self, other: Any) -> Any:
        return self._with(other, operator.mod)

    def __rmod__(self, other: Any) -> Any:
        return self._with(other, operator.mod, swapped=True)

    __radd__ = __add__
    __rmul__ = __mul__


def _value(size: Any) -> Any:
    return size.value if isinstance(size, Dimension) else size


class CallableCount(int):
    """A number that may also be called, as TensorFlow's method of the same name is: -1 is None then."""

    def __call__(self) -> int | None:
        """The number, None for -1."""
        return None if self == _UNKNOWN else int(self)


class CallableFlag(int):
    """A truth value that may also be called, as TensorFlow's method of the same name is."""

    def __call__(self) -> bool:
        """The truth value."""
        return bool(self)

    def __repr__(self) -> str:
        return str(bool(self))
