"""Variables: their nodes, reads, changes and initialisation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import FailedPreconditionError, InvalidArgumentError


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def test_a_variable_is_three_nodes_and_a_constant(graph: gc.Graph) -> None:
    gc.Variable([1.0, 2.0], name="w")
    nodes = {node.name: (node.op, list(node.node_def.input)) for node in graph.op_nodes()}
    assert nodes == {
        "w/initial_value": ("Const", []),
        "w": ("VariableV2", []),
        "w/Assign": ("Assign", ["w", "w/initial_value"]),
        "w/read": ("Identity", ["w"]),
    }


@pytest.mark.parametrize("value", [None, lambda: None])
def test_a_variable_needs_an_initial_value(graph: gc.Graph, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"initial_value must be specified\.") as caught:
        gc.Variable(value, name="w")
    assert caught.value.node == "w"
    assert graph.nodes == []
    assert str(gc.Variable([1.0, 2.0]).get_shape()) == "[2]"


@pytest.mark.parametrize("use_resource", [False, True])
def test_the_initialized_value_is_the_value_if_there_is_one_and_else_the_initial_value(use_resource: bool) -> None:
    w = gc.Variable([1.0, 2.0], name="w", use_resource=use_resource)
    value = w.initialized_value()
    assert str(value.shape) == "[2]"
    doubled = gc.Variable(value * 2.0, name="doubled", use_resource=use_resource)
    session = gc.Session()
    session.run(doubled.initializer)
    assert session.run(doubled).tolist() == [2, 4]
    session.run(w.initializer)
    session.run(w.assign([5.0, 6.0]))
    assert session.run(value).tolist() == [5, 6]
    session.run(doubled.initializer)
    assert (session.run(doubled).tolist(), session.run(w).tolist()) == ([10, 12], [5, 6])


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_a_variable_made_from_another_is_an_identity_that_waits_for_the_initializer_which_leaves_a_trained_value(engine: Any) -> None:
    w = gc.Variable([1.0, 2.0], name="W")
    v = gc.Variable(w.initialized_value(), name="V")
    value = v.initial_value.node
    assert value.op == "Identity"
    assert value.inputs == [w.handle]
    assert value.control_inputs == [w.initializer]
    assert str(v.shape) == "[2]"
    with gc.Session(engine=engine) as session:
        session.run(v.initializer)
        assert (session.run(v).tolist(), session.run(w).tolist()) == ([1, 2], [1, 2])
        session.run(w.assign([5.0, 6.0]))
        session.run(v.initializer)
        assert (session.run(v).tolist(), session.run(w).tolist()) == ([5, 6], [5, 6])
        session.run([w.initializer, v.initializer])
        assert (session.run(v).tolist(), session.run(w).tolist()) == ([1, 2], [1, 2])
        session.run(w.assign([5.0, 6.0]))
        session.run(gc.initialize_all_variables())
        assert (session.run(v).tolist(), session.run(w).tolist()) == ([1, 2], [1, 2])
        assert session.run([w.initialized_value(), w.assign_add([1.0, 1.0])])[1].tolist() == [2, 3]


def test_a_trained_value_is_left_by_the_plans_for_the_shapes_of_feeds_too() -> None:
    x = gc.placeholder(gc.float32, [None])
    w = gc.Variable(3.0, name="W")
    y = gc.cast(gc.size(x), gc.float32) + w.initialized_value()
    with gc.Session() as session:
        session.run(w.assign(7.0))
        for _ in range(5):  # from the third run on, with a plan for four elements
            assert session.run(y, {x: np.ones(4, np.float32)}) == 11
            assert session.run(w) == 7


@pytest.mark.parametrize("devices", [None, ["/cpu:0", "/cpu:1"]])
def test_runs_in_parts_leave_a_trained_value_unless_they_run_its_initializer(devices: Any) -> None:
    x = gc.placeholder(gc.float32, [])
    w = gc.Variable(3.0, name="W")
    value = w.initialized_value()
    with gc.Session(devices=devices) as session:
        session.run(w.assign(7.0))
        assert session.partial_run(session.partial_run_setup([value], [x]), value) == 7
        session.run(value)
        session.partial_run(session.partial_run_setup([w.initializer], [x]), w.initializer)
        assert session.run(w) == 3


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_session_sets_a_value_without_new_nodes(graph: gc.Graph, use_resource: bool) -> None:
    w = gc.Variable([1.0, 2.0], name="w", use_resource=use_resource)
    count = len(graph)
    with gc.Session():
        w.load([3, 4])
        assert w.eval().tolist() == [3, 4]
    assert len(graph) == count
    assert w.trainable
    assert not gc.Variable(1.0, trainable=False).trainable


def test_collections_hold_variables_in_the_order_they_were_made(graph: gc.Graph) -> None:
    a = gc.Variable(1.0, name="a")
    b = gc.Variable(2.0, name="b", trainable=False, collections=["mine"])
    assert gc.all_variables() == gc.global_variables() == [a]
    assert gc.trainable_variables() == [a]
    assert graph.get_collection("mine") == [b]


def test_uninitialised_variables_are_reported_by_name() -> None:
    a, b = gc.Variable(1.0, name="a"), gc.Variable([2.0], name="b")
    report = gc.report_uninitialized_variables()
    ready = [gc.is_variable_initialized(a), gc.is_variable_initialized(b)]
    session = gc.Session()
    assert session.run(report).tolist() == [b"a", b"b"]
    session.run(gc.initialize_variables([b]))
    assert session.run(report).tolist() == [b"a"]
    assert session.run(ready) == [False, True]
    session.run(gc.initialize_all_variables())
    assert session.run(report).tolist() == []


def test_local_variables_are_reported_too_and_references_of_a_graph_without_variables() -> None:
    gc.Variable(1.0, name="a")
    gc.Variable(2.0, name="local", collections=["local_variables"])
    with gc.Session() as session:
        assert session.run(gc.report_uninitialized_variables()).tolist() == [b"a", b"local"]
        session.run(gc.initialize_all_variables())
        assert session.run(gc.report_uninitialized_variables()).tolist() == [b"local"]
    written = gc.get_default_graph().as_graph_def()
    with gc.Graph().as_default() as graph:
        gc.import_graph_def(written, name="")
        with gc.Session() as session:
            session.run(graph.get_operation_by_name("local/Assign"))
            assert session.run(gc.report_uninitialized_variables()).tolist() == [b"a"]


def test_shared_names_share_a_value_and_containers_keep_them_apart() -> None:
    a = gc.Variable(1.0, name="a", shared_name="s")
    b = gc.Variable(2.0, name="b", shared_name="s")
    c = gc.Variable(3.0, name="c", shared_name="s", container="other")
    session = gc.Session()
    session.run([a.initializer, c.initializer])
    assert session.run([a, b, c]) == [1.0, 1.0, 3.0]
    session.run(b.assign_add(1.0))
    assert session.run([a, b, c]) == [2.0, 2.0, 3.0]


def test_resetting_a_container_forgets_its_variables_only() -> None:
    a = gc.Variable(1.0, name="a")
    b = gc.Variable(2.0, name="b", container="mine")
    session = gc.Session()
    session.run(gc.initialize_all_variables())
    session.reset(["mine"])
    assert session.run(a) == 1.0
    with pytest.raises(FailedPreconditionError, match="uninitialized value b"):
        session.run(b)
    session.run(b.initializer)
    session.reset()
    assert session.run(b) == 2.0
    with pytest.raises(FailedPreconditionError, match="uninitialized value a"):
        session.run(a)


def test_updates_by_value_and_by_rows() -> None:
    w = gc.Variable(np.zeros((3, 2), np.float32), name="w")
    session = gc.Session()
    session.run(w.initializer)
    assert session.run(w.assign([[1.0, 1.0]] * 3)).tolist() == [[1, 1]] * 3
    assert session.run(w.assign_add([[1.0, 1.0]] * 3)).tolist() == [[2, 2]] * 3
    assert session.run(w.assign_sub([[0.5, 0.5]] * 3)).tolist() == [[1.5, 1.5]] * 3
    assert session.run(w.scatter_update([0], [[9.0, 9.0]])).tolist() == [[9, 9], [1.5, 1.5], [1.5, 1.5]]
    assert session.run(w.scatter_add([1, 1], [[1.0, 0.0], [1.0, 0.0]])).tolist() == [[9, 9], [3.5, 1.5], [1.5, 1.5]]
    assert session.run(w.scatter_sub([2], [[0.5, 1.0]])).tolist() == [[9, 9], [3.5, 1.5], [1, 0.5]]


def test_operators_read_the_value() -> None:
    w = gc.Variable([4.0, -9.0], name="w")
    session = gc.Session()
    session.run(w.initializer)
    results = session.run([w < 0.0, w <= 4.0, w > 0.0, w >= 4.0, abs(w), w // 2.0, 2.0**w, 8.0 // w])
    assert [result.tolist() for result in results] == [
        [False, True], [True, True], [True, False], [True, False], [4, 9], [2, -5], [16, 2.0**-9], [2, -1],
    ]  # fmt: skip


def test_resource_variables_keep_their_values_between_runs_and_are_updated() -> None:
    handle = gc.ops.var_handle_op(dtype=gc.float32, shape=gc.Shape([2]), shared_name="v")
    assign = gc.ops.assign_variable_op(handle, gc.constant([1.0, 2.0]))
    add = gc.ops.assign_add_variable_op(handle, gc.constant([1.0, 1.0]))
    read = gc.ops.read_variable_op(handle, dtype=gc.float32)
    session = gc.Session()
    with pytest.raises(FailedPreconditionError):
        session.run(read)
    session.run(assign)
    session.run(add)
    assert session.run(read).tolist() == [2, 3]


def test_an_assignment_of_another_shape_is_refused_and_changes_nothing() -> None:
    w = gc.Variable([1.0, 2.0], name="w")
    x = gc.placeholder(gc.float32, None, name="x")
    step = w.assign(x)
    session = gc.Session()
    session.run(w.initializer)
    with pytest.raises(InvalidArgumentError, match="shapes of both tensors to match"):
        session.run(step, {x: [1.0, 2.0, 3.0]})
    assert session.run(w).tolist() == [1, 2]


def test_a_variable_without_a_fixed_shape_takes_any() -> None:
    x = gc.placeholder(gc.float32, None, name="x")
    w = gc.Variable(x, name="w", validate_shape=False)
    session = gc.Session()
    session.run(w.initializer, {x: [1.0, 2.0, 3.0]})
    assert session.run(gc.shape(w)).tolist() == [3]
    session.run(w.initializer, {x: [[1.0]]})
    assert session.run(gc.shape(w)).tolist() == [1, 1]
