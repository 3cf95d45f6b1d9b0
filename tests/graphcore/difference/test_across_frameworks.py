"""`gc.graph_diff` of models with other ops: ONNX before and after tools, and other frameworks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.difference import difference_graph
from graphcore.difference.marks import shown_difference
from graphcore.frontends.foreign import ForeignFunction, ForeignGraph, ForeignNode, ModuleCall, Port, WeightRef
from graphcore.frontends.lowering import lower
from tests.benchmarks.rows.differences import exported
from widgets import to_svg

onnx: Any = pytest.importorskip("onnx")
FLOAT = onnx.TensorProto.FLOAT
SCALE = np.float32(0.1)
WEIGHTS = {
    "w1": np.linspace(-1, 1, 108, dtype=np.float32).reshape(4, 3, 3, 3),
    "b1": np.zeros(4, np.float32),
    "s": np.ones(4, np.float32),
    "w2": np.linspace(-1, 1, 20, dtype=np.float32).reshape(4, 5),
    "b2": np.zeros(5, np.float32),
}


def op(kind: str, inputs: str, output: str, name: str, **attrs: Any) -> Any:
    return onnx.helper.make_node(kind, inputs.split(), [output], name=name, **attrs)


def model(nodes: list[Any], weights: dict[str, Any]) -> Any:
    ends = [onnx.helper.make_tensor_value_info(name, FLOAT, sizes) for name, sizes in (("x", (1, 3, 8, 8)), ("y", (1, 5)))]
    held = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()]
    graph = onnx.helper.make_graph(nodes, "net", ends[:1], ends[1:], held)
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    onnx.checker.check_model(made)
    return onnx.shape_inference.infer_shapes(made)


def middle(*, relu: bool = True) -> list[Any]:
    return [
        *([op("Relu", "h", "r", "/relu")] if relu else []),
        op("GlobalAveragePool", "r" if relu else "h", "p", "/pool"),
        op("Flatten", "p", "f", "/flat"),
    ]


def plain() -> Any:
    nodes = [
        op("Identity", "x", "i", "/id"),
        op("Conv", "i w1", "c", "/conv/Conv", pads=[1] * 4),
        op("BatchNormalization", "c s b1 b1 s", "h", "/bn/BatchNormalization"),
        *middle(),
        op("MatMul", "f w2", "m", "/fc/MatMul"),
        op("Add", "m b2", "y", "/fc/Add"),
    ]
    return model(nodes, WEIGHTS)


def slim(*, pads: int = 1, relu: bool = True) -> Any:
    ends = [op("Conv", "x w1 b1", "h", "/conv/Conv", pads=[pads] * 4), *middle(relu=relu), op("Gemm", "f w2 b2", "y", "/fc/Gemm")]
    return model(ends, {name: value for name, value in WEIGHTS.items() if name != "s"})


def quantized() -> Any:
    def rounded(name: str) -> list[Any]:
        return [
            op("QuantizeLinear", f"{name} q z", f"{name}_q", f"{name}_Q"),
            op("DequantizeLinear", f"{name}_q q z", f"{name}_d", f"{name}_DQ"),
        ]

    nodes = [
        *rounded("x"),
        op("DequantizeLinear", "w1_q q z", "w1_d", "w1_DQ"),
        op("Conv", "x_d w1_d b1", "h", "/conv/Conv", pads=[1] * 4),
        *middle()[:2],
        *rounded("p"),
        op("Flatten", "p_d", "f", "/flat"),
        op("DequantizeLinear", "w2_q q z", "w2_d", "w2_DQ"),
        op("Gemm", "f w2_d b2", "y", "/fc/Gemm"),
    ]
    weights = {f"{name}_q": (WEIGHTS[name] / SCALE).astype(np.int8) for name in ("w1", "w2")}
    return model(nodes, {**weights, "b1": WEIGHTS["b1"], "b2": WEIGHTS["b2"], "q": SCALE, "z": np.int8(0)})


def lite(*, activation: str = "RELU", bias: bool = True) -> gc.Graph:
    """The same network as in TensorFlow Lite: channels last, with the activation in the convolution."""

    def node(name: str, op_type: str, inputs: tuple[str, ...], sizes: tuple[int, ...], **more: Any) -> ForeignNode:
        return ForeignNode(name, op_type, tuple([(one, 0) for one in inputs]), (Port("", "float32", sizes),), **more)

    def weight(name: str, sizes: tuple[int, ...]) -> ForeignNode:
        return node(name, "tfl.Constant", (), sizes, kind="constant", weight=WeightRef("float32", sizes))

    nodes = [
        node("x", "tfl.Input", (), (1, 8, 8, 3), kind="input"),
        weight("kernel", (4, 3, 3, 3)),
        weight("bias", (4,)),
        weight("matrix", (5, 4)),
        weight("offsets", (5,)),
        node("conv", "tfl.CONV_2D", ("x", "kernel", "bias"), (1, 8, 8, 4), attrs={"fused_activation_function": activation}),
        node("mean", "tfl.MEAN", ("conv",), (1, 1, 1, 4)),
        node("flat", "tfl.RESHAPE", ("mean",), (1, 4)),
        node(
            "dense",
            "tfl.FULLY_CONNECTED",
            ("flat", "matrix", "offsets") if bias else ("flat", "matrix"),
            (1, 5),
            attrs={"fused_activation_function": "NONE"},
        ),
    ]
    return lower(ForeignGraph("TFLite model", ForeignFunction("main", outputs=(("dense", 0),), nodes=nodes)))


def first_lines(diff: Any) -> list[str]:
    return str(diff).splitlines()


def test_fused_nodes_are_told_as_such_and_what_only_follows_is_not() -> None:
    diff = gc.graph_diff(plain(), slim())
    assert first_lines(diff) == [
        "3 regrouped, 1 renamed, 9 unchanged",
        "Conv + BatchNormalization of conv and bn became one Conv",
        "MatMul + Add of fc became one Gemm",
        "Identity left out",
    ]


def test_a_split_node_is_told_as_such() -> None:
    lines = first_lines(gc.graph_diff(slim(), plain()))
    assert "Gemm of fc became MatMul + Add" in lines
    assert "Conv of conv became Conv + BatchNormalization" in lines
    assert "Identity inserted" in lines


def test_quantization_is_pairs_of_nodes_and_weights_of_another_type() -> None:
    diff = gc.graph_diff(slim(), quantized())
    lines = first_lines(diff)
    assert lines[1:] == ["2 × QuantizeLinear + DequantizeLinear inserted", "dtype float → int8 of 2 weights"]
    assert diff.pairs["conv/w1"] == "conv/w1_q"


def test_a_real_difference_is_not_hidden_by_fusions() -> None:
    (change,) = gc.graph_diff(plain(), slim(pads=2)).changed["conv/Conv"].of_kind("attr")
    assert change.what == "pads"
    missing = gc.graph_diff(plain(), slim(relu=False))
    assert "relu" in missing.removed
    assert "− relu  (onnx.Relu)" in str(missing)


def test_layers_are_matched_across_frameworks_with_other_layouts_and_fused_activations() -> None:
    diff = gc.graph_diff(plain(), lite())
    assert {diff.pairs[name] for name in ("conv/Conv", "pool", "flat", "fc/MatMul")} == {"conv", "mean", "flat", "dense"}
    assert diff.pairs["conv/w1"] == "kernel"
    assert "ONNX → TFLite: 4 of 7 ops matched with 4 of 4" in first_lines(diff)[0]
    assert "Conv + BatchNormalization + Relu of conv and bn became one CONV_2D (fused_activation_function)" in first_lines(diff)
    assert "MatMul + Add of fc became one FULLY_CONNECTED" in first_lines(diff)
    assert not [name for name in diff.removed if name not in diff.explained[0]]


def test_an_activation_that_is_nowhere_is_removed() -> None:
    diff = gc.graph_diff(plain(), lite(activation="NONE"))
    assert [name for name in diff.removed if name not in diff.explained[0]] == ["relu"]
    assert "− relu  (onnx.Relu)" in str(diff)


def test_a_dropped_bias_is_no_fusion() -> None:
    diff = gc.graph_diff(plain(), lite(bias=False))
    assert "MatMul + Add of fc became one FULLY_CONNECTED" not in first_lines(diff)
    assert "fc/Add" in diff.removed
    assert "− Add  (onnx.Add)" in str(diff)
    (change,) = gc.graph_diff(slim(), lite(bias=False)).changed["dense"].changes
    assert str(change) == "input 2: fc/b2 → none"


def test_the_module_of_a_fusion_is_named_by_its_class() -> None:
    layer = (ModuleCall("layer1.0", "BasicBlock"),)

    def torch_node(name: str, kind: str, inputs: tuple[str, ...], inner: str, type_name: str) -> ForeignNode:
        modules = (*layer, ModuleCall(f"layer1.0.{inner}", type_name))
        refs = tuple([(one, 0) for one in inputs])
        return ForeignNode(name, kind, refs, (Port("", "float32", (1, 4, 8, 8)),), modules=modules)

    held = [ForeignNode("w", "torch.Parameter", (), (Port("", "float32", (4, 3, 3, 3)),), kind="parameter", modules=layer)]
    nodes = [
        ForeignNode("x", "torch.Input", (), (Port("", "float32", (1, 3, 8, 8)),), kind="input"),
        *held,
        torch_node("conv2d", "torch.conv2d", ("x", "w"), "conv1", "Conv2d"),
        torch_node("batch_norm", "torch.nn.functional.batch_norm", ("conv2d",), "bn1", "BatchNorm2d"),
    ]
    call = lower(ForeignGraph("call", ForeignFunction("main", outputs=(("batch_norm", 0),), nodes=nodes)))
    diff = gc.graph_diff(call, slim())
    assert "Conv2d + BatchNorm2d of layer1.0 became one Conv" in first_lines(diff)


def test_the_picture_of_a_difference_between_frameworks_has_both_and_tells_of_fusions(tmp_path: Path) -> None:
    onnx.save(plain(), tmp_path / "plain.onnx")
    diff = gc.graph_diff(tmp_path / "plain.onnx", lite())
    graph = difference_graph(diff)
    marks = shown_difference.of(graph)
    assert marks is not None
    assert {node.name for node in graph.op_nodes()} >= set(diff.after.nodes)
    assert marks.nodes["conv"].text == "Conv + BatchNormalization + Relu became one CONV_2D (fused_activation_function)"
    assert marks.summary.startswith("ONNX → TFLite")
    assert "CONV_2D" in to_svg(graph)


def test_a_mask_computed_from_constants_is_matched_by_the_nodes_that_take_it() -> None:
    diff = gc.graph_diff(*exported(2))
    assert diff.is_between_frameworks
    assert (diff.removed, diff.added, diff.changed) == ((), (), {})


def test_equal_models_have_no_difference() -> None:
    assert not gc.graph_diff(plain(), plain())
    assert not gc.graph_diff(quantized(), quantized())


def test_lists_of_lists_in_attrs_are_compared_and_said() -> None:
    """As the dimension numbers of JAX are."""

    def program(axes: tuple[tuple[int, ...], ...]) -> gc.Graph:
        nodes = [
            ForeignNode("x", "jax.argument", outputs=(Port("x", "float32", (2, 3)),), kind="input"),
            ForeignNode("dot", "jax.dot_general", (("x", 0),), (Port("", "float32", (2, 2)),), attrs={"axes": axes}),
        ]
        return lower(ForeignGraph("jaxpr", ForeignFunction("main", outputs=(("dot", 0),), nodes=nodes)))

    assert "axes: [[1], [0]] → [[1], [1]]" in str(gc.graph_diff(program(((1,), (0,))), program(((1,), (1,)))))
