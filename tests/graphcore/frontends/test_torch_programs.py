"""PyTorch's exported programs, read without PyTorch."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import ForeignGraph, ForeignNode
from graphcore.frontends.sources import open_source
from widgets import to_outline

FILES = Path(__file__).parents[2] / "data" / "frontends"


def node_of(source: ForeignGraph, name: str) -> ForeignNode:
    return next(node for node in source.main.nodes if node.name == name)


def rewritten(path: Path, target: Path, change: Any) -> Path:
    """A copy of an archive, its members changed by `change(name, data)`; None leaves one out."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = change(name, old.read(name))
            if data is not None:
                new.writestr(name, data)
    return target


def test_nodes_have_the_ops_arguments_modules_and_lines_of_the_program() -> None:
    source = open_source(FILES / "net.pt2")
    assert (source.kind, source.name, source.has_graph) == ("PyTorch exported program", "Sequential", True)
    assert source.producer.startswith("PyTorch 2.")
    conv = node_of(source, "conv2d")
    assert conv.op == "aten.conv2d.default"
    assert conv.input_names == ("input", "weight", "bias")
    assert [ref and ref[0] for ref in conv.inputs] == ["input", "0.weight", "0.bias"]
    assert (conv.outputs[0].dtype, conv.outputs[0].shape) == ("float32", (1, 4, 6, 6))
    assert [(call.path, call.type_name) for call in conv.modules] == [("", "Sequential"), ("0", "Conv2d")]
    assert conv.frames[-1].function == "forward"
    assert conv.frames[-1].text == "return self._conv_forward(input, self.weight, self.bias)"
    assert conv.frames[-1].file.endswith("torch/nn/modules/conv.py")
    assert node_of(source, "flatten").attrs == {"start_dim": 1}


def test_parameters_buffers_and_constants_have_their_qualified_names() -> None:
    nodes = {node.name: node.kind for node in open_source(FILES / "branching.pt2").main.nodes if node.weight is not None}
    assert nodes == {"linear.weight": "parameter", "linear.bias": "parameter", "count": "buffer", "shift": "buffer", "scale": "constant"}


def test_weights_are_read_when_they_are_asked_for() -> None:
    weight = node_of(open_source(FILES / "branching.pt2"), "scale").weight
    assert weight is not None
    assert weight.load is not None
    assert weight.nbytes == 16
    np.testing.assert_array_equal(weight.load(), [0, 1, 2, 3])


def test_a_program_without_its_weights_opens(tmp_path: Path) -> None:
    path = rewritten(FILES / "net.pt2", tmp_path / "net.pt2", lambda name, data: None if "/weight_" in name else data)
    source = open_source(path)
    weight = node_of(source, "0.weight").weight
    assert weight is not None
    assert weight.load is None
    assert weight.shape == (4, 3, 3, 3)
    assert len(list(gc.load(path).op_nodes())) == len(list(gc.load(FILES / "net.pt2").op_nodes()))


def test_sizes_are_symbols_with_their_ranges() -> None:
    source = open_source(FILES / "branching.pt2")
    x = node_of(source, "x").outputs[0]
    assert x.shape is not None
    symbol = x.shape[0]
    assert isinstance(symbol, str)
    assert x.shape == (symbol, 4)
    assert source.facts[f"size {symbol}"] == "2 to 64; size 0 of x"
    assert node_of(source, "sym_size_int_1").outputs[0].note == f"= {symbol}"


def test_results_have_the_names_of_the_structure_that_is_returned() -> None:
    assert open_source(FILES / "branching.pt2").main.output_names == ("values", "places", "sum", "")


def test_an_op_with_several_results_is_one_node() -> None:
    source = open_source(FILES / "branching.pt2")
    split = node_of(source, "split")
    assert len(split.outputs) == 2
    assert split.attrs == {"split_size": 2, "dim": 1}
    assert [port.dtype for port in node_of(source, "topk").outputs] == ["float32", "int64"]


