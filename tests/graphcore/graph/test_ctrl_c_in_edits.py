"""Ctrl-C or a failing shape function during an edit: the edit is completed consistently."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

import graphcore as gc
from graphcore.errors import InternalError
from graphcore.inference import InferenceContext
from graphcore.source import CellRun, SourceLocation
from graphcore.text import parse_op_signature
from tests.graphcore.graph.example_graphs import everything, ranks_fit, registry
from tests.support.whole_graphs import Mirror, check_whole

Change = Callable[[gc.Graph], object]


def named(graph: gc.Graph, name: str) -> gc.Node:
    return graph.get_operation_by_name(name)


def run_of_cell(execution: int) -> CellRun:
    return CellRun(cell="c", execution=execution, label=f"In [{execution}]")


def made_in_cell(graph: gc.Graph, execution: int, fed: str) -> gc.Node:
    return graph.add_node(gc.NodeDef("mine", "Same", (fed,)), SourceLocation("cell", 1, run_of_cell(execution)))


def made(when_armed: Callable[[], object]) -> tuple[gc.Graph, list[bool]]:
    """A graph with `Armed` nodes that act during shape inference while the list is not empty."""
    armed: list[bool] = []

    def infer(c: InferenceContext) -> None:
        c.set_output(0, c.input(0))
        if armed:
            armed.pop()
            when_armed()

    ops = registry()
    ops.register(parse_op_signature("Armed(x:float) -> (y:float)"), infer)
    ops.register(parse_op_signature("Same(x:float) -> (y:float)"), lambda c: c.set_output(0, c.input(0)))
    graph = gc.Graph(ops)
    for name, size in (("two", 2), ("four", 4), ("awaited", 3)):
        graph.add_node(gc.NodeDef(name, "Vector", (), "", {"size": size}))
    for name, op, fed in (("a", "Same", "two"), ("b", "Armed", "a"), ("c", "Same", "b"), ("d", "Armed", "awaited"), ("e", "Same", "d")):
        graph.add_node(gc.NodeDef(name, op, (fed,)))
    graph.remove_node(named(graph, "awaited"))
    graph.begin_cell(run_of_cell(1))
    made_in_cell(graph, 1, "two")
    for name, op, fed in (("f", "Same", "mine"), ("g", "Armed", "f")):
        graph.add_node(gc.NodeDef(name, op, (fed,)))
    graph.end_cell(run_of_cell(1))
    graph.begin_cell(run_of_cell(2))
    assert graph.nx.number_of_nodes() > 8
    return graph, armed


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def breaks() -> None:
    raise ZeroDivisionError("oh")


CHANGES = pytest.mark.parametrize(
    "change",
    [
        lambda graph: graph.update_edge(named(graph, "four"), 0, named(graph, "a"), 0),
        lambda graph: graph.set_attr(named(graph, "two"), "size", 7),
        lambda graph: graph.set_shape(named(graph, "a").outputs[0], [2]) or graph.set_attr(named(graph, "two"), "size", 5),
        lambda graph: graph.add_node(gc.NodeDef("awaited", "Vector", (), "", {"size": 7})),
        lambda graph: graph.remove_node(named(graph, "two")),
        lambda graph: made_in_cell(graph, 2, "four"),
        lambda graph: graph.end_cell(run_of_cell(2)),
    ],
    ids=["edge", "attr", "shape", "awaited", "removed", "replaced", "cell"],
)


@CHANGES
def test_ctrl_c_in_the_middle_of_an_edit_comes_when_the_edit_is_made(change: Change) -> None:
    graph, armed = made(press)
    plain, _ = made(press)
    mirror = Mirror(graph)
    armed.append(True)
    with pytest.raises(KeyboardInterrupt):
        change(graph)
    assert not armed
    change(plain)
    assert outcome(graph) == outcome(plain)
    check_whole(graph, mirror)
    assert ranks_fit(graph)


@CHANGES
def test_ctrl_c_within_a_transaction_brings_back_what_was(change: Change) -> None:
    graph, armed = made(press)
    mirror, before = Mirror(graph), everything(graph)
    armed.append(True)
    with pytest.raises(KeyboardInterrupt), graph.transaction():
        change(graph)
    assert everything(graph) == before
    assert not mirror.versions
    change(graph)
    check_whole(graph, mirror)
    assert ranks_fit(graph)


def outcome(graph: gc.Graph) -> list[tuple[str, list[str], str]]:
    return [(str(node.node_def), [str(tensor.shape) for tensor in node.outputs], str(node.error)) for node in graph.nodes]


def test_a_shape_function_that_breaks_on_what_it_is_fed_later_marks_its_node() -> None:
    graph, armed = made(breaks)
    armed.append(True)
    graph.update_edge(named(graph, "four"), 0, named(graph, "a"), 0)
    error = named(graph, "b").error
    assert isinstance(error, InternalError)
    assert (error.node, error.op) == ("b", "Armed")
    assert "The shape function of op Armed raised ZeroDivisionError: oh" in str(error)
    assert [str(named(graph, name).outputs[0].shape) for name in "abc"] == ["[4]", "?", "?"]
    check_whole(graph)
    graph.update_edge(named(graph, "two"), 0, named(graph, "a"), 0)
    assert [str(named(graph, name).outputs[0].shape) for name in "abc"] == ["[2]", "[2]", "[2]"]
    assert named(graph, "b").error is None


def test_a_shape_function_that_breaks_adds_no_node() -> None:
    graph, armed = made(breaks)
    before = everything(graph)
    armed.append(True)
    with pytest.raises(ZeroDivisionError):
        graph.add_node(gc.NodeDef("h", "Armed", ("two",)))
    assert everything(graph) == before


def test_a_shape_like_that_of_a_node_with_an_error_is_refused_and_leaves_no_trace() -> None:
    graph, armed = made(breaks)
    armed.append(True)
    with pytest.raises(ZeroDivisionError):
        graph.set_shape_like(named(graph, "b").outputs[0], named(graph, "two").outputs[0])
    assert named(graph, "b").like == {}
