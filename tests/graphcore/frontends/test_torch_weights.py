"""PyTorch's saved states, read without running what is in them."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from graphcore.frontends.sources import open_source

FILES = Path(__file__).parents[2] / "data" / "frontends"


class Harmful:
    def __reduce__(self) -> Any:
        return print, ("this runs when it is unpickled",)


def test_a_state_is_a_tree_of_tensors_without_a_graph() -> None:
    source = open_source(FILES / "state.pt")
    assert not source.has_graph
    assert source.facts == {"epoch": "3"}
    shapes = {node.name: node.outputs[0].shape for node in source.main.nodes}
    assert shapes["model.0.weight"] == (4, 3, 3, 3)
    assert next(node.kind for node in source.main.nodes if node.name == "model.1.running_mean") == "buffer"
    assert any(node.name.startswith("model") for node in gc.load(FILES / "state.pt").op_nodes())


def test_a_tensor_is_read_with_its_strides_and_type() -> None:
    weight = next(node.weight for node in open_source(FILES / "state.pt").main.nodes if node.name == "half")
    assert weight is not None
    assert weight.load is not None
    assert (weight.dtype, weight.shape) == ("bfloat16", (3, 2))
    np.testing.assert_array_equal(weight.load().astype(np.float32), [[0, 3], [1, 4], [2, 5]])


def test_the_older_form_has_the_same_tensors() -> None:
    older = {node.name: node.weight for node in open_source(FILES / "state_legacy.pth").main.nodes}
    for node in open_source(FILES / "state.pt").main.nodes:
        if node.name.startswith("model."):
            one, other = node.weight, older[node.name.removeprefix("model.")]
            assert one is not None
            assert other is not None
            assert one.load is not None
            assert other.load is not None
            np.testing.assert_array_equal(one.load(), other.load())


def test_a_pickled_module_is_refused_with_the_reason() -> None:
    with pytest.raises(InvalidArgumentError, match=r"unpickling can run any code: required tensors, .*, got 'torch\.nn\.modules"):
        open_source(FILES / "whole_module.pt")


def test_nothing_in_a_pickle_is_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "harmful.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"weight": Harmful()}, protocol=2))
    with pytest.raises(InvalidArgumentError, match=r"got '__builtin__\.print'"):
        gc.load(path)
    assert not capsys.readouterr().out


def test_a_tensor_beyond_its_storage_is_an_error_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cut.pt"
    with zipfile.ZipFile(FILES / "state.pt") as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, data[: len(data) // 2] if "/data/" in name else data)
    weight = next(node.weight for node in open_source(path).main.nodes if node.name == "model.0.weight")
    assert weight is not None
    assert weight.load is not None
    with pytest.raises(InvalidArgumentError, match="Required bytes 0 to 432 of 'data/"):
        weight.load()
