"""Gradients at points where a derivative is infinite or a factor is zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc

tf: Any = gc

SINGULAR: list[tuple[Callable[[Any], Any], list[float]]] = [
    (gc.sqrt, [0.0, 0.25]),
    (tf.rsqrt, [0.0, -0.0625]),
    (tf.reciprocal, [0.0, -0.0625]),
    (tf.ops.inv, [0.0, -0.0625]),
]


@pytest.mark.parametrize("dtype", [gc.float16, gc.float32, gc.float64, gc.complex64])
@pytest.mark.parametrize(("function", "expected"), SINGULAR)
def test_where_nothing_arrives_the_gradient_is_zero_even_where_the_derivative_is_infinite(
    function: Callable[[Any], Any], expected: list[float], dtype: gc.DType
) -> None:
    with gc.Graph().as_default(), gc.Session() as session:
        x = gc.cast(gc.constant([0.0, 4.0]), dtype)
        y = function(x)
        masked = gc.where(gc.constant([False, True]), y, gc.zeros_like(y))
        (weighted,) = gc.gradients(y, x, grad_ys=gc.cast(gc.constant([0.0, 1.0]), dtype))
        (behind,) = gc.gradients(masked, x)
        for found in session.run([weighted, behind]):
            np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_functions_have_the_same_gradients() -> None:
    @gc.function
    def root(x: Any) -> Any:
        return gc.square(gc.sqrt(x))

    with gc.Graph().as_default(), gc.Session() as session:
        x = gc.constant(0.0)
        assert session.run(gc.gradients(root(x), x)[0]) == 0.0
