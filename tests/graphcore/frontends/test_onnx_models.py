"""ONNX models, compared with what the library `onnx` itself reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import google.protobuf.message
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import graphcore as gc
from graphcore.__main__ import main
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.frontends.foreign import ForeignNode
from graphcore.frontends.record import foreign_of
from graphcore.frontends.sources import open_source
from tests.support.asking import inspect
from widgets import to_outline
from widgets.scene.state import SceneState

LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
MODELS = sorted(LIGHT.glob("*.onnx"))


def floats(name: str, *shape: int | str | None) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model_of(nodes: list[Any], inputs: list[Any], outputs: list[Any], weights: list[Any] | None = None, **rest: Any) -> Any:
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights or [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("my.domain", 1)], **rest)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_nodes_edges_shapes_and_attrs_are_those_that_onnx_reads(path: Path) -> None:
    model: Any = onnx.shape_inference.infer_shapes(onnx.load(path))
    graph = gc.load(path)
    record = foreign_of(graph)
    assert record is not None
    of_output = {
        port.name: (node, index) for node in graph.op_nodes() for index, port in enumerate(outputs_of(record.nodes.get(node.name)))
    }
    shapes = {info.name: [dim.dim_value or None for dim in info.type.tensor_type.shape.dim] for info in model.graph.value_info}
    assert sum(1 for node in graph.op_nodes() if node.op.startswith("onnx.")) == len(model.graph.node) + len(
        {each.name for each in (*model.graph.input, *model.graph.initializer)}
    )
    for proto in model.graph.node:
        node, _ = of_output[proto.output[0]]
        assert node.op == f"onnx.{proto.op_type}"
        assert [tensor.node.name for tensor in node.inputs] == [of_output[name][0].name for name in proto.input if name]
        for index, name in enumerate(proto.output):
            if name in shapes:
                assert node.outputs[index].shape == shapes[name]
        for attribute in proto.attribute:
            theirs = helper.get_attribute_value(attribute)
            ours = node.attr.get(attribute.name)
            if isinstance(theirs, list):
                assert ours == tuple(theirs)
            elif isinstance(theirs, float):
                assert ours == pytest.approx(theirs)
            elif not isinstance(theirs, TensorProto):
                assert ours == theirs


def outputs_of(node: ForeignNode | None) -> Any:
    return () if node is None else node.outputs


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_weights_are_those_that_onnx_reads(path: Path) -> None:
    theirs = {tensor.name: tensor for tensor in onnx.load(path).graph.initializer}
    read = 0
    for node in open_source(path).main.nodes:
        if node.weight is not None and node.outputs[0].name in theirs and node.weight.load is not None:
            np.testing.assert_array_equal(node.weight.load(), numpy_helper.to_array(theirs[node.outputs[0].name]))
            read += 1
        if read > 20:
            break


def branches() -> Any:
    then = helper.make_graph([helper.make_node("Add", ["x", "one"], ["t"], "plus")], "then_graph", [], [floats("t", 2)])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["e"], "minus")], "else_graph", [], [floats("e", 2)])
    choice = helper.make_node("If", ["c"], ["y"], "choice", then_branch=then, else_branch=other)
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    one = numpy_helper.from_array(np.ones(2, np.float32), "one")
    return model_of([choice], [condition, floats("x", 2)], [floats("y", 2)], [one])


def test_branches_are_bodies_that_take_what_they_capture() -> None:
    source = open_source(branches())
    (choice,) = [node for node in source.main.nodes if node.op == "onnx.If"]
    assert set(choice.bodies) == {"then", "else"}
    assert [ref and ref[0] for ref in choice.inputs] == ["c", "x", "one"]
    then = source.functions[choice.bodies["then"]]
    assert [port.name for port in then.inputs] == ["x", "one"]
    assert choice.arguments == {"then": (1, 2), "else": (1, 2)}
    state = SceneState()
    state.opened["choice"] = None
    outline = to_outline(gc.from_source(branches()), state)
    assert "Add choice:then/plus <- choice:then/x float [2], choice:then/one float [2]" in outline
    assert "Neg choice:else/minus" in outline


def test_functions_of_a_model_open_from_their_calls() -> None:
    twice = helper.make_function(
        "my.domain", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 20)]
    )
    call = helper.make_node("Twice", ["x"], ["y"], "call", domain="my.domain")
    source = open_source(model_of([call], [floats("x", 2)], [floats("y", 2)], functions=[twice]))
    (node,) = [node for node in source.main.nodes if node.op == "my.domain.Twice"]
    assert source.functions[node.bodies["Twice"]].nodes[1].op == "onnx.Add"


def test_a_value_that_nothing_makes_and_one_that_two_make_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="'z' is used, but nothing makes it"):
        open_source(model_of([helper.make_node("Neg", ["z"], ["y"])], [], [floats("y", 2)]))
    twice = [helper.make_node("Neg", ["x"], ["y"], name) for name in "ab"]
    with pytest.raises(InvalidArgumentError, match="'y' is made twice"):
        open_source(model_of(twice, [floats("x", 2)], [floats("y", 2)]))


def saved(folder: Path, location: str) -> Path:
    """A model whose weight lies in another file."""
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 2], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", "4"), ("length", "16")):
        entry = weight.external_data.add()
        entry.key, entry.value = key, value
    model = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], [floats("x", 1, 2)], [floats("y", 1, 2)], [weight])
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    return folder / "m.onnx"


def weight_of(path: Path) -> np.ndarray:
    (weight,) = [node.weight for node in open_source(path).main.nodes if node.weight is not None]
    assert weight.load is not None
    return weight.load()


def test_external_data_are_read_when_asked_for(tmp_path: Path) -> None:
    path = saved(tmp_path, "data/w.bin")
    gc.load(path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/w.bin").write_bytes(np.arange(5, dtype=np.float32).tobytes())
    np.testing.assert_array_equal(weight_of(path), [[1, 2], [3, 4]])
    (tmp_path / "data/w.bin").write_bytes(b"short")
    with pytest.raises(InvalidArgumentError, match="has 5"):
        weight_of(path)


@pytest.mark.parametrize("location", ["../w.bin", "/etc/passwd", "link/passwd", ".", ""])
def test_external_data_outside_of_the_folder_are_refused(tmp_path: Path, location: str) -> None:
    (tmp_path / "link").symlink_to("/etc")
    with pytest.raises(InvalidArgumentError, match="outside of the model's folder"):
        weight_of(saved(tmp_path, location))


def test_large_tensors_stay_in_the_file_until_they_are_asked_for(tmp_path: Path) -> None:
    value = np.random.default_rng(1).normal(size=(1200, 300)).astype(np.float32)
    constant = helper.make_node("Constant", [], ["k"], "constant", value=numpy_helper.from_array(value * 2, "k"))
    multiply = helper.make_node("Mul", ["w", "k"], ["y"], "product")
    path = tmp_path / "m.onnx"
    path.write_bytes(
        model_of([constant, multiply], [], [floats("y", 1200, 300)], [numpy_helper.from_array(value, "w")]).SerializeToString()
    )
    weights = {node.name: node.weight for node in open_source(path).main.nodes if node.weight is not None}
    assert {name: weight.shape for name, weight in weights.items()} == {"w": (1200, 300), "constant": (1200, 300)}
    for name, factor in (("w", 1), ("constant", 2)):
        load = weights[name].load
        assert load is not None
        np.testing.assert_array_equal(load(), value * factor)
    path.write_bytes(path.read_bytes()[:1000])
    load = weights["w"].load
    assert load is not None
    with pytest.raises(InvalidArgumentError, match="'w' cannot be read"):
        load()


def test_metadata_of_pytorchs_exporter_give_modules_and_lines() -> None:
    node = helper.make_node("Relu", ["x"], ["y"], "node_relu")
    for key, value in (
        ("pkg.torch.onnx.name_scopes", "['', 'layer1', 'layer1.0', 'relu']"),
        ("pkg.torch.onnx.class_hierarchy", "['m.ResNet', 'torch.nn.Sequential', 'm.BasicBlock', 'aten.relu.default']"),
        ("pkg.torch.onnx.stack_trace", 'File "/home/me/model.py", line 31, in forward\n    out = self.relu(out)'),
    ):
        entry = node.metadata_props.add()
        entry.key, entry.value = key, value
    graph = gc.from_source(model_of([node], [floats("x", 2)], [floats("y", 2)]))
    relu = graph.find("layer1/layer1.0/relu")
    assert relu is not None
    record = foreign_of(graph)
    assert record is not None
    assert record.classes == {"layer1": "Sequential", "layer1/layer1.0": "BasicBlock"}
    assert relu.source is not None
    assert (relu.source.file, relu.source.line, relu.source.text) == ("/home/me/model.py", 31, "out = self.relu(out)")


def test_the_inspector_has_documentation_defaults_and_quantisation() -> None:
    scale = numpy_helper.from_array(np.array(0.5, np.float32), "s")
    zero = numpy_helper.from_array(np.array(128, np.uint8), "z")
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], "quantize"),
        helper.make_node("Conv", ["x", "w"], ["y"], "conv", pads=[1, 1, 1, 1]),
    ]
    w = numpy_helper.from_array(np.zeros((4, 3, 3, 3), np.float32), "w")
    model = model_of(nodes, [floats("x", "batch", 3, 8, 8)], [floats("y", "batch", 4, 8, 8)], [scale, zero, w])
    graph = gc.from_source(model)
    conv, quantize = inspect(graph, SceneState(), "conv"), inspect(graph, SceneState(), "quantize")
    assert conv is not None
    assert quantize is not None
    assert "convolution operator" in conv.doc
    assert ("group", "1 (default)") in conv.attrs
    assert [row.name for row in conv.inputs] == ["X", "W"]
    assert conv.outputs[0].shape == "[batch,4,8,8]"
    assert quantize.quantization == [("output", "scale 0.5, zero point 128")]


def test_damaged_models_are_errors_of_this_package(tmp_path: Path) -> None:
    whole = branches().SerializeToString()
    rng = np.random.default_rng(0)
    for number in range(300):
        data = bytearray(whole)
        for place in rng.integers(0, len(data), 1 + number % 5):
            data[place] = rng.integers(0, 256)
        (tmp_path / "m.onnx").write_bytes(data[: rng.integers(10, len(data) + 1)])
        try:
            graph = gc.load(tmp_path / "m.onnx")
            to_outline(graph)
        except GraphError:
            pass


def marked() -> bytes:
    """A model whose texts of each kind are words in capitals, and are there once."""
    node = helper.make_node("OPTYPE", ["x"], ["OUTPUT"], "NAME", domain="DOMAIN", ATTR=1)
    node.doc_string = "DOC"
    entry = node.metadata_props.add()
    entry.key, entry.value = "KEY", "VALUE"
    model = model_of([node], [floats("x", "SIZE")], [floats("y", 2)])
    model.graph.output[0].name = "OUTPUT"
    model.graph.name, model.graph.doc_string, model.producer_name = "GRAPH", "TEXT", "PRODUCER"
    return bytes(model.SerializeToString())


@pytest.mark.parametrize("word", ["OPTYPE", "OUTPUT", "NAME", "DOMAIN", "ATTR", "DOC", "KEY", "VALUE", "SIZE", "GRAPH", "TEXT", "PRODUCER"])
def test_texts_that_are_not_utf_8_are_refused(tmp_path: Path, word: str) -> None:
    data = marked()
    assert word.encode() in data
    (tmp_path / "m.onnx").write_bytes(data.replace(word.encode(), b"\xff".ljust(len(word), b"a")))
    with pytest.raises(InvalidArgumentError, match=r"a name or text in it is not UTF-8: b'\\xffa+'"):
        gc.load(tmp_path / "m.onnx")


def test_zeros_after_a_model_are_refused_as_onnx_refuses_them(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(branches().SerializeToString() + bytes(64))
    with pytest.raises(google.protobuf.message.DecodeError):
        onnx.load(path)
    with pytest.raises(InvalidArgumentError, match=r"'m\.onnx' is a damaged ONNX model"):
        gc.load(path)


def test_the_summary_says_what_the_model_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = branches()
    model.producer_name, model.producer_version = "pytorch", "2.14"
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert main(["inspect", str(tmp_path / "m.onnx")]) == 0
    told = capsys.readouterr().out
    assert "model       ONNX model, g, pytorch 2.14\n" in told
    assert "facts       opset: ai.onnx 20, my.domain 1\n" in told
    assert "inputs      c  bool []\n" in told
    assert "weights     8 bytes in 1 tensors\n" in told
    assert "functions   else_graph\n            then_graph\n" in told
