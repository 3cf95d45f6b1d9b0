"""The kinds of saves, each of a number to one place over and over, and reading the number back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import graphcore as gc
from graphcore.checkpoints import CheckpointReader, merge_checkpoints, write_checkpoint
from graphcore.tf1.contrib.learn import VocabularyProcessor
from widgets import files as pictures

tf: Any = gc  # its namespaces are made when they are asked for
SIZE = 3000
"""Elements of a saved tensor; all of them are the number."""


class Kind:
    """A way to save numbers. A child process makes one of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, number: int) -> None:
        """Save a number."""
        raise NotImplementedError

    def read(self) -> int:
        """The number that was saved last."""
        raise NotImplementedError


def only(array: Any) -> int:
    """The number of which a tensor consists."""
    (number,) = set(np.asarray(array).reshape(-1).tolist())
    return int(number)


class Variables(Kind):
    """Variables of a session in one archive."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        with gc.Graph().as_default() as self.graph:
            self.number = gc.placeholder(gc.float32, [])
            self.w = gc.Variable(np.zeros(SIZE, np.float32), name="w")
            self.set = self.w.assign(gc.fill([SIZE], self.number))
            self.saver = tf.train.Saver(max_to_keep=2)

    def begun(self, number: int) -> gc.Session:
        """A session whose variable has the number."""
        session = gc.Session(self.graph)
        session.run(self.set.op, {self.number: number})
        return session

    def save(self, number: int) -> None:
        gc.save_variables(self.begun(number), self.folder / "model.npz")

    def read(self) -> int:
        session = gc.Session(self.graph)
        gc.restore_variables(session, self.folder / "model.npz")
        return only(session.run(self.w))


class SameName(Variables):
    """Checkpoints of one name."""

    def save(self, number: int) -> None:
        self.saver.save(self.begun(number), str(self.folder / "model"))

    def read(self) -> int:
        path = tf.train.latest_checkpoint(str(self.folder))
        assert path is not None
        session = gc.Session(self.graph)
        self.saver.restore(session, path)
        with gc.Graph().as_default() as graph:
            again = tf.train.import_meta_graph(f"{path}.meta")
            assert again is not None
            other = gc.Session(graph)
            again.restore(other, path)
            assert only(other.run("w:0")) == only(session.run(self.w))
        return only(session.run(self.w))


class Steps(SameName):
    """Checkpoints with the numbers of steps, of which the last two are kept."""

    def save(self, number: int) -> None:
        self.saver.save(self.begun(number), str(self.folder / "model"), global_step=number)


class Merged(Kind):
    """Checkpoints that are made of two."""

    def save(self, number: int) -> None:
        parts = [str(self.folder / name) for name in ("a", "b")]
        for part in parts:
            write_checkpoint(part, [(part[-1], None, gc.int64, np.full(SIZE, number))])
        merge_checkpoints(parts, str(self.folder / "model"))

    def read(self) -> int:
        reader = CheckpointReader(self.folder / "model")
        assert only(reader.get_tensor("a")) == only(reader.get_tensor("b"))
        return only(reader.get_tensor("a"))


def graph_of(number: int) -> gc.Graph:
    """A graph with a constant."""
    with gc.Graph().as_default() as graph:
        gc.constant(np.full(SIZE, number), name="n")
    return graph


def number_of(graph: gc.Graph) -> int:
    """The constant of a graph."""
    return only(gc.Session(graph).run("n:0"))


class Graphs(Kind):
    """Graph files, binary."""

    name = "graph.pb"

    def save(self, number: int) -> None:
        gc.save(graph_of(number), self.folder / self.name)

    def read(self) -> int:
        return number_of(gc.load(self.folder / self.name))


class TextGraphs(Graphs):
    """Graph files as text."""

    name = "graph.pbtxt"


class SavedModels(Kind):
    """SavedModels."""

    def save(self, number: int) -> None:
        gc.save_saved_model(graph_of(number), self.folder / "model")

    def read(self) -> int:
        return number_of(gc.load(self.folder / "model"))


class Pages(Kind):
    """Pages with a picture of a graph."""

    def save(self, number: int) -> None:
        with gc.Graph().as_default() as graph:
            gc.constant(1, name=f"number_{number}_x")
        pictures.save(graph, self.folder / "page.svg")

    def read(self) -> int:
        text = (self.folder / "page.svg").read_text()
        assert text.rstrip().endswith("</svg>")
        return int(text.partition("number_")[2].partition("_x")[0])


class Lists(Kind):
    """Lists of checkpoints."""

    def save(self, number: int) -> None:
        tf.train.update_checkpoint_state(str(self.folder), f"{self.folder}/model-{number}", [f"{self.folder}/model-{number}"] * 50)

    def read(self) -> int:
        state = tf.train.get_checkpoint_state(str(self.folder))
        assert state is not None
        return int(state.model_checkpoint_path.rpartition("-")[2])


class Words(Kind):
    """Vocabularies of text processors."""

    def save(self, number: int) -> None:
        VocabularyProcessor(number).save(str(self.folder / "words"))

    def read(self) -> int:
        return int(VocabularyProcessor.restore(str(self.folder / "words")).max_document_length)


class Traces(Kind):
    """Traces of runs."""

    def save(self, number: int) -> None:
        with gc.Graph().as_default() as graph:
            made = gc.identity(gc.constant(1), name=f"number_{number}_x")
            trace = gc.RunMetadata()
            gc.Session(graph).run(made.op, options=gc.RunOptions(trace_level=gc.RunOptions.FULL_TRACE), run_metadata=trace)
        assert trace.trace is not None
        trace.trace.save(self.folder / "trace.json")

    def read(self) -> int:
        text = json.dumps(json.loads((self.folder / "trace.json").read_text()))
        return int(text.partition("number_")[2].partition("_x")[0])


class Events(Kind):
    """Events, of which those that were flushed stay."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.writer: Any = None

    def save(self, number: int) -> None:
        self.writer = self.writer or tf.summary.FileWriter(str(self.folder))
        self.writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="n" * SIZE, simple_value=number)]), number)
        self.writer.flush()

    def read(self) -> int:
        steps = [0]
        for path in sorted(self.folder.glob("events*")):
            try:
                steps.extend(event.step for event in tf.train.summary_iterator(str(path)))  # those before a damaged one too
            except gc.errors.InvalidArgumentError as error:
                if "truncated record" not in error.message:  # as the last event may be
                    raise
        return max(steps)


KINDS: dict[str, Callable[[Path], Kind]] = {
    kind.__name__: kind
    for kind in (Variables, SameName, Steps, Merged, Graphs, TextGraphs, SavedModels, Pages, Lists, Words, Traces, Events)
}
