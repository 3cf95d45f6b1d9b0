"""Keras's files, read without Keras."""

from __future__ import annotations

import json
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest

import graphcore as gc
from graphcore.errors import GraphError, ResourceExhaustedError
from graphcore.frontends.foreign import ForeignNode
from graphcore.frontends.keras_reader import weights
from graphcore.frontends.sources import open_source

FILES = Path(__file__).parents[2] / "data" / "frontends"


def nodes_of(path: Path) -> dict[str, ForeignNode]:
    return {node.name: node for node in open_source(path).main.nodes}


@pytest.mark.parametrize("name", ["shared.keras", "shared.h5"])
def test_a_shared_layer_has_one_weight_and_two_calls(name: str) -> None:
    nodes = nodes_of(FILES / name)
    assert nodes["shared"].inputs == (("a", 0), ("shared.kernel", 0), ("shared.bias", 0))
    assert nodes["shared_call_1"].inputs == (("b", 0), ("shared.kernel", 0), ("shared.bias", 0))


@pytest.mark.parametrize("name", ["shared.keras", "shared.h5"])
def test_a_model_in_a_model_is_a_scope_with_its_class(name: str) -> None:
    nodes = nodes_of(FILES / name)
    assert [(call.path, call.type_name) for call in nodes["inner_call_1/in_dense"].modules] == [("inner_call_1", "Functional")]
    assert nodes["cat"].inputs == (("inner/drop", 0), ("inner_call_1/drop", 0))


@pytest.mark.parametrize("name", ["shared.keras", "shared.h5"])
def test_weights_are_read_on_demand(name: str) -> None:
    weight = nodes_of(FILES / name)["inner/in_dense.kernel"].weight
    assert weight is not None
    assert weight.load is not None
    assert weight.load().shape == weight.shape == (8, 8)


def test_shapes_are_those_of_the_file() -> None:
    graph = gc.load(FILES / "shared.keras")
    assert {node.name: str(node.outputs[0].shape) for node in graph.op_nodes() if node.name == "cat"} == {"cat": "[?,16]"}


def rewritten(path: Path, config: Any) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata.json", "{}")
        archive.writestr("config.json", json.dumps(config))
    return path


def test_shapes_of_a_keras_2_model_follow_from_the_layers(tmp_path: Path) -> None:
    config = {
        "class_name": "Functional",
        "config": {
            "layers": [
                {"class_name": "InputLayer", "name": "x", "config": {"batch_input_shape": [None, 8, 8, 3]}, "inbound_nodes": []},
                {
                    "class_name": "Conv2D",
                    "name": "c",
                    "config": {"filters": 4, "kernel_size": [3, 3], "strides": [2, 2], "padding": "same"},
                    "inbound_nodes": [[["x", 0, 0, {}]]],
                },
                {"class_name": "Mine>Odd", "name": "odd", "config": {"k": 3}, "inbound_nodes": [[["c", 0, 0, {"training": False}]]]},
            ],
            "input_layers": [["x", 0, 0]],
            "output_layers": [["odd", 0, 0]],
        },
    }
    nodes = nodes_of(rewritten(tmp_path / "old.keras", config))
    assert nodes["c"].outputs[0].shape == (None, 4, 4, 4)
    assert nodes["odd"].outputs[0].shape is None
    assert nodes["odd"].attrs == {"k": 3, "training": False}


def test_damaged_models_give_graph_errors(tmp_path: Path) -> None:
    with zipfile.ZipFile(FILES / "shared.keras") as archive:
        text = archive.read("config.json").decode()
    chance, path = random.Random(7), tmp_path / "damaged.keras"
    for _ in range(150):
        place = chance.randrange(len(text))
        damaged = text[:place] + chance.choice(["null", "1", "[", '"', "{}", "", "-1"]) + text[place + chance.randrange(9) :]
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("metadata.json", "{}")
            archive.writestr("config.json", damaged)
        try:
            gc.load(path)
        except GraphError:
            continue


def test_a_damaged_file_that_keeps_the_hdf5_library_busy_for_ever_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, path = bytearray((FILES / "shared.h5").read_bytes()), tmp_path / "busy.h5"
    data[455] = 0x10
    data[3599:3599] = b'"'
    path.write_bytes(data)
    monkeypatch.setattr(weights, "LEAST_SECONDS", 2.0)
    with pytest.raises(ResourceExhaustedError, match="takes more than 2 seconds"):
        gc.load(path)
