"""OpenVINO models, read without OpenVINO."""

from __future__ import annotations

import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.frontends.record import foreign_of
from graphcore.frontends.sources import open_source
from widgets import to_outline

MODEL = Path(__file__).parents[2] / "data" / "frontends" / "branching_openvino.xml"


def test_nodes_edges_and_attrs_are_those_of_the_file() -> None:
    nodes = {node.name: node for node in open_source(MODEL).main.nodes}
    root = ET.fromstring(MODEL.read_text())
    layers = {layer.get("id"): layer for layer in root.findall("layers/layer")}
    assert list(nodes) == [layer.get("name") for layer in layers.values()]
    edges = {(layers[edge.get("from-layer")].get("name"), layers[edge.get("to-layer")].get("name")) for edge in root.findall("edges/edge")}
    assert edges == {(ref[0], node.name) for node in nodes.values() for ref in node.inputs if ref is not None}
    assert nodes["out"].attrs == {"transpose_a": "false", "transpose_b": "true"}
    assert [port.shape for port in nodes["branch"].outputs] == [(None, 2)]


def test_branches_and_loops_have_bodies_with_their_arguments() -> None:
    source = open_source(MODEL)
    nodes = {node.name: node for node in source.main.nodes}
    assert (list(nodes["branch"].bodies), list(nodes["loop"].bodies)) == (["then", "else"], ["body"])
    assert nodes["branch"].arguments == {"then": (1,), "else": (2,)}
    ops = {key: {node.op for node in function.nodes if node.kind == "op"} for key, function in source.functions.items()}
    assert ops[nodes["branch"].bodies["else"]] == {"openvino.ReLU"}
    graph = gc.load(MODEL)
    record = foreign_of(graph)
    assert record is not None
    assert all(record.body(function.name, "").args for function in source.functions.values())
    assert "MatMul out" in to_outline(graph)


def test_elements_are_read_from_the_file_of_the_same_name() -> None:
    weight = next(node.weight for node in open_source(MODEL).main.nodes if node.name.startswith("Transpose"))
    assert weight is not None
    assert weight.load is not None
    np.testing.assert_array_equal(weight.load(), [[0, 3], [1, 4], [2, 5]])


def test_a_model_without_its_elements_opens_and_says_so(tmp_path: Path) -> None:
    path = shutil.copy(MODEL, tmp_path / "model.xml")
    source = open_source(path)
    assert source.notes == ["The elements of the constants are not there: required 'model.bin' beside the model."]
    assert all(node.weight.load is None for node in source.main.nodes if node.weight is not None)


def test_elements_outside_of_the_folder_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    path = shutil.copy(MODEL, tmp_path / "inner" / "model.xml")
    shutil.copy(MODEL.with_suffix(".bin"), tmp_path / "secret")
    (tmp_path / "inner" / "model.bin").symlink_to(tmp_path / "secret")
    assert all(node.weight.load is None for node in open_source(path).main.nodes if node.weight is not None)


@pytest.mark.parametrize("change", ["<!DOCTYPE net [<!ENTITY a 'b'>]>", "<!DOCTYPE net SYSTEM 'file:///etc/passwd'>"])
def test_entities_are_refused(change: str, tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    path.write_text(MODEL.read_text().replace("<net ", f"{change}<net ", 1))
    with pytest.raises(InvalidArgumentError, match=r"declares a document type|What can be opened"):
        open_source(path)


def test_a_cut_file_is_an_error(tmp_path: Path) -> None:
    text = MODEL.read_bytes()
    for place in range(60, len(text) - 10, 97):
        (tmp_path / "model.xml").write_bytes(text[:place])
        with pytest.raises(GraphError):
            gc.load(tmp_path / "model.xml")
