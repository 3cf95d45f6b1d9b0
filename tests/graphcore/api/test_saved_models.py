"""Loaded SavedModels have the values that lie beside them."""

from __future__ import annotations

import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import FailedPreconditionError

SAVED_MODELS: Any = import_module("graphcore.tf1.saving.saved_models")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A SavedModel of `y = x w + b` with a table's initializer to run after loading."""
    place = tmp_path / "model"
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [None, 2], name="x")
        w = gc.Variable(gc.constant([[1.0], [2.0]]), name="w")
        b = gc.Variable(gc.constant([0.5]), name="b")
        y = gc.add(gc.matmul(x, w), b, name="y")
        started = gc.Variable(0.0, name="started")
        start = gc.assign(started, 7.0, name="start")
        with gc.Session() as session:
            session.run(gc.global_variables_initializer())
            session.run(gc.assign_add(w, [[1.0], [1.0]]))
            SAVED_MODELS.simple_save(session, str(place), {"x": x}, {"y": y}, legacy_init_op=start.op)
    return place


@pytest.mark.parametrize("of", ["folder", "file"])
@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_a_run_of_a_loaded_model_uses_the_values_beside_it(model: Path, of: str, engine: str) -> None:
    graph = gc.load(model if of == "folder" else model / "saved_model.pb")
    with gc.Session(graph, engine=engine) as session:
        np.testing.assert_allclose(session.run("y:0", {"x:0": [[1.0, 1.0]]}), [[5.5]])
        assert session.run("started:0") == 7.0


def test_each_way_to_run_restores_the_values_first(model: Path) -> None:
    graph = gc.load(model)
    assert gc.Session(graph).make_callable("y:0", ["x:0"])([[1.0, 1.0]]) == [[5.5]]
    assert gc.Session(graph).step_through("y:0", {"x:0": [[1.0, 1.0]]}).finish() == [[5.5]]
    session = gc.Session(graph)
    handle = session.partial_run_setup(["y:0"], ["x:0"])
    assert session.partial_run(handle, "y:0", {"x:0": [[1.0, 1.0]]}) == [[5.5]]


def test_values_that_a_session_changes_stay_changed(model: Path) -> None:
    graph = gc.load(model)
    with graph.as_default(), gc.Session() as session:
        session.run(graph.apply_op("Assign", [graph.get_tensor_by_name("b:0"), gc.constant([1.5])]))
        assert session.run("y:0", {"x:0": [[1.0, 1.0]]}) == [[6.5]]


def test_a_model_whose_values_are_gone_says_so(model: Path) -> None:
    shutil.rmtree(model / "variables")
    with gc.Session(gc.load(model)) as session, pytest.raises(FailedPreconditionError, match="uninitialized"):
        session.run("y:0", {"x:0": [[1.0, 1.0]]})


def test_a_damaged_checkpoint_is_named(model: Path) -> None:
    next((model / "variables").glob("*.data*")).write_bytes(b"")
    with gc.Session(gc.load(model)) as session, pytest.raises(FailedPreconditionError, match=r"values beside the loaded graph .*variables"):
        session.run("y:0", {"x:0": [[1.0, 1.0]]})
