"""Convolutions with a filter that has no elements: refused, as in TensorFlow; their gradients are zeros."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc

EMPTY = ((0, 3, 2, 4), (3, 0, 2, 4), (3, 3, 2, 0))


@pytest.mark.parametrize("op", ["Conv2D", "DepthwiseConv2dNative"])
@pytest.mark.parametrize("shape", EMPTY)
def test_a_filter_without_elements_is_refused_with_its_shape(op: str, shape: tuple[int, ...]) -> None:
    x, w = gc.placeholder(gc.float32, None), gc.placeholder(gc.float32, None)
    y = gc.apply_op(op, [x, w], {"strides": [1, 1, 1, 1], "padding": "SAME"}, name="features")
    with pytest.raises(gc.errors.InvalidArgumentError, match="filter has no elements") as caught:
        gc.Session().run(y, {x: np.ones((2, 5, 5, 2), np.float32), w: np.ones(shape, np.float32)})
    assert "features" in str(caught.value)
    assert str(list(shape)) in str(caught.value)


@pytest.mark.parametrize("shape", EMPTY)
def test_its_gradients_are_zeros(shape: tuple[int, ...]) -> None:
    one = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    w, dy = np.ones(shape, np.float32), np.ones((2, 5, 5, shape[-1]), np.float32)
    dx = gc.ops.conv2d_backprop_input([2, 5, 5, 2], gc.constant(w), gc.constant(dy), **one)
    dw = gc.ops.conv2d_backprop_filter(gc.constant(np.ones((2, 5, 5, 2), np.float32)), list(shape), gc.constant(dy), **one)
    by_input, by_filter = gc.Session().run([dx, dw])
    np.testing.assert_array_equal(by_input, np.zeros((2, 5, 5, 2), np.float32))
    np.testing.assert_array_equal(by_filter, np.zeros(shape, np.float32))
