"""Files of weights without a graph, compared with what their own libraries say."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import graphcore as gc
from graphcore.checkpoints import write_checkpoint
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.frontends.foreign import ForeignGraph, WeightRef
from graphcore.frontends.sources import open_source
from widgets import to_outline

gguf: Any = import_module("gguf")


def _tensors() -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(1)
    names = [f"model.layers.{layer}.{name}.weight" for layer in range(3) for name in ("attn.q", "mlp.up")]
    values: dict[str, np.ndarray[Any, Any]] = {name: rng.normal(size=(4, 8)).astype(np.float32) for name in names}
    return values | {"model.norm.bias": np.ones(4, np.float16), "count": np.asarray(3, np.int64)}


def _weights(source: ForeignGraph) -> dict[str, WeightRef]:
    return {node.name: node.weight for node in source.main.nodes if node.weight is not None}


def _elements(weight: WeightRef) -> np.ndarray[Any, Any]:
    assert weight.load is not None
    return weight.load()


def test_safetensors_are_those_that_the_library_reads(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file(_tensors(), path, metadata={"format": "pt"})
    source = open_source(path)
    assert not source.has_graph
    assert source.facts["format"] == "pt"
    weights = _weights(source)
    with safe_open(path, "numpy") as file:
        assert set(file.keys()) == set(weights)
        for name, weight in weights.items():
            np.testing.assert_array_equal(_elements(weight), file.get_tensor(name))


def test_half_precision_of_safetensors_is_read(tmp_path: Path) -> None:
    path = tmp_path / "half.safetensors"
    save_file({"a": np.asarray([1.5, -2], ml_dtypes.bfloat16)}, path)
    np.testing.assert_array_equal(_elements(_weights(open_source(path))["a"]).astype(np.float32), [1.5, -2])


def test_an_index_joins_its_files(tmp_path: Path) -> None:
    tensors = _tensors()
    names = sorted(tensors)
    places = {name: f"part-{place % 2}.safetensors" for place, name in enumerate(names)}
    for file in set(places.values()):
        save_file({name: tensors[name] for name in names if places[name] == file}, tmp_path / file)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": places}))
    assert set(_weights(open_source(index))) == set(tensors)
    assert set(_weights(open_source(tmp_path))) == set(tensors)
    (tmp_path / "part-1.safetensors").unlink()
    notes = " ".join(open_source(index).notes)
    assert "1 of 2 files are not beside the index: part-1.safetensors" in notes


@pytest.mark.parametrize("name", ["../secret.safetensors", "/etc/passwd", "a\\b", ".."])
def test_an_index_reads_no_file_outside_its_folder(tmp_path: Path, name: str) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": name}}))
    with pytest.raises(InvalidArgumentError, match="not in its own folder"):
        open_source(index)


def test_gguf_is_read_with_its_metadata_and_blocks(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    values = np.random.default_rng(1).normal(size=(4, 64)).astype(np.float32)
    packed = gguf.quants.quantize(values, gguf.GGMLQuantizationType.Q8_0)
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name("tiny")
    writer.add_token_list([f"t{number}" for number in range(20)])
    writer.add_tensor("blk.0.attn_q.weight", packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("output.weight", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    source = open_source(path)
    assert source.facts["general.architecture"] == "llama"
    assert source.facts["tokenizer.ggml.tokens"].startswith("20 values: t0, t1")
    weights = _weights(source)
    reader = gguf.GGUFReader(path)
    assert [(tensor.name, tuple(tensor.shape[::-1].tolist()), int(tensor.n_bytes)) for tensor in reader.tensors] == [
        (name, weight.shape, weight.nbytes) for name, weight in weights.items()
    ]
    np.testing.assert_array_equal(_elements(weights["output.weight"]), values)
    quantised = weights["blk.0.attn_q.weight"]
    assert quantised.dtype == "Q8_0"
    np.testing.assert_array_equal(_elements(quantised), gguf.quants.dequantize(packed, gguf.GGMLQuantizationType.Q8_0))


def test_arrays_of_an_archive_are_read_and_objects_never(tmp_path: Path) -> None:
    path = tmp_path / "arrays.npz"
    values: dict[str, Any] = {name.replace(".", "/"): value for name, value in _tensors().items()}
    np.savez_compressed(path, **values, harm=np.asarray([{1}], object))
    source = open_source(path)
    weights = _weights(source)
    np.testing.assert_array_equal(_elements(weights["model/layers/0/mlp/up/weight"]), _tensors()["model.layers.0.mlp.up.weight"])
    assert weights["harm"].load is None
    assert "unpickling runs code" in " ".join(source.notes)


def test_one_array_is_a_tensor(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(_elements(_weights(open_source(path))["x"]), np.arange(6).reshape(2, 3))


def test_a_checkpoint_is_shown_with_and_without_its_elements(tmp_path: Path) -> None:
    prefix = tmp_path / "model"
    values = {"layer/kernel": np.ones((2, 3), np.float32), "layer/bias": np.zeros(3, np.float32)}
    write_checkpoint(str(prefix), [(name, None, gc.float32, value) for name, value in values.items()])
    weights = _weights(open_source(f"{prefix}.index"))
    np.testing.assert_array_equal(_elements(weights["layer/kernel"]), np.ones((2, 3)))
    for data in tmp_path.glob("*.data-*"):
        data.unlink()
    source = open_source(f"{prefix}.index")
    assert _weights(source)["layer/kernel"].shape == (2, 3)
    assert _weights(source)["layer/kernel"].load is None
    assert "The elements are not there" in " ".join(source.notes)


def test_the_picture_is_a_tree_by_the_names_of_tensors(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file(_tensors(), path)
    names = {node.name for node in gc.load(path).op_nodes()}
    assert any(name.startswith("model/layers") for name in names)


def test_the_first_picture_opens_scopes_while_they_have_few_parts(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file(_tensors(), path)
    assert "Tensor model/norm/bias half [4]" in to_outline(gc.load(path))
    save_file({f"model.layers.{layer}.{name}.weight": np.ones(2, np.float32) for layer in range(40) for name in ("attn", "mlp")}, path)
    outline = to_outline(gc.load(path))
    assert "layers/ (80 nodes)" in outline
    assert "Tensor" not in outline


def test_a_header_that_claims_too_much_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "bad.safetensors"
    header = json.dumps({"a": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 16)
    with pytest.raises(GraphError, match=r"Tensor 'a' of 'bad\.safetensors' is at bytes"):
        gc.load(path)


def test_a_tensor_without_elements_has_a_shape_that_numpy_can_hold(tmp_path: Path) -> None:
    path = tmp_path / "empty.safetensors"
    shapes = {"empty": [0, 3], "huge": [0, 1 << 30, 1 << 30, 1 << 30]}
    header = json.dumps({name: {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]} for name, shape in shapes.items()}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    weights = _weights(open_source(path))
    assert _elements(weights["empty"]).shape == (0, 3)
    with pytest.raises(GraphError, match=r"'huge'.* has shape \[0, 1073741824"):
        _elements(weights["huge"])
