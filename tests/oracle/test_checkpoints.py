"""Checkpoints travel both ways between this project and TensorFlow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest

import graphcore as gc
from graphcore.checkpoints import CheckpointReader, write_checkpoint
from tests.graphcore.checkpoints.test_checkpoints import same, tensors
from tests.graphcore.tf1.test_saver import model, started, train
from tests.oracle.conftest import Oracle
from tests.support.remote import ROOT

tf: Any = gc  # its namespaces are made when they are asked for
WRITE = """
v1 = tf.compat.v1
with tf.Graph().as_default(), v1.Session() as session:
    names = sorted(inputs)
    parts = [[inputs[name] for name in names[i::arguments["shards"]]] for i in range(arguments["shards"])]
    prefixes = [f"{arguments['path']}_part{i}" for i in range(arguments["shards"])]
    for i, prefix in enumerate(prefixes):
        mine = names[i::arguments["shards"]]
        types = [tf.bfloat16 if name.endswith("bfloat16") else tf.as_dtype(inputs[name].dtype) for name in mine]
        values = [tf.cast(tf.constant(inputs[name]), dtype) if dtype is tf.bfloat16 else tf.constant(inputs[name], dtype)
                  for name, dtype in zip(mine, types)]
        session.run(tf.raw_ops.SaveV2(prefix=prefix, tensor_names=mine, shape_and_slices=[""] * len(mine), tensors=values))
    session.run(tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=prefixes, destination_prefix=arguments["path"]))
"""
READ = """
reader = tf.train.load_checkpoint(arguments["path"])
for name in reader.get_variable_to_shape_map():
    value = np.asarray(reader.get_tensor(name))
    outputs[name] = value.astype(np.float32) if name.endswith("bfloat16") else value
"""
PARTS = """
v1 = tf.compat.v1
with tf.Graph().as_default(), v1.Session() as session:
    with v1.variable_scope("net", partitioner=v1.fixed_size_partitioner(3)):
        w = v1.get_variable("w", initializer=tf.constant(inputs["w"]), use_resource=arguments["use_resource"])
    session.run(v1.global_variables_initializer())
    answer = v1.train.Saver().save(session, arguments["path"])
"""
RESTORE = """
v1 = tf.compat.v1
with tf.Graph().as_default(), v1.Session() as session:
    saver = v1.train.import_meta_graph(arguments["path"] + ".meta")
    saver.restore(session, v1.train.latest_checkpoint(arguments["folder"]))
    outputs["y"] = session.run(v1.get_collection("outputs")[0])
    session.run(v1.trainable_variables()[0].assign(inputs["w"]))
    answer = saver.save(session, arguments["path"], global_step=5)
