"""Settings of layers are compared across frameworks: equal ones are silent, wrong ones are named."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest

import graphcore as gc
from graphcore.difference import GraphDiff
from graphcore.frontends.foreign import ForeignFunction, ForeignGraph, ForeignNode, Port, WeightRef
from graphcore.frontends.lowering import lower

Settings = dict[str, Any]
BOTH = {"stride": 2, "low": 0, "high": 1, "epsilon": 1e-3, "dilation": 1}
FIRST, LAST = (1, 4, 4, 4), (1, 4, 4, 4)
NUMBERS = "ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))"


def node(name: str, op: str, inputs: str, sizes: tuple[int, ...], **attrs: Any) -> ForeignNode:
    refs = tuple([(one, 0) for one in inputs.split()])
    return ForeignNode(name, op, refs, (Port("", "float32", sizes),), attrs=attrs)


def weight(name: str, op: str, *sizes: int) -> ForeignNode:
    return ForeignNode(name, op, outputs=(Port("", "float32", sizes),), kind="parameter", weight=WeightRef("float32", sizes))


def network(kind: str, entry: tuple[int, ...], nodes: list[ForeignNode]) -> gc.Graph:
    first = ForeignNode("x", f"{kind}.Input", outputs=(Port("", "float32", entry),), kind="input")
    return lower(ForeignGraph(kind, ForeignFunction("main", outputs=((nodes[-1].name, 0),), nodes=[first, *nodes])))


def onnx(s: Settings) -> gc.Graph:
    pads, pair = [s["low"]] * 2 + [s["high"]] * 2, [s["stride"]] * 2
    nodes = [
        weight("w", "onnx.Initializer", 4, 3, 3, 3),
        node("conv", "onnx.Conv", "x w", (1, 4, 4, 4), strides=pair, pads=pads, dilations=[s["dilation"]] * 2, group=1),
        node("bn", "onnx.BatchNormalization", "conv", (1, 4, 4, 4), epsilon=s["epsilon"]),
        node("pool", "onnx.MaxPool", "bn", (1, 4, 2, 2), kernel_shape=[2, 2], strides=[2, 2]),
        node("soft", "onnx.Softmax", "pool", (1, 4, 2, 2), axis=1),
    ]
    return network("onnx", (1, 3, 8, 8), nodes)


def torch(s: Settings) -> gc.Graph:
    """PyTorch pads both sides: windows with a stride of 2 do not reach the right one of 8."""
    nodes = [
        weight("w", "torch.Parameter", 4, 3, 3, 3),
        node(
            "conv2d",
            "torch.conv2d",
            "x w",
            (1, 4, 4, 4),
            **{"argument 3": [s["stride"]] * 2, "argument 4": [s["low"]] * 2, "argument 5": [s["dilation"]] * 2, "argument 6": 1},
        ),
        node("batch_norm", "torch.nn.functional.batch_norm", "conv2d", (1, 4, 4, 4), **{"argument 7": s["epsilon"]}),
        node("max_pool2d", "torch.nn.functional.max_pool2d", "batch_norm", (1, 4, 2, 2), **{"argument 1": 2}),
        node("softmax", "torch.softmax", "max_pool2d", (1, 4, 2, 2), **{"argument 1": 1}),
    ]
    return network("torch", (1, 3, 8, 8), nodes)


def keras(s: Settings) -> gc.Graph:
    same = "same" if s["high"] else "valid"
    nodes = [
        weight("w", "keras.Variable", 3, 3, 3, 4),
        node(
            "conv2d",
            "keras.Conv2D",
            "x w",
            (1, 4, 4, 4),
            strides=[s["stride"]] * 2,
            padding=same,
            kernel_size=[3, 3],
            dilation_rate=[s["dilation"]] * 2,
            data_format="channels_last",
            groups=1,
        ),
        node("bn", "keras.BatchNormalization", "conv2d", (1, 4, 4, 4), epsilon=s["epsilon"], axis=-1),
        node(
            "pool", "keras.MaxPooling2D", "bn", (1, 2, 2, 4), pool_size=[2, 2], strides=[2, 2], padding="valid", data_format="channels_last"
        ),
        node("soft", "keras.Softmax", "pool", (1, 2, 2, 4), axis=-1),
    ]
    return network("keras", (1, 8, 8, 3), nodes)


def tflite(s: Settings) -> gc.Graph:
    size, gap = s["stride"], s["dilation"]
    nodes = [
        weight("w", "tfl.Constant", 4, 3, 3, 3),
        node(
            "conv",
            "tfl.CONV_2D",
            "x w",
            (1, 4, 4, 4),
            stride_h=size,
            stride_w=size,
            padding="SAME" if s["high"] else "VALID",
            dilation_h_factor=gap,
            dilation_w_factor=gap,
        ),
        node("pool", "tfl.MAX_POOL_2D", "conv", (1, 2, 2, 4), stride_h=2, stride_w=2, filter_height=2, filter_width=2, padding="VALID"),
        node("soft", "tfl.SOFTMAX", "pool", (1, 2, 2, 4), beta=1.0),
    ]
    return network("tfl", (1, 8, 8, 3), nodes)


def jax(s: Settings) -> gc.Graph:
    pads, none = [[s["low"], s["high"]]] * 2, [[0, 0]] * 4
    nodes = [
        weight("w", "jax.constant", 3, 3, 3, 4),
        node(
            "conv_general_dilated",
            "jax.conv_general_dilated",
            "x w",
            (1, 4, 4, 4),
            window_strides=[s["stride"]] * 2,
            padding=pads,
            rhs_dilation=[s["dilation"]] * 2,
            dimension_numbers=NUMBERS,
            feature_group_count=1,
        ),
        node(
            "reduce_window_max",
            "jax.reduce_window_max",
            "conv_general_dilated",
            (1, 2, 2, 4),
            window_dimensions=[1, 2, 2, 1],
            window_strides=[1, 2, 2, 1],
            padding=none,
        ),
    ]
    return network("jax", (1, 8, 8, 3), nodes)


FRAMEWORKS: dict[str, Callable[[Settings], gc.Graph]] = {"onnx": onnx, "torch": torch, "keras": keras, "tflite": tflite, "jax": jax}
WITH_EPSILON = ("onnx", "torch", "keras")


def settings_named(diff: GraphDiff) -> list[str]:
    return [str(part) for change in diff.changed.values() for part in change.of_kind("attr")]


@pytest.mark.parametrize(("first", "second"), [pair for pair in permutations(FRAMEWORKS, 2) if "torch" not in pair])
def test_equal_settings_are_silent(first: str, second: str) -> None:
    diff = gc.graph_diff(FRAMEWORKS[first](BOTH), FRAMEWORKS[second](BOTH))
    assert settings_named(diff) == []
    assert len([name for name in diff.pairs if not name.startswith("w")]) >= 3


@pytest.mark.parametrize(("first", "second"), [pair for pair in permutations(FRAMEWORKS, 2) if "torch" not in pair])
def test_a_wrong_setting_is_named(first: str, second: str) -> None:
    a = FRAMEWORKS[first](BOTH)

    def named(**other: Any) -> list[str]:
        return settings_named(gc.graph_diff(a, FRAMEWORKS[second]({**BOTH, **other})))

    assert named(stride=1)[0] == "strides: [2, 2] → [1, 1]"
    assert "dilations: [1, 1] → [2, 2]" in named(dilation=2)
    assert named(high=0) == ["padding: [[0, 1], [0, 1]] → [[0, 0], [0, 0]]"]
    if first in WITH_EPSILON and second in WITH_EPSILON:
        assert named(epsilon=1e-5) == ["epsilon: 0.001 → 1e-05"]
        assert named(epsilon=1e-3 * (1 + 1e-7)) == []


def test_padding_that_no_window_reaches_is_the_same() -> None:
    """PyTorch pads both sides; a window of 3 with a stride of 2 reaches only the left padding of 8."""
    both = {**BOTH, "low": 1, "high": 0}
    assert settings_named(gc.graph_diff(torch(both), onnx(both))) == []
    assert settings_named(gc.graph_diff(torch(both), onnx({**both, "high": 1}))) == []
    assert settings_named(gc.graph_diff(torch(both), onnx(BOTH))) == ["padding: [[1, 1], [1, 1]] → [[0, 1], [0, 1]]"]


def test_a_setting_that_one_framework_does_not_state_is_left_out() -> None:
    diff = gc.graph_diff(tflite(BOTH), onnx({**BOTH, "epsilon": 1.0}))
    assert settings_named(diff) == []


def test_an_axis_is_compared_by_its_size_where_layouts_differ() -> None:
    wrong = keras(BOTH)
    (soft,) = [one for one in wrong.op_nodes() if one.name == "soft"]
    wrong.set_attr(soft, "axis", 1)
    assert settings_named(gc.graph_diff(onnx(BOTH), wrong)) == ["axis: 1 (of 4) → 1 (of 2)"]
