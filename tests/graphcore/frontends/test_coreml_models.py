"""CoreML models: neural networks, ML programs with blocks, packages and pipelines."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.frontends.sources import open_source
from tests.support.coreml_files import array_feature, message, model_of, network, program
from widgets import to_outline


def _package(folder: Path, name: str = "com.apple.CoreML/model.mlmodel") -> Path:
    package = folder / "net.mlpackage"
    weights = package / "Data" / "com.apple.CoreML" / "weights"
    weights.mkdir(parents=True)
    head = (0xDEADBEEF).to_bytes(4, "little") + (2).to_bytes(4, "little") + (8).to_bytes(8, "little") + (128).to_bytes(8, "little")
    (weights / "weight.bin").write_bytes(bytes(64) + head.ljust(64, b"\0") + np.asarray([3, 4], "<f4").tobytes())
    (weights.parent / "model.mlmodel").write_bytes(program(64))
    manifest = {"rootModelIdentifier": "id", "itemInfoEntries": {"id": {"path": name}}}
    (package / "Manifest.json").write_text(json.dumps(manifest))
    return package


def test_a_neural_network_has_its_layers_attrs_and_weights(tmp_path: Path) -> None:
    path = tmp_path / "net.mlmodel"
    path.write_bytes(network())
    source = open_source(path)
    assert source.kind == "CoreML neural network"
    nodes = {node.name: node for node in source.main.nodes}
    assert nodes["dense"].op == "coreml.innerProduct"
    assert nodes["dense"].attrs == {"inputChannels": 3, "outputChannels": 2, "hasBias": 1}
    assert nodes["act"].op == "coreml.ReLU"
    assert nodes["act"].inputs == (("dense", 0),)
    assert nodes["x"].outputs[0].shape == (3,)
    weight = nodes["dense.weights"].weight
    assert weight is not None
    assert weight.load is not None
    np.testing.assert_array_equal(weight.load(), np.arange(6))
    assert "innerProduct dense <- x" in to_outline(gc.load(path))


def test_a_program_in_a_package_has_blocks_as_bodies_and_weights_in_its_file(tmp_path: Path) -> None:
    source = open_source(_package(tmp_path))
    nodes = {node.name: node for node in source.main.nodes}
    assert source.kind == "CoreML ML program"
    assert nodes["s"].inputs == (("a", 0), ("w", 0))
    cond = nodes["y"]
    assert set(cond.bodies) == {"then", "else"}
    then = source.functions[cond.bodies["then"]]
    assert [port.name for port in then.inputs] == ["s", "k"]
    assert [cond.inputs[place] for place in cond.arguments["then"]] == [("s", 0), ("k", 0)]
    for name, elements in (("w", [3, 4]), ("k", [1, 2])):
        weight = nodes[name].weight
        assert weight is not None
        assert weight.load is not None
        np.testing.assert_array_equal(weight.load(), elements)


def test_a_pipeline_has_its_models_as_bodies(tmp_path: Path) -> None:
    path = tmp_path / "pipe.mlmodel"
    second = model_of(900, b"", [array_feature("y", 2)], [array_feature("z", 2)])
    pipeline = message((1, network()), (1, second), (2, "net"), (2, "same"))
    path.write_bytes(model_of(202, pipeline, [array_feature("x", 3)], [array_feature("z", 2)]))
    source = open_source(path)
    nodes = {node.name: node for node in source.main.nodes}
    assert nodes["same"].inputs == (("net", 0),)
    assert len(source.functions[nodes["net"].bodies["model"]].nodes) == 4


@pytest.mark.parametrize("name", ["../model.mlmodel", "/etc/passwd", "a/../../b"])
def test_a_package_opens_nothing_outside_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="not in the package"):
        gc.load(_package(tmp_path, name))


@pytest.mark.parametrize("seed", range(20))
def test_damaged_models_give_no_other_errors(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    path = tmp_path / "net.mlmodel"
    for _ in range(50):
        data = bytearray(program(64) if seed % 2 else network())
        data[int(rng.integers(40, len(data)))] = int(rng.integers(256))
        path.write_bytes(data[: int(rng.integers(41, len(data)))] if rng.random() < 0.2 else data)
        with suppress(GraphError):
            source = open_source(path)
            gc.load(path)
            for node in source.main.nodes:
                if node.weight is not None and node.weight.load is not None:
                    node.weight.load()
