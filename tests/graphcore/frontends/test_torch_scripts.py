"""TorchScript programs, whose code is read as text."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import GraphError, InvalidArgumentError, ResourceExhaustedError
from graphcore.frontends.foreign import ForeignGraph, ForeignNode
from graphcore.frontends.sources import open_source
from widgets import to_outline

FILES = Path(__file__).parents[2] / "data" / "frontends"
CODE = "archive/code/__torch__.py"


def node_of(source: ForeignGraph, op: str) -> ForeignNode:
    return next(node for node in source.main.nodes if node.op == op)


def with_code(tmp_path: Path, body: str) -> Path:
    """The scripted program with another `forward`."""
    path = tmp_path / "changed.pt"
    with zipfile.ZipFile(FILES / "scripted.pt") as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == CODE:
                data = f"class Scripted(Module):\n  def forward(self: __torch__.Scripted, x: Tensor) -> Tensor:\n{body}".encode()
            new.writestr(name, data)
    return path


def test_calls_of_modules_and_functions_are_entered() -> None:
    source = open_source(FILES / "traced.pt")
    assert [node.op for node in source.main.nodes if node.kind == "op"] == [
        "aten._convolution",
        "aten.batch_norm",
        "aten.relu",
        "aten.flatten",
        "aten.linear",
    ]
    conv = node_of(source, "aten._convolution")
    assert conv.input_names == ("input", "weight", "bias")
    assert conv.attrs["stride"] == [1, 1]
    assert [(call.path, call.type_name) for call in conv.modules] == [("", "Sequential"), ("0", "Conv2d")]
    assert conv.frames[-1].text.startswith("input0 = torch._convolution(input, weight, bias")


def test_parameters_and_buffers_are_named_by_their_modules_and_read_on_demand() -> None:
    source = open_source(FILES / "traced.pt")
    kinds = {node.name: node.kind for node in source.main.nodes if node.weight is not None}
    assert kinds["0.weight"] == "parameter"
    assert kinds["1.running_mean"] == "buffer"
    weight = next(node.weight for node in source.main.nodes if node.name == "1.running_mean")
    assert weight is not None
    assert weight.load is not None
    np.testing.assert_array_equal(weight.load(), np.zeros(4, np.float32))


def test_branches_and_loops_have_bodies_with_all_that_they_take() -> None:
    source = open_source(FILES / "scripted.pt")
    loop, branch = node_of(source, "prim.Loop"), node_of(source, "prim.If")
    body = source.functions[loop.bodies["body"]]
    assert "aten.linear" in [node.op for node in body.nodes]
    assert body.output_names == ("x0",)
    assert len(loop.arguments["body"]) == len(body.inputs)
    assert all(loop.inputs[number] is not None for number in loop.arguments["body"] if number >= 0)
    assert [node.op for node in source.functions[branch.bodies["else"]].nodes if node.kind == "op"] == ["aten.slice", "aten.slice"]
    assert branch.inputs[0] == (node_of(source, "aten.Bool").name, 0)


def test_a_constant_of_the_module_chooses_its_branch() -> None:
    source = open_source(FILES / "scripted.pt")
    body = source.functions[node_of(source, "prim.Loop").bodies["body"]]
    assert "aten.relu" in [node.op for node in body.nodes]
    assert "aten.relu_" not in [node.op for node in body.nodes]
    assert "Branches on the module's constants, such as `training`, show the side that is taken." in source.notes


def test_a_check_that_only_raises_is_left_out(tmp_path: Path) -> None:
    body = """    if torch.ne(torch.dim(x), 4):
      ops.prim.RaiseException("no picture", "builtins.ValueError")
    else:
      pass
    return torch.relu(x)
"""
    source = open_source(with_code(tmp_path, body))
    assert [node.op for node in source.main.nodes if node.kind == "op"] == ["aten.relu"]
    assert "Branches that only raise errors are left out." in source.notes


def test_an_attribute_that_a_branch_assigns_is_read_after_it(tmp_path: Path) -> None:
    body = (
        "    if torch.gt(torch.sum(x), 0):\n      self.kept = torch.relu(x)\n      y = torch.neg(self.kept)\n"
        "    else:\n      y = x\n    return torch.add(self.kept, y)\n"
    )
    source = open_source(with_code(tmp_path, body))
    read = node_of(source, "prim.GetAttr")
    assert read.attrs == {"name": "kept"}
    assert node_of(source, "aten.add").inputs[0] == (read.name, 0)
    then = source.functions[node_of(source, "prim.If").bodies["then"]]
    assert [node.op for node in then.nodes if node.kind == "op"] == ["aten.relu", "prim.SetAttr", "aten.neg"]
    assert gc.load(with_code(tmp_path, body)).find("add") is not None


def test_branches_and_attributes_have_names_of_the_code(tmp_path: Path) -> None:
    body = (
        "    if torch.gt(torch.sum(x), 0):\n      _0, scale = torch.neg(x), torch.relu(x)\n    else:\n      _0, scale = x, x\n"
        "    self.kept = scale\n    return torch.add(scale, _0)\n"
    )
    source = open_source(with_code(tmp_path, body))
    assert node_of(source, "prim.If").name == "scale"
    assert node_of(source, "prim.SetAttr").name == "kept"


def test_several_results_are_one_node(tmp_path: Path) -> None:
    source = open_source(with_code(tmp_path, "    a, b = torch.topk(x, 2)\n    return (b, a)\n"))
    assert [port.name for port in node_of(source, "aten.topk").outputs] == ["a", "b"]
    assert source.main.outputs == (("topk", 1), ("topk", 0))


def test_code_that_calls_itself_has_a_limit(tmp_path: Path) -> None:
    with pytest.raises(ResourceExhaustedError, match="Calls are nested more than 80 deep at 'forward'"):
        open_source(with_code(tmp_path, "    return (self).forward(x, )\n"))


@pytest.mark.parametrize("body", ["    return (\n", "    del x\n", "    a, b = (x, x, x)\n", "    return CONSTANTS.c7\n"])
def test_damaged_code_is_an_error_that_names_the_file(tmp_path: Path, body: str) -> None:
    with pytest.raises(GraphError, match=r"changed\.pt"):
        open_source(with_code(tmp_path, body))


def test_code_is_never_run(tmp_path: Path) -> None:
    source = open_source(with_code(tmp_path, "    return __import__('os').system('exit')\n"))
    assert "prim.__import__" in [node.op for node in source.main.nodes]


def test_an_archive_without_code_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.pt"
    with zipfile.ZipFile(FILES / "scripted.pt") as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            if not name.endswith(".py"):
                new.writestr(name, old.read(name))
    with pytest.raises(InvalidArgumentError, match=r"has no member 'code/__torch__\.py'"):
        open_source(path)


def test_pictures_show_the_modules() -> None:
    outline = to_outline(gc.load(FILES / "traced.pt"))
    assert "layer.0/ (3 nodes) <- input" in outline
