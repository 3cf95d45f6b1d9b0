"""Convolutions with an empty filter are refused, as in TensorFlow; their gradients are zeros."""

from __future__ import annotations

from collections.abc import Callable

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


@pytest.mark.parametrize(
    ("op", "outputs"), [("Conv2D", lambda shape: shape[3]), ("DepthwiseConv2dNative", lambda shape: shape[2] * shape[3])]
)
@pytest.mark.parametrize("shape", EMPTY)
def test_its_gradients_are_zeros(op: str, outputs: Callable[[tuple[int, ...]], int], shape: tuple[int, ...]) -> None:
    one = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    x, w, dy = np.ones((2, 5, 5, 2), np.float32), np.ones(shape, np.float32), np.ones((2, 5, 5, outputs(shape)), np.float32)
    dx = gc.apply_op(f"{op}BackpropInput", [gc.constant(list(x.shape)), gc.constant(w), gc.constant(dy)], one)
    dw = gc.apply_op(f"{op}BackpropFilter", [gc.constant(x), gc.constant(list(shape)), gc.constant(dy)], one)
    by_input, by_filter = gc.Session().run([dx, dw])
    np.testing.assert_array_equal(by_input, np.zeros((2, 5, 5, 2), np.float32))
    np.testing.assert_array_equal(by_filter, np.zeros(shape, np.float32))


@pytest.mark.parametrize("sizes", [(2, 4, 5, 6), (2, 5, 5, 4)])
@pytest.mark.parametrize("by", ["Input", "Filter"])
def test_a_gradient_of_another_size_than_the_output_is_refused(by: str, sizes: tuple[int, ...]) -> None:
    dy = gc.placeholder(gc.float32, None)
    x, w, shapes = np.ones((2, 5, 5, 2), np.float32), np.ones((3, 3, 2, 3), np.float32), {"Input": [2, 5, 5, 2], "Filter": [3, 3, 2, 3]}
    inputs = [gc.constant(shapes[by]), gc.constant(w)] if by == "Input" else [gc.constant(x), gc.constant(shapes[by])]
    attrs = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    gradient = gc.apply_op(f"DepthwiseConv2dNativeBackprop{by}", [*inputs, dy], attrs, name="features")
    with pytest.raises(gc.errors.InvalidArgumentError, match=r"features.*gradient of the output must have"):
        gc.Session().run(gradient, {dy: np.ones(sizes, np.float32)})
