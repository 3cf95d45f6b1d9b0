"""Ctrl-C or a failing shape function during an edit: the edit is completed consistently."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable

import pytest

import graphcore as gc
from graphcore.errors import InternalError
from graphcore.graph import ImportOptions, import_graph_def
from graphcore.inference import InferenceContext, ShapeHandle
from graphcore.inference.context import direct
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
    with pytest.raises(InternalError, match="The shape function of op Armed raised ZeroDivisionError: oh for 'h'") as caught:
        graph.add_node(gc.NodeDef("h", "Armed", ("two",)))
    assert everything(graph) == before
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    line = infer_line(caught.value.__cause__)
    assert caught.value.suggestion == f"Correct the shape function of Armed, test_ctrl_c_in_edits.py, line {line}."


def infer_line(error: BaseException) -> int:
    """The line at which the shape function of `Armed` left with an error."""
    return next(frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.name == "infer" and frame.lineno)


def test_a_shape_function_of_shapes_alone_that_breaks_adds_no_node() -> None:
    def broken(_shape: ShapeHandle) -> ShapeHandle:
        raise ZeroDivisionError("oh")

    graph, _ = made(breaks)
    graph.registry.register(
        parse_op_signature("Direct(x:float) -> (y:float)"), direct(broken)(lambda c: c.set_output(0, broken(c.input(0))))
    )
    before = everything(graph)
    with pytest.raises(InternalError, match="The shape function of op Direct raised ZeroDivisionError: oh for 'h'"):
        graph.add_node(gc.NodeDef("h", "Direct", ("two",)))
    assert everything(graph) == before


def test_a_graph_with_a_shape_function_that_breaks_is_refused_with_a_graph_error_and_imports_nothing() -> None:
    source, _ = made(breaks)
    graph, armed = made(breaks)
    graph_def, before = source.as_graph_def(), everything(graph)
    armed.append(True)
    with pytest.raises(InternalError, match="The shape function of op Armed raised ZeroDivisionError: oh"):
        import_graph_def(graph_def, graph, ImportOptions(prefix="read"))
    assert everything(graph) == before


def test_a_shape_like_that_of_a_node_with_an_error_is_refused_and_leaves_no_trace() -> None:
    graph, armed = made(breaks)
    armed.append(True)
    with pytest.raises(InternalError, match="The shape function of op Armed raised ZeroDivisionError: oh for 'b'"):
        graph.set_shape_like(named(graph, "b").outputs[0], named(graph, "two").outputs[0])
    assert named(graph, "b").like == {}
