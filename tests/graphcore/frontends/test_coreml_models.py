"""CoreML models: neural networks, ML programs with blocks, packages and pipelines."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.frontends.sources import open_source
from widgets import to_outline


def _varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def _message(*fields: tuple[int, Any]) -> bytes:
    """A message of the wire format: integers, texts and bytes by the numbers of their fields."""
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts += [_varint(number << 3), _varint(value)]
        else:
            data = value.encode() if isinstance(value, str) else value
            parts += [_varint(number << 3 | 2), _varint(len(data)), data]
    return b"".join(parts)


def _array(name: str, *shape: int) -> bytes:
    return _message((1, name), (3, _message((5, _message(*[(1, size) for size in shape], (2, 65568))))))


def _model(kind: int, body: bytes, inputs: list[bytes], outputs: list[bytes]) -> bytes:
    description = _message(*[(1, part) for part in inputs], *[(10, part) for part in outputs])
    return _message((1, 7), (2, description), (kind, body))


def _network() -> bytes:
    weights = _message((1, np.arange(6, dtype="<f4").tobytes()))
    dense = _message((1, 3), (2, 2), (10, 1), (20, weights))
    layers = [
        _message((1, "dense"), (2, "x"), (3, "h"), (140, dense)),
        _message((1, "act"), (2, "h"), (3, "y"), (130, _message((10, b"")))),
    ]
    return _model(500, _message(*[(1, layer) for layer in layers]), [_array("x", 3)], [_array("y", 2)])


def _type(dtype: int, *shape: int) -> bytes:
    dimensions = [(3, _message((1, _message((1, size))))) for size in shape]
    return _message((1, _message((1, dtype), (2, len(shape)), *dimensions)))


def _named(name: str, *shape: int, dtype: int = 11) -> bytes:
    return _message((1, name), (2, _type(dtype, *shape)))


def _operation(kind: str, output: bytes, inputs: dict[str, str], blocks: list[bytes] = [], attributes: dict[str, bytes] = {}) -> bytes:  # noqa: B006 - never changed
    arguments = [(2, _message((1, key), (2, _message((1, _message((1, name))))))) for key, name in inputs.items()]
    attrs = [(5, _message((1, key), (2, value))) for key, value in attributes.items()]
    return _message((1, kind), *arguments, (3, output), *[(4, block) for block in blocks], *attrs)


def _program(offset: int) -> bytes:
    stored = _message((2, _type(11, 2)), (5, _message((1, "@model_path/weights/weight.bin"), (2, offset))))
    here = _message((2, _type(11, 2)), (3, _message((1, _message((1, _message((1, np.asarray([1, 2], "<f4").tobytes()))))))))
    then = _message((2, "t"), (3, _operation("mul", _named("t", 2), {"x": "s", "y": "k"})))
    other = _message((2, "e"), (3, _operation("relu", _named("e", 2), {"x": "s"})))
    operations = [
        _operation("const", _named("w", 2), {}, attributes={"val": stored}),
        _operation("const", _named("k", 2), {}, attributes={"val": here}),
        _operation("add", _named("s", 2), {"x": "a", "y": "w"}),
        _operation("cond", _named("y", 2), {"pred": "p"}, [then, other]),
    ]
    block = _message((2, "y"), *[(3, part) for part in operations])
    function = _message((1, _named("a", 2)), (1, _named("p", dtype=1)), (2, "CoreML7"), (3, _message((1, "CoreML7"), (2, block))))
    program = _message((1, 1), (2, _message((1, "main"), (2, function))))
    return _model(502, program, [_array("a", 2), _array("p", 1)], [_array("y", 2)])


def _package(folder: Path, name: str = "com.apple.CoreML/model.mlmodel") -> Path:
    package = folder / "net.mlpackage"
    weights = package / "Data" / "com.apple.CoreML" / "weights"
    weights.mkdir(parents=True)
    head = (0xDEADBEEF).to_bytes(4, "little") + (2).to_bytes(4, "little") + (8).to_bytes(8, "little") + (128).to_bytes(8, "little")
    (weights / "weight.bin").write_bytes(bytes(64) + head.ljust(64, b"\0") + np.asarray([3, 4], "<f4").tobytes())
    (weights.parent / "model.mlmodel").write_bytes(_program(64))
    manifest = {"rootModelIdentifier": "id", "itemInfoEntries": {"id": {"path": name}}}
    (package / "Manifest.json").write_text(json.dumps(manifest))
    return package


def test_a_neural_network_has_its_layers_attrs_and_weights(tmp_path: Path) -> None:
    path = tmp_path / "net.mlmodel"
    path.write_bytes(_network())
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
    second = _model(900, b"", [_array("y", 2)], [_array("z", 2)])
    pipeline = _message((1, _network()), (1, second), (2, "net"), (2, "same"))
    path.write_bytes(_model(202, pipeline, [_array("x", 3)], [_array("z", 2)]))
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
        data = bytearray(_program(64) if seed % 2 else _network())
        data[int(rng.integers(40, len(data)))] = int(rng.integers(256))
        path.write_bytes(data[: int(rng.integers(41, len(data)))] if rng.random() < 0.2 else data)
        with suppress(GraphError):
            source = open_source(path)
            gc.load(path)
            for node in source.main.nodes:
                if node.weight is not None and node.weight.load is not None:
                    node.weight.load()
