"""Names that no file can have: every function that loads or saves refuses them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.checkpoints import CheckpointReader, merge_checkpoints, write_checkpoint
from graphcore.tf1.contrib.learn import VocabularyProcessor
from widgets import files as pictures

tf: Any = gc  # its namespaces are made when they are asked for
NAMES = ["a\0b", "\ud800", "a" * 5000, "\ud800/x", "a\0/x", "x/" * 3000]


@pytest.fixture
def session() -> Iterator[gc.Session]:
    """A session with a variable that has a value."""
    with gc.Graph().as_default() as graph:
        w = gc.Variable([1.0], name="w")
        session = gc.Session(graph)
        session.run(w.initializer)
        yield session


LOADS: dict[str, Callable[[str, gc.Session], Any]] = {
    "gc.load": lambda name, _: gc.load(name),
    "gc.graph_diff": lambda name, _: gc.graph_diff(name, name),
    "gc.register_op_list": lambda name, _: gc.register_op_list(name),
    "gc.restore_variables": lambda name, session: gc.restore_variables(session, name),
    "gc.train.load_checkpoint": lambda name, _: tf.train.load_checkpoint(name),
    "gc.train.load_variable": lambda name, _: tf.train.load_variable(name, "w"),
    "gc.train.list_variables": lambda name, _: tf.train.list_variables(name),
    "gc.train.import_meta_graph": lambda name, _: tf.train.import_meta_graph(name),
    "gc.train.Saver.restore": lambda name, session: tf.train.Saver().restore(session, name),
    "gc.saved_model.load": lambda name, session: tf.saved_model.loader.load(session, ["serve"], name),
    "gc.train.summary_iterator": lambda name, _: list(tf.train.summary_iterator(name)),
    "gc.python_io.tf_record_iterator": lambda name, _: list(tf.python_io.tf_record_iterator(name)),
    "gc.python_io.tf_record_iterator, GZIP": lambda name, _: list(
        tf.python_io.tf_record_iterator(name, tf.python_io.TFRecordOptions("GZIP"))
    ),
    "VocabularyProcessor.restore": lambda name, _: VocabularyProcessor.restore(name),
    "gc.gfile.Open": lambda name, _: tf.gfile.Open(name).read(),
    "gc.gfile.Stat": lambda name, _: tf.gfile.Stat(name),
    "gc.gfile.ListDirectory": lambda name, _: tf.gfile.ListDirectory(name),
    "gc.gfile.Copy": lambda name, _: tf.gfile.Copy(name, name),
    "CheckpointReader": lambda name, _: CheckpointReader(name),
    "merge_checkpoints": lambda name, _: merge_checkpoints([name], name),
    "gc.read_file": lambda name, session: session.run(tf.read_file(os.fsencode(name)) if name.isprintable() else tf.read_file(b"a\0b")),
}
SAVES: dict[str, Callable[[str, gc.Session], Any]] = {
    "gc.save": lambda name, session: gc.save(session.graph, name),
    "gc.save, text": lambda name, session: gc.save(session.graph, f"{name}.pbtxt"),
    "gc.save_saved_model": lambda name, session: gc.save_saved_model(session.graph, name),
    "gc.save_variables": lambda name, session: gc.save_variables(session, name),
    "gc.train.Saver.save": lambda name, session: tf.train.Saver().save(session, name),
    "gc.train.write_graph, folder": lambda name, session: tf.train.write_graph(session.graph, name, "g.pbtxt"),
    "gc.train.write_graph, name": lambda name, session: tf.train.write_graph(session.graph, ".", name),
    "gc.train.export_meta_graph": lambda name, _: tf.train.export_meta_graph(name),
    "gc.train.update_checkpoint_state": lambda name, _: tf.train.update_checkpoint_state(name, "model"),
    "gc.train.remove_checkpoint": lambda name, _: tf.train.remove_checkpoint(name),
    "gc.saved_model.builder": lambda name, _: tf.saved_model.builder.SavedModelBuilder(name),
    "gc.summary.FileWriter": lambda name, _: tf.summary.FileWriter(name),
    "gc.python_io.TFRecordWriter": lambda name, _: tf.python_io.TFRecordWriter(name),
    "gc.gfile.MakeDirs": lambda name, _: tf.gfile.MakeDirs(name),
    "gc.gfile.Remove": lambda name, _: tf.gfile.Remove(name),
    "gc.gfile.Rename": lambda name, _: tf.gfile.Rename(name, "x"),
    "VocabularyProcessor.save": lambda name, _: VocabularyProcessor(3).save(name),
    "write_checkpoint": lambda name, _: write_checkpoint(name, [("a", None, gc.float64, np.zeros(3))]),
    "a picture": lambda name, session: pictures.save(session.graph, f"{name}.txt"),
}
QUESTIONS: dict[str, Callable[[str], Any]] = {
    "gc.train.checkpoint_exists": tf.train.checkpoint_exists,
    "gc.train.get_checkpoint_mtimes": lambda name: tf.train.get_checkpoint_mtimes([name]),
    "gc.gfile.Exists": tf.gfile.Exists,
    "gc.gfile.IsDirectory": tf.gfile.IsDirectory,
    "gc.gfile.Glob": lambda name: tf.gfile.Glob(f"{name}/*"),
    "gc.saved_model.contains_saved_model": tf.saved_model.contains_saved_model,
}


@pytest.mark.parametrize("what", [*LOADS, *SAVES])
def test_a_name_that_no_file_can_have_is_refused(what: str, session: gc.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in NAMES:
        with pytest.raises(gc.GraphError) as refused:
            (LOADS | SAVES)[what](name, session)
        assert len(str(refused.value)) < 1000
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("what", QUESTIONS)
def test_nothing_is_there_under_a_name_that_no_file_can_have(what: str) -> None:
    assert not any(QUESTIONS[what](name) for name in NAMES)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
@pytest.mark.parametrize("what", ["gc.load", "gc.restore_variables", "gc.train.load_checkpoint", "gc.train.import_meta_graph"])
def test_a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for(what: str, session: gc.Session, tmp_path: Path) -> None:
    for name in ("model", "model.index", "saved_model.pb"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(gc.errors.FailedPreconditionError, match="it is a pipe or a device; required a file"):
        LOADS[what](str(tmp_path / "model"), session)
