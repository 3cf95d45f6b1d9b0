"""Graphs made by TensorFlow, read and written by this project, then run by TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import graphcore as gc
from graphcore.definitions.wire import load_graph_def, save_graph_def
from tests.oracle.conftest import Oracle

Array = npt.NDArray[Any]
VARIABLE = "GRAPHLOUPE_DATA"
SIDE = "tests.oracle.sides.graph_side"
TRAINED = "mlp_train_v1"
"""Its stored outputs are the losses of training."""


def data_folder() -> Path:
    """The graphs with inputs and outputs: GRAPHLOUPE_DATA, otherwise those of this repository."""
    return Path(os.environ.get(VARIABLE) or Path(__file__).parents[1] / "data")


FILES = sorted(data_folder().glob("*.pb"))


def stored(path: Path) -> tuple[dict[str, Array], dict[str, Array]]:
    """The feeds, and TensorFlow's outputs for them."""
    with np.load(path.with_suffix(".npz")) as arrays:
        feeds = {name.removeprefix("feed "): arrays[name] for name in arrays.files if name.startswith("feed ")}
        fetched = {name.removeprefix("fetch "): arrays[name] for name in arrays.files if not name.startswith("feed ")}
    return feeds, fetched


def outputs(oracle: Oracle, path: Path, form: str, data: bytes) -> dict[str, Array]:
    """TensorFlow's outputs of the graph in `data` for the inputs stored beside `path`."""
    feeds, expected = stored(path)
    if path.stem == TRAINED:
        return {"losses": oracle.call(f"{SIDE}:train_graph", data, form, feeds, len(expected["losses"]))}
    return dict(zip(expected, oracle.call(f"{SIDE}:run_graph", data, form, feeds, list(expected)), strict=True))


def through_definitions(source: Path, target: Path) -> None:
    save_graph_def(load_graph_def(source), target)


def through_a_graph(source: Path, target: Path) -> None:
    gc.save(gc.load(source), target)


WAYS: dict[str, Callable[[Path, Path], None]] = {"definitions": through_definitions, "graph": through_a_graph}


@pytest.mark.skipif(not FILES, reason=f"no graphs in {data_folder()}: set {VARIABLE} to the folder that has them")
def test_there_are_graphs_to_compare() -> None:
    assert {path.stem for path in FILES} >= {"functions_v2", "mlp_train_v1", "mobilenetv2", "transformer", "while_v1"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", ["pb", "pbtxt", "json"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_that_was_read_and_written_here_gives_the_same_in_tensorflow(
    path: Path, form: str, way: str, oracle: Oracle, tmp_path: Path
) -> None:
    target = tmp_path / f"written.{form}"
    WAYS[way](path, target)
    ours = outputs(oracle, path, form, target.read_bytes())
    for name, value in stored(path)[1].items():
        np.testing.assert_allclose(ours[name], value, rtol=1e-4, atol=1e-5, err_msg=name)
    for name, value in outputs(oracle, path, "pb", path.read_bytes()).items():
        np.testing.assert_array_equal(ours[name], value, err_msg=f"{name}, exactly as with the original file")


def test_a_saved_model_that_was_written_here_is_called_by_tensorflow(oracle: Oracle, tmp_path: Path) -> None:
    path = data_folder() / "transformer.pb"
    feeds, expected = stored(path)
    graph = gc.load(path)
    tensors = {each.partition(":")[0]: graph.get_tensor_by_name(each if ":" in each else f"{each}:0") for each in (*feeds, *expected)}
    inputs, results = ({name: tensors[name] for name in map(_plain, names)} for names in (feeds, expected))
    for text in (False, True):
        folder = tmp_path / str(text)
        gc.save_saved_model(graph, folder, signatures={"serving_default": (inputs, results)}, text=text)
        given = oracle.call(
            f"{SIDE}:run_saved_model", str(folder), "serving_default", {_plain(name): value for name, value in feeds.items()}
        )
        for name, value in expected.items():
            np.testing.assert_allclose(given[_plain(name)], value, rtol=1e-4, atol=1e-5)


def _plain(name: str) -> str:
    return name.partition(":")[0]
