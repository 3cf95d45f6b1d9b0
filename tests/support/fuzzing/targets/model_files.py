"""TFLite and OpenVINO models and files of weights, with damage. The first byte of an input says which kind of file it is."""

from __future__ import annotations

import functools
import io
import json
import random
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors.numpy import save

import graphcore as gc
from graphcore.checkpoints import write_checkpoint
from tests.support.coreml_files import network, program
from tests.support.fuzzing.fuzz_inputs import damaged
from tests.support.fuzzing.opening import open_as_a_viewer
from tests.support.fuzzing.target import Target

_FILES: Final = Path(__file__).parents[3] / "data" / "frontends"
_ENDINGS: Final = (".tflite", ".safetensors", ".safetensors.index.json", ".gguf", ".npz", ".npy", ".index", ".xml", ".mlmodel")
_MOST: Final = 50


def _tensors() -> dict[str, np.ndarray[Any, Any]]:
    return {f"model.{layer}.weight": np.arange(6, dtype=np.float32).reshape(2, 3) for layer in range(3)} | {"n": np.ones(4, np.int8)}


def _gguf(folder: Path) -> bytes:
    gguf: Any = import_module("gguf")
    writer = gguf.GGUFWriter(str(folder / "x.gguf"), "llama")
    writer.add_name("tiny")
    writer.add_token_list(["a", "b", "c"] * 5)
    values = np.ones((2, 64), np.float32)
    kind = gguf.GGMLQuantizationType.Q4_0
    writer.add_tensor("blk.0.weight", gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.add_tensor("blk.1.weight", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return (folder / "x.gguf").read_bytes()


def _arrays(ending: str) -> bytes:
    file = io.BytesIO()
    if ending == ".npy":
        np.save(file, _tensors()["model.0.weight"])
    else:
        values: dict[str, Any] = _tensors()
        np.savez_compressed(file, **values)
    return file.getvalue()


@functools.cache
def _files(ending: str) -> tuple[bytes, ...]:
    """Right files of a kind."""
    if ending in {".tflite", ".xml"}:
        return tuple([path.read_bytes() for path in sorted(_FILES.glob(f"*{ending}"))])
    if ending == ".mlmodel":
        return network(), program(64)
    if ending == ".safetensors":
        return (save(_tensors(), {"format": "pt"}),)
    if ending == ".safetensors.index.json":
        return (json.dumps({"metadata": {"total_size": 9}, "weight_map": {"a.b": "x.safetensors", "a.c": "y.safetensors"}}).encode(),)
    if ending in {".npz", ".npy"}:
        return (_arrays(ending),)
    with tempfile.TemporaryDirectory() as folder:
        if ending == ".gguf":
            return (_gguf(Path(folder)),)
        write_checkpoint(f"{folder}/x", [(name, None, gc.as_dtype(value.dtype), value) for name, value in _tensors().items()])
        return (Path(f"{folder}/x.index").read_bytes(),)


def make(rng: random.Random) -> bytes:
    """A file with damage."""
    number = rng.randrange(len(_ENDINGS))
    data = rng.choice(_files(_ENDINGS[number]))
    return bytes([number]) + damaged(data, data, rng)


def check(data: bytes) -> None:
    """Open the file, show it, and read some tensors and bodies. An error of one of them must not hide those of the others."""
    ending = _ENDINGS[data[0] % len(_ENDINGS)] if data else ""
    with tempfile.NamedTemporaryFile(suffix=ending) as file:
        file.write(data[1:])
        file.flush()
        open_as_a_viewer(Path(file.name), _MOST)


MODEL_FILES: Final = Target(make, check)