"""


def plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value.astype(np.float32) if name.endswith("bfloat16") else value for name, value in values.items()}


@pytest.mark.parametrize("shards", [1, 3])
def test_a_checkpoint_of_tensorflow_is_read_in_every_type_and_shape(tmp_path: Path, oracle: Oracle, shards: int) -> None:
    values = tensors()
    oracle.run(WRITE, plain(values), path=str(tmp_path / "model"), shards=shards)
    reader = CheckpointReader(tmp_path / "model")
    assert sorted(reader) == sorted(values)
    for name, value in values.items():
        assert same(reader.get_tensor(name), value), name


def test_tensorflow_reads_what_is_written_in_every_type_and_shape(tmp_path: Path, oracle: Oracle) -> None:
    values = tensors()
    write_checkpoint(str(tmp_path / "model"), [(name, None, gc.as_dtype(value.dtype), value) for name, value in values.items()])
    theirs = oracle.run(READ, path=str(tmp_path / "model")).outputs
    assert sorted(theirs) == sorted(values)
    for name, value in plain(values).items():
        assert theirs[name].shape == value.shape, name
        assert theirs[name].tolist() == value.tolist(), name


def test_tensorflow_reads_what_is_saved_again_under_a_name_while_the_files_before_are_there(
    tmp_path: Path, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(Path, "hardlink_to", no_links)
    path = str(tmp_path / "model")
    for number in (1.0, 2.0):
        write_checkpoint(path, [("w", None, gc.float64, np.full(3, number))])
    (tmp_path / "model.data-00000-of-00001").write_bytes(b"of the save before")
    assert (tmp_path / "model.data-00000-of-00002").exists()
    assert oracle.run(READ, path=path).outputs["w"].tolist() == [2, 2, 2]


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_variable_in_parts_is_read_as_a_whole(tmp_path: Path, oracle: Oracle, use_resource: bool) -> None:
    w = np.arange(35.0).reshape(7, 5)
    path = oracle.run(PARTS, {"w": w}, path=str(tmp_path / "model"), use_resource=use_resource).answer
    assert same(CheckpointReader(path).get_tensor("net/w"), w)


@pytest.mark.parametrize("use_resource", [False, True])
def test_tensorflow_imports_the_graph_restores_it_and_saves_it_back(tmp_path: Path, oracle: Oracle, use_resource: bool) -> None:
    new = np.full((2, 3), 7, np.float32)
    with gc.Graph().as_default() as graph:
        w, b = model(use_resource=use_resource)
        gc.add_to_collection("outputs", gc.add(w, b, name="y"))
        saver = train.Saver()
        with started(graph) as session:
            path = saver.save(session, tmp_path / "model")
            found = oracle.run(RESTORE, {"w": new}, path=path, folder=str(tmp_path))
            assert found.outputs["y"].tolist() == [[1, 2, 3], [4, 5, 6]]
            saver.restore(session, found.answer)
            assert session.run(w).tolist() == new.tolist()
    with gc.Graph().as_default() as graph, gc.Session(graph=graph) as session:
        train.import_meta_graph(f"{found.answer}.meta").restore(session, train.latest_checkpoint(tmp_path))
        assert session.run(gc.get_collection("outputs")[0]).tolist() == [[8, 8, 8], [8, 8, 8]]


SERVE = """
v1 = tf.compat.v1
with v1.Session(graph=tf.Graph()) as session:
    loaded = v1.saved_model.loader.load(session, ["serve"], arguments["path"])
    signature = loaded.signature_def["serving_default"]
    outputs["y"] = session.run(signature.outputs["y"].name, {signature.inputs["x"].name: inputs["x"]})
    w = v1.trainable_variables()[0]
    session.run(v1.assign(w, w + 1))
    x, y = (session.graph.get_tensor_by_name(each.name) for each in (signature.inputs["x"], signature.outputs["y"]))
    v1.saved_model.simple_save(session, arguments["path"] + "_again", {"x": x}, {"y": y})
"""


def test_a_saved_model_travels_both_ways_with_its_values(tmp_path: Path, oracle: Oracle) -> None:
    x = np.ones((2, 3), np.float32)
    with gc.Graph().as_default() as graph:
        fed = gc.placeholder(gc.float32, [2, 3], name="x")
        w, b = model(use_resource=False)
        y = gc.add(fed * w, b, name="y")
        with started(graph) as session:
            tf.saved_model.simple_save(session, tmp_path / "model", {"x": fed}, {"y": y})
            ours = session.run(y, {fed: x})
    theirs = oracle.run(SERVE, {"x": x}, path=str(tmp_path / "model")).outputs["y"]
    assert theirs.tolist() == ours.tolist()
    with gc.Session(gc.Graph()) as session:
        signature = tf.saved_model.loader.load(session, ["serve"], tmp_path / "model_again").signature_def["serving_default"]
        again = session.run(signature.outputs["y"].name, {signature.inputs["x"].name: x})
    assert again.tolist() == (ours + 1).tolist()


NOTEBOOK = ROOT / "notebooks" / "extra" / "from_tensorflow_1.ipynb"
CLASSIFY = """
v1 = tf.compat.v1
with tf.Graph().as_default(), v1.Session() as session:
    v1.train.import_meta_graph(arguments["path"] + ".meta").restore(session, arguments["path"])
    outputs["accuracy"], outputs["scores"] = session.run(["accuracy/Mean:0", "scores/add:0"], {"x:0": inputs["x"], "labels:0": inputs["labels"]})
"""


def test_the_checkpoint_of_the_notebook_is_read_by_tensorflow(oracle: Oracle) -> None:
    program = next(cell.source for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell["id"] == "program")
    made: dict[str, Any] = {}
    with gc.Graph().as_default() as graph:
        exec(program, made)
        images, labels = (made[name][1500:].astype(np.float32) for name in ("images", "labels"))
        found = oracle.run(CLASSIFY, {"x": images, "labels": labels}, path=made["save_path"]).outputs
        with gc.Session(graph=graph) as session:
            made["saver"].restore(session, made["save_path"])
            scores = session.run("scores/add:0", {"x:0": images})
    assert found["accuracy"] == made["test_accuracy"]
    np.testing.assert_allclose(found["scores"], scores, rtol=1e-4, atol=1e-5)
