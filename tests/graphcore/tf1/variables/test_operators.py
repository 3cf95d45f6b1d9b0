"""Each operator of a tensor works on a variable, of either kind and on either side."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc

NUMBERS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow]
ORDERS = [operator.lt, operator.le, operator.gt, operator.ge]
BOOLS = [operator.and_, operator.or_, operator.xor]


def value_of(build: Callable[[], gc.Tensor]) -> Any:
    with gc.Session() as session:
        made = build()
        session.run(gc.global_variables_initializer())
        return session.run(made)


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("binary", [*NUMBERS, *ORDERS, *BOOLS, operator.matmul], ids=lambda binary: binary.__name__)
def test_a_variable_stands_on_both_sides_of_an_operator(binary: Callable[[Any, Any], Any], use_resource: bool) -> None:
    left, right = np.array([[7.0, 2.0], [3.0, 5.0]]), np.array([[2.0, 3.0], [4.0, 1.0]])
    if binary in BOOLS:
        left, right = left > 4, right > 2
    expected = binary(left, right)
    assert np.array_equal(value_of(lambda: binary(gc.Variable(left, use_resource=use_resource), right)), expected)
    assert np.array_equal(value_of(lambda: binary(left, gc.Variable(right, use_resource=use_resource))), expected)
    assert np.array_equal(value_of(lambda: binary(gc.constant(left), gc.Variable(right, use_resource=use_resource))), expected)
    assert np.array_equal(value_of(lambda: binary(left, gc.constant(right))), expected)


@pytest.mark.parametrize("use_resource", [False, True])
def test_unary_operators_take_a_variable(use_resource: bool) -> None:
    number, truth = gc.Variable([1.0, -2.0], use_resource=use_resource), gc.Variable([True, False], use_resource=use_resource)
    assert value_of(lambda: -number).tolist() == [-1, 2]
    assert value_of(lambda: abs(number)).tolist() == [1, 2]
    assert value_of(lambda: ~truth).tolist() == [False, True]