def test_lists_of_tensors_are_inputs_in_order() -> None:
    lstm = node_of(open_source(FILES / "lstm.pt2"), "lstm")
    assert lstm.input_names[:4] == ("input", "hx[0]", "hx[1]", "params[0]")
    assert lstm.attrs["num_layers"] == 2
    assert lstm.attrs["batch_first"] is True


def test_branches_and_loops_have_bodies() -> None:
    source = open_source(FILES / "branching.pt2")
    cond = node_of(source, "cond")
    assert cond.op == "higher_order.cond"
    assert list(cond.bodies) == ["then", "else"]
    assert cond.arguments["then"] == (1, 2, 3)
    assert [node.op for node in source.functions[cond.bodies["then"]].nodes if node.kind == "op"] == [
        "aten.linear.default",
        "aten.relu.default",
    ]
    loop = next(node for node in open_source(FILES / "looping.pt2").main.nodes if node.bodies)
    assert list(loop.bodies) == ["cond", "body"]
    assert loop.arguments["body"] == (0, 1, 2, 3)


def test_changes_of_buffers_are_noted() -> None:
    assert open_source(FILES / "branching.pt2").notes == ["Node 'add_' changes buffer 'count' in place."]


def test_pictures_show_modules_and_shapes() -> None:
    outline = to_outline(gc.load(FILES / "net.pt2"))
    assert "layer.0/ (3 nodes) <- input float [1,3,8,8]" in outline
    assert "relu layer.2/relu <- layer.1/ float [1,4,6,6]" in outline


def test_older_files_open(tmp_path: Path) -> None:
    with zipfile.ZipFile(FILES / "net.pt2") as archive:
        model: dict[str, Any] = json.loads(archive.read("archive/models/model.json"))
    specs = model["graph_module"]["signature"]
    model["graph_module"]["signature"] = {
        "inputs_to_parameters": {
            s["parameter"]["arg"]["name"]: s["parameter"]["parameter_name"] for s in specs["input_specs"] if "parameter" in s
        },
        "inputs_to_buffers": {s["buffer"]["arg"]["name"]: s["buffer"]["buffer_name"] for s in specs["input_specs"] if "buffer" in s},
        "user_inputs": ["input"],
        "user_outputs": ["linear"],
    }
    model["schema_version"] = 1
    del model["torch_version"]
    for node in model["graph_module"]["graph"]["nodes"]:
        del node["name"]
    path = tmp_path / "old.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("version", "3.1")
        archive.writestr("serialized_exported_program.json", json.dumps(model))
        archive.writestr("serialized_state_dict.pt", (FILES / "net_state.pt").read_bytes())
    source = open_source(path)
    assert [node.op for node in source.main.nodes] == [node.op for node in open_source(FILES / "net.pt2").main.nodes]
    old, new = node_of(source, "0.weight").weight, node_of(open_source(FILES / "net.pt2"), "0.weight").weight
    assert old is not None
    assert new is not None
    assert old.load is not None
    assert new.load is not None
    np.testing.assert_array_equal(old.load(), new.load())


def test_a_package_without_a_program_is_refused_with_what_it_has(tmp_path: Path) -> None:
    path = rewritten(FILES / "net.pt2", tmp_path / "net.pt2", lambda name, data: None if "models/" in name else data)
    with pytest.raises(InvalidArgumentError, match=r"without an exported program: required models/model.json, got "):
        open_source(path)


def test_a_value_that_no_node_gives_is_named(tmp_path: Path) -> None:
    def change(name: str, data: bytes) -> bytes:
        return data.replace(b'{"as_tensor": {"name": "input"}}', b'{"as_tensor": {"name": "lost"}}', 1) if "models/" in name else data

    with pytest.raises(InvalidArgumentError, match="'conv2d' takes the value 'input', which no node before it gives"):
        open_source(rewritten(FILES / "net.pt2", tmp_path / "net.pt2", change))
