"""`gc.train.Saver` and what belongs to it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.definitions import GraphDef

train: Any = import_module("graphcore.train")


def model(*, use_resource: bool = False) -> tuple[gc.Variable, gc.Variable]:
    w = gc.Variable(np.arange(6.0, dtype=np.float32).reshape(2, 3), name="w", use_resource=use_resource)
    return w, gc.Variable(np.ones(3, np.float32), name="b", use_resource=use_resource)


def started(graph: gc.Graph) -> gc.Session:
    session = gc.Session(graph=graph)
    session.run(gc.initialize_all_variables())
    return session


@pytest.mark.parametrize("use_resource", [False, True])
def test_what_is_saved_is_restored_without_initialisation(tmp_path: Path, use_resource: bool) -> None:
    with gc.Graph().as_default() as graph:
        w, b = model(use_resource=use_resource)
        saver = train.Saver()
        with started(graph) as session:
            session.run(w.assign(np.full((2, 3), 5, np.float32)))
            path = saver.save(session, tmp_path / "model.ckpt", global_step=12)
        assert path == str(tmp_path / "model.ckpt-12")
        assert train.latest_checkpoint(tmp_path) == path
        with gc.Session(graph=graph) as session:
            saver.restore(session, path)
            assert session.run(w).tolist() == [[5] * 3] * 2
            assert session.run(b).tolist() == [1, 1, 1]
    assert train.list_variables(tmp_path) == [("b", [3]), ("w", [2, 3])]
    assert train.load_variable(path, "b").tolist() == [1, 1, 1]


def test_only_the_last_checkpoints_are_kept_and_listed(tmp_path: Path) -> None:
    with gc.Graph().as_default() as graph:
        step = gc.Variable(np.int32(0), name="step")
        saver = train.Saver(max_to_keep=2)
        with started(graph) as session:
            for _ in range(4):
                session.run(step.assign_add(1))
                saver.save(session, tmp_path / "m", global_step=step)
    assert sorted({path.name.partition(".")[0] for path in tmp_path.iterdir()}) == ["checkpoint", "m-3", "m-4"]
    state = train.get_checkpoint_state(str(tmp_path))
    assert state.model_checkpoint_path == str(tmp_path / "m-4")
    assert state.all_model_checkpoint_paths == (str(tmp_path / "m-3"), str(tmp_path / "m-4"))
    assert saver.last_checkpoints == list(state.all_model_checkpoint_paths)


def test_paths_stay_as_they_are_written_and_name_one_checkpoint_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with gc.Graph().as_default() as graph:
        model()
        saver = train.Saver(max_to_keep=1)
        with started(graph) as session:
            assert saver.save(session, "./m", global_step=10) == "./m-10" == train.latest_checkpoint(".")
            assert saver.save(session, "m", global_step=10) == "m-10"
            assert saver.last_checkpoints == ["m-10"]
            saver.restore(session, "./m-10")


def test_variables_are_saved_under_the_names_of_a_mapping(tmp_path: Path) -> None:
    with gc.Graph().as_default() as graph:
        w, b = model()
        with started(graph) as session:
            path = train.Saver({"weights": w}).save(session, tmp_path / "m")
            session.run(b.assign(np.zeros(3, np.float32)))
            assert train.load_checkpoint(path).get_variable_to_shape_map() == {"weights": [2, 3]}
            with pytest.raises(gc.errors.NotFoundError, match=r"Key b not found in checkpoint .*; it has weights"):
                train.Saver([b]).restore(session, path)
            assert session.run(b).tolist() == [0, 0, 0]


@pytest.mark.parametrize("text", [False, True])
def test_the_graph_beside_a_checkpoint_has_the_saver_and_the_collections(tmp_path: Path, text: bool) -> None:
    with gc.Graph().as_default() as graph:
        w, b = model()
        gc.add_to_collection("outputs", gc.add(w, b, name="y"))
        gc.add_to_collection("sizes", 3)
        saver = train.Saver()
        with started(graph) as session:
            path = saver.save(session, tmp_path / "m")
        if text:
            saver.export_meta_graph(f"{path}.meta", as_text=True)
    with gc.Graph().as_default() as graph:
        again = train.import_meta_graph(f"{path}.meta")
        assert gc.get_collection("sizes") == [3]
        assert [variable.name for variable in gc.trainable_variables()] == ["w:0", "b:0"]
        with gc.Session(graph=graph) as session:
            again.restore(session, path)
            assert session.run(gc.get_collection("outputs")[0]).tolist() == [[1, 2, 3], [4, 5, 6]]
            session.run(gc.initialize_all_variables())
        train.import_meta_graph(f"{path}.meta", import_scope="copy")
        assert [variable.name for variable in gc.trainable_variables()][2:] == ["copy/w:0", "copy/b:0"]


def test_an_exported_graph_saves_and_restores_by_its_nodes(tmp_path: Path) -> None:
    with gc.Graph().as_default() as graph:
        model()
        definition: GraphDef = train.Saver().export_meta_graph().graph_def
        names = {node.name for node in definition.node}
    assert {"save/Const", "save/SaveV2", "save/control_dependency", "save/RestoreV2", "save/Assign", "save/restore_all"} <= names
    with gc.Graph().as_default() as graph, gc.Session(graph=graph) as session:
        gc.import_graph_def(definition, prefix="")
        session.run(["w/Assign", "b/Assign"])
        session.run("save/control_dependency:0", {"save/Const:0": str(tmp_path / "m")})
        session.run("save/restore_all", {"save/Const:0": str(tmp_path / "m")})
        assert session.run("w:0").tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_saver_needs_variables_each_once() -> None:
    with gc.Graph().as_default():
        with pytest.raises(gc.errors.InvalidArgumentError, match="No variables to save"):
            train.Saver()
        assert train.Saver(allow_empty=True) is not None
        w, _ = model()
        with pytest.raises(gc.errors.InvalidArgumentError, match="a variable is given twice"):
            train.Saver([w, w])


def test_refusals_say_what_is_wrong(tmp_path: Path) -> None:
    with gc.Graph().as_default() as graph:
        w, _ = model()
        saver = train.Saver()
        with gc.Session(graph=graph) as session:
            with pytest.raises(gc.errors.FailedPreconditionError, match="uninitialized value"):
                saver.save(session, tmp_path / "m")
            assert list(tmp_path.iterdir()) == []
            with pytest.raises(ValueError, match="save_path when it is None"):
                saver.restore(session, train.latest_checkpoint(tmp_path))
            with pytest.raises(gc.errors.NotFoundError, match="There is no checkpoint"):
                saver.restore(session, tmp_path / "m")
            session.run(gc.initialize_all_variables())
            with pytest.raises(gc.errors.FailedPreconditionError, match=r"Parent directory of .* doesn't exist"):
                saver.save(session, tmp_path / "none" / "m")
            path = saver.save(session, tmp_path / "m")
    with gc.Graph().as_default() as graph, gc.Session(graph=graph) as session:
        gc.Variable(np.zeros((3, 2), np.float32), name="w")
        with pytest.raises(gc.errors.InvalidArgumentError, match=r"[\[(]3, ?2[\])]"):
            train.Saver().restore(session, path)
        reshaping = train.Saver(reshape=True)
        reshaping.restore(session, path)
        assert session.run("w:0").tolist() == [[0, 1], [2, 3], [4, 5]]
        del w


def test_a_folder_that_moves_keeps_its_list_if_paths_are_relative(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    with gc.Graph().as_default() as graph:
        model()
        with started(graph) as session:
            train.Saver(save_relative_paths=True).save(session, tmp_path / "old" / "m", 1)
    (tmp_path / "old").rename(tmp_path / "new")
    assert train.latest_checkpoint(tmp_path / "new") == str(tmp_path / "new" / "m-1")
    assert train.get_checkpoint_state(tmp_path / "none") is None
    (tmp_path / "new" / "checkpoint").write_text("model_checkpoint_path: 7")
    with pytest.raises(gc.errors.InvalidArgumentError, match="no list of checkpoints"):
        train.get_checkpoint_state(tmp_path / "new")
