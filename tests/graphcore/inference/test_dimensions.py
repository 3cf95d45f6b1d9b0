"""Arithmetic on dimensions."""

from __future__ import annotations

import pytest

from graphcore.errors import InvalidArgumentError
from graphcore.inference import (
    DimensionHandle,
)
from tests.support.shape_rows import context

BIG = 9223372036854775802


def dim(size: int | None = None) -> DimensionHandle:
    return DimensionHandle(-1 if size is None else size)


def test_division_keeps_the_handle_when_dividing_by_one() -> None:
    c = context("")
    six, unknown = dim(6), dim()
    assert c.divide(six, 1, evenly_divisible=True) is six
    assert c.divide(unknown, 1, evenly_divisible=True) is unknown
    made = c.divide(unknown, 2, evenly_divisible=True)
    assert made.value == -1
    assert made is not unknown
    assert c.divide(six, 2, evenly_divisible=True).value == 3
    assert c.divide(six, 4, evenly_divisible=False).value == 1
    assert c.divide(six, dim(), evenly_divisible=False).value == -1
    with pytest.raises(InvalidArgumentError, match=r"^Dimension size must be evenly divisible by 5 but is 6$"):
        c.divide(six, 5, evenly_divisible=True)
    for divisor in (0, -1):
        with pytest.raises(InvalidArgumentError, match=f"^Divisor must be positive but is {divisor}$"):
            c.divide(six, divisor, evenly_divisible=False)


def test_addition_keeps_the_handle_when_adding_zero() -> None:
    c = context("")
    six, zero, unknown = dim(6), dim(0), dim()
    assert c.add(six, 0) is six
    assert c.add(zero, six) is six
    assert c.add(unknown, zero) is unknown
    assert c.add(zero, unknown) is unknown
    made = c.add(unknown, 5)
    assert made.value == -1
    assert made is not unknown
    assert c.add(six, 5).value == 11
    assert c.add(six, 2**63 - 7).value == 2**63 - 1
    with pytest.raises(InvalidArgumentError, match=f"^Dimension size overflow from adding 6 and {BIG}$"):
        c.add(six, BIG)


def test_subtraction_keeps_the_handle_when_subtracting_zero() -> None:
    c = context("")
    five, unknown = dim(5), dim()
    assert c.subtract(five, 0) is five
    assert c.subtract(unknown, dim(0)) is unknown
    assert c.subtract(unknown, 3).value == -1
    assert c.subtract(five, unknown).value == -1
    assert c.subtract(five, 3).value == 2
    assert c.subtract(five, 5).value == 0
    with pytest.raises(InvalidArgumentError, match=r"^Negative dimension size caused by subtracting 6 from 5$"):
        c.subtract(five, 6)


def test_multiplication_by_zero_and_one_is_simplified() -> None:
    c = context("")
    six, zero, one, unknown = dim(6), dim(0), dim(1), dim()
    assert c.multiply(unknown, 0).value == 0
    assert c.multiply(zero, unknown) is zero
    assert c.multiply(unknown, zero) is zero
    assert c.multiply(unknown, 1) is unknown
    assert c.multiply(one, unknown) is unknown
    made = c.multiply(unknown, 5)
    assert made.value == -1
    assert made is not unknown
    assert c.multiply(six, 5).value == 30
    with pytest.raises(InvalidArgumentError, match="overflow when multiplying 6 and"):
        c.multiply(six, BIG)


def test_the_minimum_with_zero_is_zero() -> None:
    c = context("")
    six, zero, unknown = dim(6), dim(0), dim()
    assert c.min(zero, unknown) is zero
    assert c.min(unknown, zero) is zero
    assert c.min(unknown, 0).value == 0
    assert c.min(unknown, 5).value == -1
    assert c.min(six, dim(6)) is six
    assert c.min(six, 5).value == 5
    assert c.min(dim(5), six).value == 5


def test_the_maximum_with_unknown_is_unknown() -> None:
    c = context("")
    six, unknown = dim(6), dim()
    assert c.max(unknown, 0).value == -1
    assert c.max(six, unknown).value == -1
    assert c.max(six, dim(6)) is six
    assert c.max(six, 5) is six
    assert c.max(six, 7).value == 7
