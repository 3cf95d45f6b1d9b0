"""Loaded SavedModels have the values that lie beside them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import FailedPreconditionError

SAVED_MODELS: Any = import_module("graphcore.tf1.saved_model")
TRAIN: Any = import_module("graphcore").train
FED = {"x:0": [[1.0, 1.0]]}


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


def refused(run: Callable[[], object]) -> FailedPreconditionError:
    """The error of a run that uses a variable without a value."""
    with pytest.raises(FailedPreconditionError, match="uninitialized value") as caught:
        run()
    return caught.value


def partially_run(session: gc.Session) -> Any:
    """A run in one step of several."""
    return session.partial_run(session.partial_run_setup(["y:0"], ["x:0"]), "y:0", FED)


@pytest.mark.parametrize("of", ["folder", "file"])
@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_a_run_without_the_values_of_a_model_says_where_they_were_looked_for(model: Path, of: str, engine: str) -> None:
    shutil.rmtree(model / "variables")
    session = gc.Session(gc.load(model if of == "folder" else model / "saved_model.pb"), engine=engine)
    error = refused(lambda: session.run("y:0", FED))
    assert error.message == (
        "Attempting to use uninitialized value w: the file of the graph was loaded without values; "
        f"they were looked for at '{model / 'variables' / 'variables.index'}', which is not there"
    )
    assert "initialize_all_variables" not in f"{error} {error.suggestion} {error.__notes__}"
    assert (error.node, error.required) == ("w", "a value in the variable 'w'")


@pytest.mark.parametrize(
    "run",
    [
        lambda graph: gc.Session(graph).make_callable("y:0", ["x:0"])([[1.0, 1.0]]),
        lambda graph: gc.Session(graph).step_through("y:0", FED).finish(),
        lambda graph: gc.Session(graph).run("y:0", FED, options=gc.RunOptions(trace=True)),
        lambda graph: partially_run(gc.Session(graph)),
        lambda graph: gc.Session(graph, devices=["/cpu:0", "/cpu:1"]).run("y:0", FED),
    ],
    ids=["callable", "steps", "trace", "partial", "devices"],
)
def test_each_way_to_run_without_the_values_says_so(model: Path, run: Callable[[gc.Graph], object]) -> None:
    shutil.rmtree(model / "variables")
    assert "they were looked for at" in refused(lambda: run(gc.load(model))).message


def test_the_advice_for_absent_values_restores_a_checkpoint_from_elsewhere(model: Path, tmp_path: Path) -> None:
    shutil.move(model / "variables", tmp_path / "elsewhere")
    session = gc.Session(gc.load(model))
    advice = refused(lambda: session.run("y:0", FED)).suggestion
    assert "`session.run('save/restore_all', {'save/Const:0': path})`" in advice
    session.run("save/restore_all", {"save/Const:0": str(tmp_path / "elsewhere" / "variables")})
    np.testing.assert_allclose(session.run("y:0", FED), [[5.5]])


def test_the_advice_for_absent_values_restores_a_file_of_variables(model: Path, tmp_path: Path) -> None:
    with gc.Session(gc.load(model)) as session:
        session.run("y:0", FED)
        gc.save_variables(session, tmp_path / "values.npz")
    gc.save_saved_model(gc.load(model), tmp_path / "bare")
    session = gc.Session(gc.load(tmp_path / "bare"))
    advice = refused(lambda: session.run("y:0", FED)).suggestion
    assert "`gc.restore_variables(session, path)`" in advice
    assert "session.run(" not in advice, "the model has no saver"
    gc.restore_variables(session, tmp_path / "values.npz")
    np.testing.assert_allclose(session.run("y:0", FED), [[5.5]])


def test_a_variable_made_beside_a_loaded_model_has_the_usual_advice(model: Path) -> None:
    shutil.rmtree(model / "variables")
    graph = gc.load(model)
    with graph.as_default():
        own = gc.Variable(1.0, name="own")
        session = gc.Session()
        assert "gc.initialize_all_variables()" in refused(lambda: session.run(own)).suggestion
        session.run(gc.initialize_all_variables())
        assert session.run(own) == 1.0


def exported() -> gc.GraphDef:
    """A graph with one variable, of which Python knows nothing elsewhere."""
    graph = gc.Graph()
    with graph.as_default():
        gc.identity(gc.Variable(2.0, name="w"), name="y")
    return graph.as_graph_def()


@pytest.mark.parametrize("how", ["import", "load"])
def test_an_imported_graph_is_not_advised_what_does_not_initialise_it(how: str, tmp_path: Path) -> None:
    if how == "load":
        graph = gc.load(gc.save(exported(), tmp_path / "graph.pb"))
    else:
        gc.import_graph_def(exported(), graph := gc.Graph(), name="")
    session = gc.Session(graph)
    error = refused(lambda: session.run("y:0"))
    assert "w: no variable of Python has this name, so gc.initialize_all_variables() does not initialise it" in error.message
    assert "session.run(gc.initialize_all_variables())" not in f"{error.suggestion} {error.__notes__}"
    for call in ("gc.train.import_meta_graph(", "gc.load(folder)", "gc.restore_variables(session, path)"):
        assert call in error.suggestion
    assert "Run `session.run('w/Assign')` for its initial value" in error.suggestion
    session.run("w/Assign")
    assert session.run("y:0") == 2.0


def test_the_advice_names_no_initial_value_where_the_graph_has_none(tmp_path: Path) -> None:
    whole = exported()
    kept = tuple(node for node in whole.node if node.name != "w/Assign")
    graph = gc.load(gc.save(msgspec.structs.replace(whole, node=kept), tmp_path / "graph.pb"))
    assert refused(lambda: gc.Session(graph).run("y:0")).suggestion.startswith("Restore its value, in the same session")


def test_a_graph_with_its_python_variables_has_the_usual_advice(tmp_path: Path) -> None:
    with gc.Graph().as_default(), gc.Session() as session:
        gc.identity(gc.Variable(2.0, name="w"), name="y")
        session.run(gc.initialize_all_variables())
        TRAIN.Saver().save(session, str(tmp_path / "model"))
    with gc.Graph().as_default(), gc.Session() as session:
        TRAIN.import_meta_graph(str(tmp_path / "model.meta"))
        assert "gc.initialize_all_variables()" in refused(lambda: session.run("y:0")).suggestion


def test_the_values_of_a_variable_in_a_function_of_a_model_are_missed_by_name(tmp_path: Path) -> None:
    graph = gc.Graph()
    with graph.as_default():
        v = gc.get_variable("v", [2], use_resource=True)
        gc.cond(gc.placeholder(gc.bool, [], name="p"), lambda: v + 1.0, lambda: v - 1.0, name="chosen")
    gc.save_saved_model(graph, tmp_path / "model")
    loaded = gc.load(tmp_path / "model")
    error = refused(lambda: gc.Session(loaded).run(loaded.get_operation_by_name("chosen").outputs[0], {"p:0": True}))
    assert "uninitialized value v: the file of the graph was loaded without values" in error.message


def test_a_damaged_checkpoint_is_named(model: Path) -> None:
    next((model / "variables").glob("*.data*")).write_bytes(b"")
    with gc.Session(gc.load(model)) as session, pytest.raises(FailedPreconditionError, match=r"values beside the loaded graph .*variables"):
        session.run("y:0", {"x:0": [[1.0, 1.0]]})
