"""Summaries and event files beside TensorFlow's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import graphcore
from tests.oracle.conftest import Oracle

gc: Any = graphcore  # its namespaces are found on demand
RANDOM = np.random.default_rng(3)
INPUTS: dict[str, Any] = {
    "w": RANDOM.normal(size=(40, 30)).astype(np.float32),
    "images": RANDOM.normal(size=(4, 17, 23, 3)).astype(np.float32),
    "grey": RANDOM.uniform(0, 9, size=(1, 28, 28, 1)),
    "photo": RANDOM.integers(0, 256, size=(2, 64, 50, 4)).astype(np.uint8),
    "holes": np.array([[[[0.0], [np.nan]], [[2.0], [np.inf]]]], np.float32),
    "sound": RANDOM.uniform(-1.2, 1.2, size=(2, 50, 2)).astype(np.float32),
}
PROGRAM = """
with tf.name_scope("layer"):
    tf.summary.scalar("loss of x", tf.constant(2.5))
tf.summary.scalar("rate", tf.constant(3), family="train")
tf.summary.histogram("w", w)
tf.summary.histogram("none", np.zeros([0], np.float32))
tf.summary.histogram("doubles", grey)
tf.summary.histogram("large", np.array([-1e30, 1e300, 0.0, 1e-20]))
tf.summary.image("images", images)
tf.summary.image("grey", grey, 1)
tf.summary.image("photo", photo)
tf.summary.image("holes", holes)
tf.summary.audio("sound", sound, 8000.0)
tf.summary.text("notes", tf.constant(["# a", "b"]))
merged = tf.summary.merge_all()
"""
THEIRS = f"""
v1 = tf.compat.v1
names = dict(inputs, tf=v1, np=np)
with v1.Graph().as_default(), v1.Session() as session:
    exec({PROGRAM!r}, names)
    answer = names["merged"].name, session.run(names["merged"])
"""
READ = """
answer = []
for path in arguments["paths"]:
    for event in tf.compat.v1.train.summary_iterator(path):
        kind = event.WhichOneof("what")
        answer.append((kind, event.step, len(tf.compat.v1.GraphDef.FromString(event.graph_def).node) if kind == "graph_def" else 0))
        if kind == "summary":
            answer.append([value.tag for value in event.summary.value])
        if kind == "tagged_run_metadata":
            times = tf.compat.v1.RunMetadata.FromString(event.tagged_run_metadata.run_metadata)
            answer.append(sorted({stats.node_name for device in times.step_stats.dev_stats for stats in device.node_stats}))
        if kind == "meta_graph_def":
            answer.append(sorted(tf.compat.v1.MetaGraphDef.FromString(event.meta_graph_def).collection_def))
"""
WRITE = """
import glob
v1 = tf.compat.v1
with v1.Graph().as_default() as graph:
    x = v1.constant(1.0, name="x")
    writer = v1.summary.FileWriter(arguments["folder"], graph)
    writer.add_summary(v1.Summary(value=[v1.Summary.Value(tag="a", simple_value=0.5)]), 4)
    writer.close()
answer = glob.glob(arguments["folder"] + "/*")
"""


def ours(program: str) -> tuple[Any, Any]:
    names: dict[str, Any] = {"tf": gc, "np": np, **INPUTS}
    with gc.Graph().as_default(), gc.Session() as session:
        exec(program, names)
        return names["merged"].name, session.run(names["merged"])


def test_summaries_are_tensorflows_byte_by_byte(oracle: Oracle) -> None:
    name, expected = oracle.run(THEIRS, INPUTS).answer
    assert ours(PROGRAM) == (name, expected)


def test_tensorflow_reads_an_event_file(oracle: Oracle, tmp_path: Path) -> None:
    with gc.Graph().as_default() as graph, gc.Session() as session:
        merged = gc.summary.merge([gc.summary.scalar("loss", gc.Variable(1.0, name="w").read_value())])
        session.run(gc.global_variables_initializer())
        with gc.summary.FileWriter(tmp_path, graph) as writer:
            metadata = gc.RunMetadata()
            found = session.run(merged, options=gc.RunOptions(trace_level=gc.RunOptions.FULL_TRACE), run_metadata=metadata)
            writer.add_summary(found, 5)
            writer.add_run_metadata(metadata, "traced", 6)
    answer = oracle.run(READ, paths=[str(path) for path in tmp_path.iterdir()]).answer
    kinds = [part for part in answer if isinstance(part, tuple)]
    assert kinds == [
        ("file_version", 0, 0),
        ("graph_def", 0, len(graph)),
        ("meta_graph_def", 0, 0),
        ("summary", 5, 0),
        ("tagged_run_metadata", 6, 0),
    ]
    collections, tags, traced = (part for part in answer if isinstance(part, list))
    assert {"summaries", "variables", "trainable_variables"} <= set(collections)
    assert tags == ["loss"]
    assert "loss" in traced


def test_an_event_file_of_tensorflow_is_read(oracle: Oracle, tmp_path: Path) -> None:
    (path,) = oracle.run(WRITE, folder=str(tmp_path)).answer
    events = list(gc.train.summary_iterator(path))
    assert [event.WhichOneof("what") for event in events] == ["file_version", "graph_def", "meta_graph_def", "summary"]
    assert (events[-1].step, events[-1].summary.value[0].simple_value) == (4, 0.5)
