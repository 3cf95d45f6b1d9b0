"""Dilation and erosion, against loops over windows."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError

tf: Any = gc
SIZES: Final = [
    ((2, 5, 6, 2), (2, 3), (1, 1), (1, 1)),
    ((1, 7, 5, 1), (3, 2), (2, 1), (1, 2)),
    ((1, 6, 9, 3), (2, 2), (3, 2), (2, 3)),
    ((1, 4, 4, 1), (4, 4), (1, 1), (1, 1)),
    ((1, 3, 3, 1), (1, 1), (2, 2), (1, 1)),
]


def run(value: Any) -> Any:
    with gc.Session() as session:
        return session.run(value)


@pytest.fixture(autouse=True)
def _new_graph() -> Any:
    with gc.Graph().as_default():
        yield


def by_loops(x: Any, window: Any, strides: Any, rates: Any, padding: str) -> Any:
    """The windows one by one; a window has the pixels that exist."""
    places, before = [], []
    for size, length, stride, rate in zip(x.shape[1:3], window.shape, strides, rates, strict=False):
        reach = (length - 1) * rate + 1
        places.append(-(-size // stride) if padding == "SAME" else (size - reach) // stride + 1)
        before.append(max(0, (places[-1] - 1) * stride + reach - size) // 2 if padding == "SAME" else 0)
    result = np.full((x.shape[0], *places, x.shape[3]), -np.inf)
    for row, column, i, j in np.ndindex(*places, *window.shape[:2]):
        at = row * strides[0] - before[0] + i * rates[0], column * strides[1] - before[1] + j * rates[1]
        if 0 <= at[0] < x.shape[1] and 0 <= at[1] < x.shape[2]:
            result[:, row, column] = np.maximum(result[:, row, column], x[:, at[0], at[1]] + window[i, j])
    return result


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("shape", "size", "strides", "rates"), SIZES)
def test_a_window_gives_its_largest_sum(shape: Any, size: Any, strides: Any, rates: Any, padding: str) -> None:
    random = np.random.default_rng(0)
    x, window = random.normal(size=shape), random.normal(size=(*size, shape[3]))
    given = ([1, *strides, 1], [1, *rates, 1], padding)
    dilated, eroded = run([tf.nn.dilation2d(x, window, *given), tf.nn.erosion2d(x, window, *given)])
    np.testing.assert_array_equal(dilated, by_loops(x, window, strides, rates, padding))
    np.testing.assert_array_equal(eroded, -by_loops(-x, window[::-1, ::-1], strides, rates, padding))


def test_a_flat_function_gives_max_pooling_with_its_gradients() -> None:
    x = gc.constant(np.random.default_rng(1).normal(size=(2, 6, 5, 3)))
    pooled = tf.nn.max_pool(x, [1, 3, 2, 1], [1, 2, 1, 1], "SAME")
    dilated = tf.nn.dilation2d(x, filters=np.zeros((3, 2, 3)), strides=[1, 2, 1, 1], dilations=[1, 1, 1, 1], padding="SAME")
    (first, second), gradients = run([(pooled, dilated), (*gc.gradients(pooled, x), *gc.gradients(dilated, x))])
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(*gradients)


def test_of_equal_sums_the_first_one_has_the_gradient() -> None:
    x, window = gc.zeros([1, 2, 3, 1]), gc.zeros([2, 2, 1])
    by_x, by_window = run(gc.gradients(tf.nn.dilation2d(x, window, [1, 1, 1, 1], [1, 1, 1, 1], "VALID"), [x, window]))
    assert by_x[0, :, :, 0].tolist() == [[1, 1, 0], [0, 0, 0]]
    assert by_window[:, :, 0].tolist() == [[2, 0], [0, 0]]


def test_what_is_no_number_does_not_count() -> None:
    x = np.array([-np.inf, np.nan, np.nan, 1], np.float32).reshape(1, 1, 4, 1)
    found = run(tf.nn.dilation2d(x, np.zeros((1, 2, 1), np.float32), [1, 1, 1, 1], [1, 1, 1, 1], "VALID"))
    lowest = float(np.finfo(np.float32).min)
    assert found.reshape(-1).tolist() == [lowest, lowest, 1.0]


def test_integers_are_added_in_their_type() -> None:
    found = run(tf.nn.dilation2d(np.full((1, 1, 1, 1), 100, np.int8), np.full((1, 1, 1), 100, np.int8), [1, 1, 1, 1], [1, 1, 1, 1], "SAME"))
    assert (found.dtype, found.item()) == (np.int8, -56)


@pytest.mark.parametrize(
    ("strides", "rates", "shape", "text"),
    [
        ([2, 1, 1, 1], [1, 1, 1, 1], (2, 2, 1), r"'strides' must be \[1, rows, columns, 1\] with positive numbers, got \[2, 1, 1, 1\]"),
        ([1, 1, 1, 1], [1, 1, 1, 2], (2, 2, 1), r"'rates' must be \[1, rows, columns, 1\] with positive numbers"),
        ([1, 1, 1, 1, 1], [1, 1, 1, 1], (2, 2, 1), "Dilation2D requires the stride attribute to contain 4 values, but got: 5"),
        ([1, 1, 1, 1], [1, 0, 1, 1], (2, 2, 1), "Dilation rate must be >= 1, but got 0"),
        ([1, 1, 1, 1], [1, 1, 1, 1], (2, 2, 3), "Dimensions must be equal, but are 1 and 3"),
        ([1, 1, 1, 1], [1, 1, 1, 1], (5, 2, 1), "Negative dimension size caused by subtracting 5 from 3"),
    ],
)
def test_what_does_not_fit_is_refused(strides: list[int], rates: list[int], shape: Any, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        run(tf.nn.dilation2d(gc.zeros([1, 3, 3, 1]), gc.zeros(shape), strides, rates, "VALID"))
