"""Variables shared by name under different declarations: each keeps its value, or there is an error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import FailedPreconditionError, GraphError, InternalError, InvalidArgumentError
from graphcore.source import CellRun, current_run

ENGINES = pytest.mark.parametrize("engine", ["plan", "dataflow"])


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def reference(dtype: gc.DType, shape: Any, name: str) -> Any:
    return gc.apply_op("VariableV2", [], {"dtype": dtype, "shape": gc.Shape(shape), "shared_name": "s"}, name)


def handle(dtype: gc.DType, shape: Any, name: str) -> Any:
    return gc.apply_op("VarHandleOp", [], {"dtype": dtype, "shape": gc.Shape(shape), "shared_name": "s"}, name)


@contextmanager
def cell(graph: gc.Graph, execution: int) -> Iterator[None]:
    """Make nodes in a cell, replacing those of its last run."""
    run = CellRun(cell="one", execution=execution, label=f"In [{execution}]")
    token = current_run.set(run)
    graph.begin_cell(run)
    try:
        yield
    finally:
        graph.end_cell(run)
        current_run.reset(token)


def assigned(variable: Any, value: Any, *, validate_shape: bool = True, name: str = "") -> Any:
    return gc.apply_op("Assign", [variable, value], {"validate_shape": validate_shape}, name or None)


def refused(session: gc.Session, kind: type[GraphError], fetch: Any, text: str, node: str) -> None:
    with pytest.raises(kind) as caught:
        session.run(fetch)
    assert text in caught.value.message
    assert caught.value.node == node
    assert caught.value.source is not None


@ENGINES
def test_references_of_two_shapes_are_one_variable_of_the_shape_that_was_there_first(engine: str) -> None:
    a, b = reference(gc.float32, [2], "a"), reference(gc.float32, [3], "b")
    start_a, start_b = assigned(a, [1.0, 2.0], name="start_a"), assigned(b, [1.0, 2.0, 3.0], name="start_b")
    session = gc.Session(engine=engine)
    session.run(start_a)
    assert session.run(gc.identity(b)).tolist() == [1, 2]
    refused(
        session, InvalidArgumentError, start_b, "Assign requires shapes of both tensors to match. lhs shape= [2] rhs shape= [3]", "start_b"
    )
    assert session.run(a).tolist() == [1, 2]
    assert session.run(b).tolist() == [1, 2]


@ENGINES
def test_a_reference_takes_another_shape_when_it_is_told_not_to_look(engine: str) -> None:
    a, b = reference(gc.float32, [2], "a"), reference(gc.float32, [3], "b")
    start_a, start_b = assigned(a, [1.0, 2.0], name="start_a"), assigned(b, [1.0, 2.0, 3.0], validate_shape=False)
    session = gc.Session(engine=engine)
    session.run(start_a)
    assert session.run(start_b).tolist() == [1, 2, 3]
    assert session.run(a).tolist() == [1, 2, 3]
    refused(
        session, InvalidArgumentError, start_a, "Assign requires shapes of both tensors to match. lhs shape= [3] rhs shape= [2]", "start_a"
    )


@ENGINES
def test_a_reference_of_another_type_is_an_internal_error_and_leaves_the_value(engine: str) -> None:
    a, b = reference(gc.float32, [2], "a"), reference(gc.int32, [2], "b")
    start_a, start_b = assigned(a, [1.0, 2.0]), assigned(b, [1, 2])
    session = gc.Session(engine=engine)
    session.run(start_a)
    text = "Output 0 of type float_ref does not match declared output type int32_ref for node {{node b}}"
    for fetch in (b, gc.identity(b), start_b, gc.apply_op("IsVariableInitialized", [b])):
        refused(session, InternalError, fetch, text, "b")
    assert session.run(a).tolist() == [1, 2]
    with pytest.raises(InternalError, match=r"'s' is the variable of 'a'.*test_shared_variables"):
        session.run(b)


@ENGINES
def test_handles_of_two_shapes_are_one_variable_of_the_shape_that_came_last(engine: str) -> None:
    a, b = handle(gc.float32, [2], "a"), handle(gc.float32, [3], "b")
    read_a, read_b = (gc.ops.read_variable_op(x, dtype=gc.float32) for x in (a, b))
    start_a, start_b = gc.ops.assign_variable_op(a, [1.0, 2.0]), gc.ops.assign_variable_op(b, [1.0, 2.0, 3.0])
    careful = gc.ops.assign_variable_op(b, [4.0, 5.0, 6.0], validate_shape=True, name="careful")
    add = gc.ops.assign_add_variable_op(b, [1.0, 1.0, 1.0], name="add")
    session = gc.Session(engine=engine)
    session.run(start_a)
    assert session.run(read_b).tolist() == [1, 2]
    session.run(start_b)
    assert session.run(read_a).tolist() == [1, 2, 3]
    session.run(start_a)
    text = "Trying to assign to variable with tensor with wrong shape. Expected [2] got [3]"
    refused(session, InvalidArgumentError, careful, text, "careful")
    text = "Cannot update variable with shape [2] using a Tensor with shape [3], shapes must be equal."
    refused(session, InvalidArgumentError, add, text, "add")
    assert session.run(read_a).tolist() == [1, 2]


@ENGINES
def test_a_handle_of_another_type_can_neither_read_nor_change_the_value(engine: str) -> None:
    a, b = handle(gc.float32, [2], "a"), handle(gc.int32, [2], "b")
    start_a = gc.ops.assign_variable_op(a, [1.0, 2.0])
    read_a, read_b = gc.ops.read_variable_op(a, dtype=gc.float32), gc.ops.read_variable_op(b, dtype=gc.int32, name="read_b")
    session = gc.Session(engine=engine)
    session.run(start_a)
    refused(session, InvalidArgumentError, read_b, "Trying to read variable with wrong dtype. Expected int32 got float", "read_b")
    start_b = gc.ops.assign_variable_op(b, gc.constant([1, 2]), name="start_b")
    refused(session, InvalidArgumentError, start_b, "Trying to assign variable with wrong dtype. Expected float got int32", "start_b")
    add = gc.ops.assign_add_variable_op(b, gc.constant([1, 2]), name="add")
    refused(session, InvalidArgumentError, add, "DType of variable handle and value does not match.", "add")
    gathered = gc.ops.resource_gather(b, gc.constant([0]), dtype=gc.int32, name="gathered")
    refused(session, InvalidArgumentError, gathered, "Trying to read variable with wrong dtype. Expected int32 got float", "gathered")
    assert session.run(gc.ops.var_is_initialized_op(b))
    assert session.run(read_a).tolist() == [1, 2]


@ENGINES
def test_what_has_no_value_is_of_the_type_of_the_handle_that_gives_it_one(engine: str) -> None:
    a, b = handle(gc.float32, [2], "a"), handle(gc.int32, [2], "b")
    read_a, read_b = gc.ops.read_variable_op(a, dtype=gc.float32, name="read_a"), gc.ops.read_variable_op(b, dtype=gc.int32)
    session = gc.Session(engine=engine)
    for read in (read_a, read_b, read_a):
        with pytest.raises(FailedPreconditionError, match="uninitialized"):
            session.run(read)
    session.run(gc.ops.assign_variable_op(b, gc.constant([1, 2])))
    assert session.run(read_b).tolist() == [1, 2]
    refused(session, InvalidArgumentError, read_a, "Trying to read variable with wrong dtype. Expected float got int32", "read_a")


def test_a_value_is_shared_by_nodes_that_another_one_is_named_after(graph: gc.Graph) -> None:
    w = gc.Variable([1.0, 2.0], name="w")
    other = graph.apply_op("VariableV2", [], {"dtype": gc.float32, "shape": gc.Shape([3]), "shared_name": "w"}).outputs[0]
    session = gc.Session()
    session.run(w.initializer)
    assert session.run(gc.identity(other)).tolist() == [1, 2]
    assert session.run(w).tolist() == [1, 2]
    elsewhere = gc.Variable([1.0, 2.0, 3.0], name="elsewhere", shared_name="w", container="c")
    session.run(elsewhere.initializer)
    assert session.run(w).tolist() == [1, 2]


@ENGINES
def test_a_variable_that_is_made_anew_starts_anew_for_all_that_share_it(engine: str, graph: gc.Graph) -> None:
    session = gc.Session(engine=engine)
    with cell(graph, 1):
        a = gc.Variable([1.0, 2.0], name="a", shared_name="s")
    other = reference(gc.float32, None, "other")
    session.run(a.initializer)
    assert session.run(gc.identity(other)).tolist() == [1, 2]
    with cell(graph, 2):
        a = gc.Variable([1.0, 2.0, 3.0], name="a", shared_name="s")
    with pytest.raises(FailedPreconditionError, match="uninitialized value"):
        session.run(a)
    session.run(a.initializer)
    assert session.run(gc.identity(other)).tolist() == [1, 2, 3]
    assert session.run("other:0").tolist() == [1, 2, 3]


@ENGINES
def test_a_name_whose_variable_is_gone_is_free_for_another(engine: str, graph: gc.Graph) -> None:
    session = gc.Session(engine=engine)
    with cell(graph, 1):
        first = gc.Variable([1.0, 2.0], name="first", shared_name="s")
    session.run(first.initializer)
    with cell(graph, 2):
        second = gc.Variable(np.array([1, 2, 3], np.int32), name="second", shared_name="s")
    session.run(second.initializer)
    assert session.run(second).tolist() == [1, 2, 3]


def test_a_container_that_was_reset_is_free_for_variables_of_any_kind() -> None:
    a, b = reference(gc.float32, [2], "a"), reference(gc.int32, [3], "b")
    session = gc.Session()
    session.run(assigned(a, [1.0, 2.0]))
    session.reset()
    session.run(assigned(b, gc.constant([1, 2, 3])))
    assert session.run(b).tolist() == [1, 2, 3]
    refused(session, InternalError, a, "Output 0 of type int32_ref does not match declared output type float_ref for node {{node a}}", "a")
