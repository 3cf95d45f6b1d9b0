"""`gc.compare_runs` names the first tensor in which two runs differ."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.api.tensor_comparison import compare_tensors
from graphcore.errors import FailedPreconditionError, InvalidArgumentError
from tests.graphcore.difference.test_across_frameworks import WEIGHTS, lite, middle, model, op, plain, slim
from widgets import add_overlay, to_outline

onnx: Any = pytest.importorskip("onnx")
X = np.random.default_rng(1).normal(size=(1, 3, 8, 8)).astype(np.float32)


def compared(first: Any, second: Any, **options: Any) -> gc.TensorComparison:
    return compare_tensors(("a", "b"), ("A", "B"), np.asarray(first), np.asarray(second), options.get("rtol"), options.get("atol"))


def test_fused_nodes_are_compared_by_their_last_values() -> None:
    comparison = gc.compare_runs(plain(), slim(), X)
    assert not comparison
    assert comparison.first is None
    pairs = {tensor.name: tensor.other for tensor in comparison.tensors}
    assert pairs["bn/BatchNormalization"] == "conv/Conv"
    assert pairs["fc/Add"] == "fc/Gemm"
    assert "conv/Conv" not in pairs
    assert str(comparison).startswith(f"All {len(pairs)} common tensors agree")


def perceptron(*, weight_scale: float = 0.0, fused: bool = False) -> Any:
    """Two products of matrices and a Relu between them.

    With a scale of the first weights they are products of integers, and `fused` the Relu is a part of the first.
    """
    helper, array = onnx.helper, onnx.numpy_helper.from_array
    weights = [np.random.default_rng(seed).uniform(-1, 1, (8, 8)).astype(np.float32) for seed in (3, 4)]
    if not weight_scale:
        nodes = [("MatMul", ["x", "w0"], "h"), ("Relu", ["h"], "r"), ("MatMul", ["r", "w1"], "y")]
        held = [array(weight, f"w{place}") for place, weight in enumerate(weights)]
    else:
        scales = {"xs": 0.03, "w0s": weight_scale, "w1s": 1 / 127, "hs": 0.06, "rs": 0.03, "ys": 0.1}
        zeros = {"xz": np.uint8(128), "wz": np.int8(0), "hz": np.uint8(128), "rz": np.uint8(0)}
        held = [array(np.float32(scale), name) for name, scale in scales.items()] + [
            array(np.array(zero), name) for name, zero in zeros.items()
        ]
        held += [array(np.round(weight * 127).astype(np.int8), f"w{place}") for place, weight in enumerate(weights)]
        nodes = [
            ("QuantizeLinear", ["x", "xs", "xz"], "xq"),
            ("QLinearMatMul", ["xq", "xs", "xz", "w0", "w0s", "wz", "hs", "hz"], "hq"),
            ("DequantizeLinear", ["hq", "hs", "hz"], "h"),
            ("Relu", ["h"], "r"),
            ("QuantizeLinear", ["r", "rs", "rz"], "rq"),
            ("QLinearMatMul", ["rq", "rs", "rz", "w1", "w1s", "wz", "ys", "hz"], "yq"),
            ("DequantizeLinear", ["yq", "ys", "hz"], "y"),
        ]
        if fused:
            nodes[1:5] = [("QLinearMatMul", ["xq", "xs", "xz", "w0", "w0s", "wz", "rs", "rz"], "rq")]
    names = {"rq": "h"} if fused else {}
    made = [
        helper.make_node(op, inputs, [output], name=f"node_{names.get(output, output.removesuffix('q'))}") for op, inputs, output in nodes
    ]
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 8]) for name in "xy"]
    return helper.make_model(
        helper.make_graph(made, "g", ends[:1], ends[1:], held), opset_imports=[helper.make_opsetid("", 21)], ir_version=10
    )


@pytest.mark.parametrize("fused", [False, True], ids=["alone", "fused"])
@pytest.mark.parametrize("scale", [1 / 127, 2 / 127], ids=["right", "off by 2"])
def test_integers_of_a_quantised_model_are_compared_as_the_numbers_that_they_stand_for(scale: float, fused: bool) -> None:
    x = np.random.default_rng(5).uniform(-3, 3, (2, 8)).astype(np.float32)
    plain_model, quantised = perceptron(), perceptron(weight_scale=scale, fused=fused)
    place = None if scale < 0.01 else "node_r" if fused else "node_h"
    for comparison in (gc.compare_runs(plain_model, quantised, x), gc.compare_runs(quantised, plain_model, x)):
        named = None if comparison.first is None else {comparison.first.name, comparison.first.other}
        assert (named is None) == (place is None), str(comparison)
        assert named is None or place in named, str(comparison)
        assert any("QLinearMatMul" in {tensor.op, tensor.other_op} for tensor in comparison.tensors)


def test_the_first_difference_is_named_with_what_only_one_has() -> None:
    comparison = gc.compare_runs(plain(), slim(relu=False), X)
    assert comparison.first is not None
    assert comparison.first.name == "pool"
    assert comparison.only == (("relu",), ())
    lines = str(comparison).splitlines()
    assert lines[0].startswith("The runs part at pool (GlobalAveragePool | GlobalAveragePool): max abs difference")
    assert "right before it, only in the first: relu (Relu)" in lines


def test_a_changed_weight_is_named_by_the_node_that_takes_it(tmp_path: Path) -> None:
    changed = slim()
    onnx.save(slim(), tmp_path / "net.onnx")
    for held in changed.graph.initializer:
        if held.name == "w2":
            held.CopyFrom(onnx.numpy_helper.from_array(WEIGHTS["w2"] * 2, "w2"))
    comparison = gc.compare_runs(tmp_path / "net.onnx", changed, X)
    assert comparison.first is not None
    assert comparison.first.name == "fc/Gemm"
    assert [tensor.is_different for tensor in comparison.tensors] == [False] * (len(comparison.tensors) - 1) + [True]


def test_inputs_may_be_named_and_tolerances_chosen() -> None:
    changed = slim()
    changed.graph.initializer[1].CopyFrom(onnx.numpy_helper.from_array(WEIGHTS["b1"] + np.float32(1e-3), "b1"))
    assert gc.compare_runs(slim(), changed, x=X)
    assert "it is the end of several: Conv + BatchNormalization became one Conv" in str(gc.compare_runs(plain(), changed, X))
    assert not gc.compare_runs(slim(), changed, x=X, atol=1e-2)


def test_numbers_go_on_a_picture() -> None:
    comparison = gc.compare_runs(plain(), slim(relu=False), X)
    for measure in ("max_abs", "relative", "tolerance", "cosine", "sqnr"):
        numbers = comparison.numbers(measure)
        assert all(math.isfinite(number) for number in numbers.values())
        add_overlay(comparison.graph, numbers, title=f"difference {measure}")
    by_tolerance = comparison.numbers("tolerance")
    assert all((by_tolerance[tensor.name] > 1) == tensor.is_different for tensor in comparison.tensors if tensor.name in by_tolerance)
    assert max(by_tolerance.values()) > 1
    add_overlay(comparison.other, comparison.numbers(of_other=True), title="difference")
    assert to_outline(comparison.other)
    with pytest.raises(InvalidArgumentError, match="Required max_abs"):
        comparison.numbers("norm")  # type: ignore[arg-type]  # on purpose


def test_graphs_of_this_library_are_run_in_sessions() -> None:
    def build(factor: float) -> gc.Session:
        graph = gc.Graph()
        with graph.as_default():
            x = gc.placeholder(gc.float32, [None, 4], name="x")
            w = gc.Variable(np.ones((4, 4), np.float32), name="w")
            h = gc.relu(gc.matmul(x, w), name="h")
            gc.multiply(h, factor, name="y")
            session = gc.Session(graph=graph)
            session.run(gc.initialize_all_variables())
        return session

    feed = np.ones((2, 4), np.float32)
    assert not gc.compare_runs(build(2.0), build(2.0), feed)
    comparison = gc.compare_runs(build(2.0), build(3.0), x=feed)
    assert comparison.first is not None
    assert comparison.first.name == "y"


def test_an_overflow_of_half_precision_is_named_behind_values_that_are_only_rounded() -> None:
    def build(dtype: gc.DType) -> gc.Graph:
        graph = gc.Graph()
        with graph.as_default():
            h = gc.placeholder(gc.float32, [None, 8], name="x")
            for layer, factor in enumerate((1.0, 300.0, 1.0)):
                weights = gc.constant(np.random.default_rng(layer).normal(size=(8, 8)).astype(np.float32) * factor, name=f"w{layer}")
                product = gc.matmul(gc.cast(h, dtype), gc.cast(weights, dtype), name=f"product{layer}")
                h = gc.multiply(gc.relu(gc.cast(product, gc.float32)), 60.0, name=f"h{layer}")
        return graph

    x = np.random.default_rng(9).normal(size=(4, 8)).astype(np.float32)
    comparison = gc.compare_runs(build(gc.float32), build(gc.float16), x)
    assert comparison.first is not None
    assert comparison.first.name == "product1"
    rounded = next(tensor for tensor in comparison.tensors if tensor.name == "h0")
    assert 1e-4 < rounded.max_abs / rounded.largest < 1e-2


@pytest.mark.parametrize("wrong", [False, True])
def test_a_wrong_scale_is_named_behind_values_that_are_only_quantized(wrong: bool) -> None:
    nodes = [
        op("QuantizeLinear", "x q z", "xq", "Q"),
        op("DequantizeLinear", f"xq {'twice' if wrong else 'q'} z", "xd", "DQ"),
        op("Conv", "xd w1 b1", "h", "/conv/Conv", pads=[1] * 4),
        *middle(),
        op("Gemm", "f w2 b2", "y", "/fc/Gemm"),
    ]
    scale = np.float32(np.abs(X).max() / 127)
    weights = {name: value for name, value in WEIGHTS.items() if name != "s"}
    rounded = model(nodes, {**weights, "q": scale, "z": np.int8(0), **({"twice": 2 * scale} if wrong else {})})
    rounded.opset_import[0].version = 21  # the first that the reference evaluator dequantizes in
    comparison = gc.compare_runs(slim(), rounded, X)
    assert (None if comparison.first is None else comparison.first.name) == ("conv/Conv" if wrong else None)


def test_models_that_cannot_run_and_wrong_inputs_are_refused() -> None:
    with pytest.raises(FailedPreconditionError, match="Nothing here runs a model of the kind TFLite model"):
        gc.compare_runs(slim(), lite(), X)
    with pytest.raises(InvalidArgumentError, match="There is no input 'z'"):
        gc.compare_runs(slim(), slim(), z=X)
    with pytest.raises(InvalidArgumentError, match="at most 0 placeholders"):
        gc.compare_runs(gc.Graph(), gc.Graph(), X)


def test_tensors_are_compared_in_the_layout_of_the_first() -> None:
    image = np.arange(24.0).reshape(1, 2, 3, 4)
    assert not compared(image, image.transpose(0, 2, 3, 1)).is_different
    assert compared(image, image.transpose(0, 2, 3, 1)).note == "axes permuted by [0, 3, 1, 2]"
    assert compared(image, image.reshape(6, 4)).note == "shape [6, 4] read as [1, 2, 3, 4]"
    assert compared(image, image[..., :2]).is_different
    assert compared(image, image[..., :2]).note == "shapes [1, 2, 3, 4] and [1, 2, 3, 2]"


def test_the_measures_of_a_difference() -> None:
    result = compared(np.array([3, 4], np.float32), np.array([3, 4.5], np.float32))
    assert result.max_abs == 0.5
    assert result.sqnr == pytest.approx(10 * math.log10(25 / 0.25))
    assert result.cosine == pytest.approx((9 + 18) / (5 * math.sqrt(9 + 4.5**2)))
    assert compared([1.0], [1.0]).sqnr == math.inf
    assert compared([1.0, math.nan], [1.0, math.nan]).max_abs == 0
    assert compared([1.0, 2.0], [1.0, math.inf]).max_abs == math.inf
    assert compared(np.array([1.0], np.float16), np.array([1.001], np.float32)).is_different is False
    assert compared(np.array([1], np.int8), np.array([2], np.int8)).is_different
