"""Small names of TensorFlow 1 as programs use them: files, collections, containers, references, batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError, UnimplementedError
from graphcore.tf1.lookup import namespace

train, gfile, rnn_cell = namespace("train"), namespace("gfile"), namespace("nn.rnn_cell")


@pytest.fixture(autouse=True)
def graph() -> Any:
    with gc.Graph().as_default() as made:
        yield made


def test_a_file_takes_texts_and_bytes_in_any_mode_and_reads_what_its_mode_says(tmp_path: Path) -> None:
    path = str(tmp_path / "log")
    with gfile.GFile(path, mode="a") as file:
        file.write(b"one\n")
        file.write("zw\u00f6lf\n")
    with gfile.GFile(path, "ab") as file:
        file.write("three\n")
    assert Path(path).read_bytes() == "one\nzw\u00f6lf\nthree\n".encode()
    with gfile.GFile(path) as file:
        assert [file.readline(), *file] == ["one\n", "zw\u00f6lf\n", "three\n"]
    with gfile.GFile(path, "rb") as file:
        assert file.readlines() == [b"one\n", "zw\u00f6lf\n".encode(), b"three\n"]
    with gfile.GFile(path, "r") as file, pytest.raises(InvalidArgumentError, match="binary or unicode"):
        file.write(3)


def test_collections_of_a_graph_take_a_scope_and_keywords(graph: gc.Graph) -> None:
    with gc.variable_scope("a"):
        v = gc.get_variable("x", [2])
    w = gc.get_variable("b", [2])
    assert graph.get_collection("variables", scope="a") == [v]
    assert graph.get_collection("variables") == [v, w]
    graph.add_to_collection(name="k", value=3)
    assert graph.get_collection("k") == [3]
    assert graph.get_collection("k", scope="") == []


def test_a_graph_def_may_hold_the_shapes_of_outputs(graph: gc.Graph) -> None:
    gc.placeholder(gc.float32, [None, 2], name="x")
    gc.no_op("nothing")
    nodes = {node.name: node for node in graph.as_graph_def(add_shapes=True).node}
    assert nodes["x"].attr["_output_shapes"] == (gc.Shape([None, 2]),)
    assert "_output_shapes" not in nodes["nothing"].attr
    assert all("_output_shapes" not in node.attr for node in graph.as_graph_def().node)
    with pytest.raises(UnimplementedError, match="from_version"):
        graph.as_graph_def(from_version=1)


@pytest.mark.parametrize("batch", [[3], (3,), gc.Shape([3]), 3])
def test_the_zero_state_of_a_cell_takes_the_batch_as_a_list_too(batch: Any) -> None:
    state = rnn_cell.LSTMCell(4).zero_state(batch, gc.float32)
    assert state.c.shape.as_list() == [3, 4]


def test_the_zero_state_takes_an_unknown_batch_in_a_list() -> None:
    batch = gc.shape(gc.placeholder(gc.float32, [None, 2], name="x"))[0]
    state = rnn_cell.GRUCell(4).zero_state([batch], gc.float32)
    assert state.shape.as_list() == [None, 4]
    assert gc.Session().run(state, {"x:0": np.zeros([5, 2])}).shape == (5, 4)


@pytest.mark.parametrize("use_resource", [False, True])
def test_resources_within_a_container_are_cleared_by_its_name(use_resource: bool) -> None:
    with gc.container("train") as name:
        v = gc.get_variable("v", [2], initializer=gc.ones_initializer(), use_resource=use_resource)
        with gc.container("other"):
            w = gc.get_variable("w", [2], initializer=gc.ones_initializer(), use_resource=use_resource)
    assert name == "train"
    assert [each.op.attr["container"] for each in (v, w)] == [b"train", b"other"]
    session = gc.Session()
    session.run(gc.global_variables_initializer())
    session.reset(["train"])
    assert session.run(w).tolist() == [1.0, 1.0]
    with pytest.raises(gc.errors.FailedPreconditionError):
        session.run(v)


def test_op_scope_is_name_scope_with_the_order_of_earlier_versions() -> None:
    with gc.op_scope([gc.constant(1)], None, "zero_nil_slot") as name:
        assert name == "zero_nil_slot/"
    with gc.op_scope([], "given", "default") as name:
        assert name == "given/"


@pytest.mark.parametrize(
    ("change", "result"),
    [(gc.assign, [5.0, 5.0]), (gc.assign_add, [6.0, 6.0]), (gc.assign_sub, [-4.0, -4.0])],
    ids=["assign", "assign_add", "assign_sub"],
)
@pytest.mark.parametrize("known", [True, False], ids=["a variable", "imported nodes"])
def test_a_reference_by_name_can_be_assigned_to(change: Any, result: list[float], known: bool, graph: gc.Graph) -> None:
    gc.get_variable("w", [2], initializer=gc.ones_initializer(), use_resource=False)
    definition = graph.as_graph_def()
    where = graph if known else gc.Graph()
    with where.as_default():
        if not known:
            gc.import_graph_def(definition, prefix="")
        reference = where.get_tensor_by_name("w:0")
        assert reference.dtype.is_ref
        changed = change(reference, [5.0, 5.0])
        session = gc.Session()
        session.run(where.get_operation_by_name("w/Assign"))
        assert session.run(changed).tolist() == result
        assert session.run(reference).tolist() == result


def test_rows_of_a_reference_by_name_can_be_changed(graph: gc.Graph) -> None:
    v = gc.get_variable("w", [2], initializer=gc.ones_initializer(), use_resource=False)
    changed = gc.scatter_add(graph.get_tensor_by_name("w:0"), [1], [4.0])
    session = gc.Session()
    session.run(v.initializer)
    assert session.run(changed).tolist() == [1.0, 5.0]
    with pytest.raises(InvalidArgumentError, match="required a variable, or the reference"):
        gc.assign(gc.constant(1.0), 2.0)


@pytest.mark.parametrize(
    "batched",
    [
        lambda a: train.batch([a], 2),
        lambda a: train.batch(a, 2),
        lambda a: train.batch((a,), 2, allow_smaller_final_batch=True),
        lambda a: train.shuffle_batch([a], 2, 10, 1),
        lambda a: train.batch_join([[a], [a]], 2),
        lambda a: train.shuffle_batch_join([[a], [a]], 2, 10, 1),
    ],
)
def test_a_batch_of_one_tensor_is_a_tensor_also_from_a_list(batched: Any) -> None:
    a = train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue()
    made = batched(a)
    assert isinstance(made, gc.Tensor)
    assert made.shape.rank == 1


def test_a_batch_of_several_is_a_list_and_that_of_a_dict_a_dict() -> None:
    a = train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue()
    assert [each.shape.as_list() for each in train.batch([a, a], 2)] == [[2], [2]]
    assert train.batch({"a": a}, 2)["a"].shape.as_list() == [2]
