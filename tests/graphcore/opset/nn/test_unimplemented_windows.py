"""Windows that are defined but not implemented are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import UnimplementedError

IMAGE, VOLUME = np.ones((2, 6, 6, 4), np.float32), np.ones((2, 4, 4, 4, 4), np.float32)


def run(op: str, inputs: list[Any], **attrs: Any) -> Any:
    graph = gc.Graph()
    node = graph.apply_op(op, inputs, {"padding": "VALID", **attrs}, "window")
    return gc.Session(graph=graph).run(node.outputs[0])


@pytest.mark.parametrize("name", ["strides", "dilations"])
@pytest.mark.parametrize("sizes", [[2, 1, 1, 1], [1, 1, 1, 2]])
@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        ("Conv2D", [IMAGE, np.ones((2, 2, 4, 3), np.float32)]),
        ("DepthwiseConv2dNative", [IMAGE, np.ones((2, 2, 4, 3), np.float32)]),
        ("Conv2DBackpropInput", [np.array([2, 6, 6, 4], np.int32), np.ones((2, 2, 4, 3), np.float32), np.ones((2, 5, 5, 3), np.float32)]),
        ("Conv2DBackpropFilter", [IMAGE, np.array([2, 2, 4, 3], np.int32), np.ones((2, 5, 5, 3), np.float32)]),
    ],
)
def test_a_convolution_steps_along_space_only(op: str, inputs: list[Any], sizes: list[int], name: str) -> None:
    with pytest.raises(UnimplementedError, match=rf"'window'.*{name} of 1 along batch and channels") as caught:
        run(op, inputs, **{"strides": [1, 1, 1, 1], name: sizes})
    assert caught.value.node == "window"
    assert "test_unimplemented_windows.py" in str(caught.value.source)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("op", ["MaxPool", "AvgPool"])
@pytest.mark.parametrize(("ksize", "strides"), [([2, 1, 1, 1], [1, 1, 1, 1]), ([1, 2, 2, 1], [2, 1, 1, 1])])
def test_pooling_leaves_the_batch_alone(op: str, ksize: list[int], strides: list[int], data_format: str) -> None:
    with pytest.raises(UnimplementedError, match="along the batch"):
        run(op, [IMAGE], ksize=ksize, strides=strides, data_format=data_format)


@pytest.mark.parametrize("op", ["MaxPool3D", "AvgPool3D"])
@pytest.mark.parametrize("ksize", [[2, 1, 1, 1, 1], [1, 1, 1, 1, 2]])
def test_pooling_of_volumes_is_along_space(op: str, ksize: list[int]) -> None:
    with pytest.raises(UnimplementedError, match=r"along the (batch|channels)"):
        run(op, [VOLUME], ksize=ksize, strides=[1, 1, 1, 1, 1])


@pytest.mark.parametrize(
    ("op", "ksize", "strides", "what"),
    [
        ("AvgPool", [1, 1, 1, 2], [1, 1, 1, 2], "of 1 along the channels"),
        ("MaxPool", [1, 1, 1, 2], [1, 1, 1, 1], "strides as long as they are"),
        ("MaxPool", [1, 2, 2, 2], [1, 1, 1, 2], "along space, or along the channels"),
        ("MaxPool", [1, 1, 1, 3], [1, 1, 1, 3], "that fill them"),
    ],
)
def test_pooling_along_the_channels_is_of_maxima_and_of_channels_apart(op: str, ksize: list[int], strides: list[int], what: str) -> None:
    with pytest.raises(UnimplementedError, match=what):
        run(op, [IMAGE], ksize=ksize, strides=strides)


def test_pooling_along_the_channels_in_both_formats() -> None:
    x = np.arange(2 * 3 * 3 * 4, dtype=np.float32).reshape(2, 3, 3, 4)[..., ::-1]
    want = x.reshape(2, 3, 3, 2, 2).max(-1)
    np.testing.assert_array_equal(run("MaxPool", [x], ksize=[1, 1, 1, 2], strides=[1, 1, 1, 2]), want)
    got = run("MaxPool", [x.transpose(0, 3, 1, 2)], ksize=[1, 2, 1, 1], strides=[1, 2, 1, 1], data_format="NCHW")
    np.testing.assert_array_equal(got, want.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("op", ["Transpose", "ConjugateTranspose"])
def test_a_permutation_may_count_from_the_back(op: str) -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    perm = gc.placeholder(gc.int32, [3])
    known, fed = (gc.get_default_graph().apply_op(op, [x, p]).outputs[0] for p in (np.array([-1, 0, 1], np.int32), perm))
    assert known.shape.as_list() == [4, 2, 3]
    for got in gc.Session().run([known, fed], {perm: [-1, 0, 1]}):
        np.testing.assert_array_equal(got, x.transpose(2, 0, 1))
