"""Incomplete gamma and beta functions, and what builds on them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.opset.numerics import incomplete_gamma

tf: Any = gc


@pytest.fixture(autouse=True)
def _new_graph() -> Any:
    with gc.Graph().as_default():
        yield


def run(value: Any) -> Any:
    with gc.Session() as session:
        return session.run(value)


def test_the_incomplete_gamma_function_of_whole_shapes_is_a_poisson_sum() -> None:
    for shape in (1, 2, 5, 30):
        for x in (0.01, 0.9, 3.0, 29.0, 80.0):
            above = sum(math.exp(-x + n * math.log(x) - math.lgamma(n + 1)) for n in range(shape))
            lower, upper = run([tf.igamma(*[gc.constant(float(each), gc.float64) for each in (shape, x)]), tf.igammac(float(shape), x)])
            np.testing.assert_allclose(lower, 1 - above, rtol=1e-11, atol=1e-14)
            np.testing.assert_allclose(upper, above, rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("shape", [9_000, 20_000, 1_000_000])
def test_the_incomplete_gamma_function_of_large_shapes_is_exact_near_the_shape(shape: int) -> None:
    below, above, x = [], [], shape + np.array([-6.0, -1.0, 0.0, 0.5, 3.0, 6.0, 20.0]) * shape**0.5
    terms = np.arange(shape - 60 * math.isqrt(shape), shape + 60 * math.isqrt(shape))  # the others are nothing beside these
    for each in x:
        logarithms = np.cumsum(np.log(each / terms))
        weights = np.exp(logarithms - logarithms.max())
        above.append(weights[terms < shape].sum() / weights.sum())
        below.append(weights[terms >= shape].sum() / weights.sum())
    lower, upper = run([function(gc.constant(float(shape), gc.float64), gc.constant(x)) for function in (tf.igamma, tf.igammac)])
    np.testing.assert_allclose(lower, below, rtol=1e-9)
    np.testing.assert_allclose(upper, above, rtol=1e-9)


@pytest.mark.parametrize("shape", [9_000.0, 20_000.0, 1e6, 1e9])
def test_the_derivatives_at_large_shapes_are_exact_near_the_shape(shape: float) -> None:
    x = shape + np.array([-6.0, -1.0, 0.0, 0.5, 3.0]) * shape**0.5
    step = shape**0.5 / 1000
    # The errors of the difference fall with the fourth power of the step.
    at = [run(tf.igamma(gc.constant(shape + by * step, gc.float64), gc.constant(x))) for by in (-2, -1, 1, 2)]
    difference = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * step)
    slope, sample_slope = run(
        [gc.apply_op(op, [gc.constant(shape, gc.float64), gc.constant(x)]) for op in ("IgammaGradA", "RandomGammaGrad")]
    )
    np.testing.assert_allclose(slope, difference, rtol=1e-8, atol=1e-12 / step)
    # The quantiles are a + z sqrt(a) + (z^2 - 1) / 3 + ..., z of the normal distribution; the next parts are smaller than the tolerance.
    z = (x - shape) / shape**0.5
    np.testing.assert_allclose(sample_slope, 1 + z / (2 * shape**0.5), atol=20 / shape)


def test_the_ends_of_the_ranges() -> None:
    most = np.finfo(np.float64).max
    a = gc.constant([1.0, 1.0, 1.0, 0.0, 1.0, np.inf, 1.5, most, 0.0, np.inf], gc.float64)
    x = gc.constant([0.0, np.inf, -1.0, 1.0, np.nan, 1.0, 1e300, most, 0.0, np.inf], gc.float64)
    np.testing.assert_array_equal(run(tf.igamma(a, x)), [0.0, 1.0, np.nan, np.nan, np.nan, 0.0, 1.0, 0.5, np.nan, np.nan])
    np.testing.assert_array_equal(run(tf.igammac(a, x)), [1.0, 0.0, np.nan, np.nan, np.nan, 1.0, 0.0, 0.5, np.nan, np.nan])
    b = gc.constant(2.0, gc.float64)
    np.testing.assert_allclose(run(tf.betainc(b, b, gc.constant([0.0, 0.5, 1.0, 1.5], gc.float64))), [0.0, 0.5, 1.0, np.nan])


def test_the_incomplete_functions_have_gradients() -> None:
    a, x = gc.constant([[0.5], [2.0], [30.0]], gc.float64), gc.constant([0.25, 1.5, 28.0, 45.0], gc.float64)
    for function in (tf.igamma, tf.igammac):
        assert gc.check_gradient(function(a, x), [a, x])
    part = gc.constant([0.1, 0.7], gc.float64)
    assert gc.check_gradient(tf.betainc(gc.constant(2.0, gc.float64), gc.constant(3.5, gc.float64), part), [part])
    assert gc.gradients(tf.betainc(a[0, 0], a[1, 0], part), a) == [None]


def test_a_drawn_number_moves_with_the_shape_of_its_distribution_so_that_its_rank_stays() -> None:
    alpha = gc.constant([0.5, 2.0, 10.0], gc.float64)
    drawn = tf.random_gamma([4], alpha, seed=1, dtype=gc.float64)
    (gradient,) = gc.gradients(drawn[0], alpha)
    sample = gc.placeholder(gc.float64, [3])
    with gc.Session() as session:
        numbers, slope = session.run([drawn, gradient])
        below = tf.igamma(alpha, sample)
        by_alpha, by_sample = session.run(gc.gradients(below, [alpha, sample]), {sample: numbers[0]})
    np.testing.assert_allclose(slope, -by_alpha / by_sample, rtol=1e-8)
    assert (slope > 0).all()


def test_a_fraction_ends_when_each_of_its_elements_has_settled_once() -> None:
    """The last bits of some elements change for ever, those of others at other steps."""
    steps = 0

    class CountingNumPy:
        def __getattr__(self, name: str) -> Any:
            nonlocal steps
            steps += 1
            return getattr(np, name)

    shapes, x = np.array([[0.5], [2.0], [10.0]]), np.array([0.25, 1.5, 12.0])
    with np.errstate(divide="ignore"):
        alone = [[incomplete_gamma.igammac(np, shape, each) for each in x] for shape in shapes[:, 0]]
        np.testing.assert_allclose(incomplete_gamma.igammac(CountingNumPy(), shapes, x), alone, rtol=1e-14)
    assert steps < 1000
