"""A finalized graph is read-only: every change is refused and has no effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphcore as gc
from graphcore.definitions import FunctionDefLibrary
from graphcore.errors import FailedPreconditionError
from graphcore.graph import Graph
from graphcore.source import CellRun, current_run

SQUARE = gc.define_function("Square2(x:float) -> (y:float) { y = Mul[T=float](x, x) }")
TWICE = gc.define_function("Twice(x:float) -> (y:float) { y = Add[T=float](x, x) }")


class Setting(NamedTuple):
    """A finalized graph with every kind of content."""

    graph: Graph
    x: gc.Tensor
    y: gc.Tensor
    w: gc.Variable
    several: gc.Node


def _setting() -> Setting:
    graph = gc.Graph()
    with graph.as_default():
        graph.add_function_library(FunctionDefLibrary((SQUARE,), (gc.GradientDef("Square2", "Other"),)))
        x = gc.placeholder(gc.float32, [None, 2], name="x")
        w = gc.Variable(np.ones((2, 2), np.float32), name="w")
        same = gc.identity(gc.constant([1.0, 2.0]) + gc.constant([3.0, 4.0]), name="same")
        called = graph.apply_op("Square2", [x], name="called").outputs[0]
        y = gc.add(gc.matmul(called, w), same, name="y")
        with gc.control_dependencies([w.initializer]):
            gc.no_op("after")
        gc.ops.identity_n([gc.exp(x), gc.exp(x)])
        several = graph.apply_op("IdentityN", [[x, y]], name="several")
        gc.cond(gc.placeholder(gc.bool_, [], name="p"), lambda: x, lambda: -x)
    graph.finalize()
    return Setting(graph, x, y, w, several)


def state(graph: Graph) -> Any:
    """The complete visible state of a graph."""
    edges = [(str(edge), edge.id) for edge in sorted(graph.edges(), key=lambda edge: edge.id)]
    return (
        graph.as_graph_def(),
        graph.version,
        graph.num_node_ids,
        edges,
        {name: list(items) for name, items in graph.collections.items()},
        dict(graph.gradient_records),
        [(node.name, [str(tensor.shape) for tensor in node.outputs], node.error, node.input_errors) for node in graph.nodes],
        graph.unique_name("x"),
        graph.seed,
        graph.waiting(),
    )


@gc.function
def halved(t: Any) -> Any:
    return t * 0.5


CHANGES: dict[str, Callable[[Setting], Any]] = {
    "constant": lambda _: gc.constant(1.0),
    "placeholder": lambda _: gc.placeholder(gc.float32),
    "operator": lambda s: s.x + 1.0,
    "slice": lambda s: s.x[1:, ..., None],
    "variable": lambda _: gc.Variable(1.0, name="v"),
    "resource variable": lambda _: gc.Variable(1.0, name="v", use_resource=True),
    "assign": lambda s: s.w.assign_add(s.w),
    "initializers": lambda _: gc.initialize_all_variables(),
    "report": lambda _: gc.report_uninitialized_variables(),
    "gradients": lambda s: gc.gradients(s.y, [s.w]),
    "minimize": lambda s: gc.GradientDescentOptimizer(0.1).minimize(s.y, var_list=[s.w]),
    "cond": lambda s: gc.cond(s.graph.get_tensor_by_name("p:0"), lambda: s.x, lambda: s.x * 2.0),
    "while loop": lambda _: gc.while_loop(lambda i: i < 3, lambda i: i + 1, [0]),
    "function": lambda s: halved(s.x),
    "add_node": lambda s: s.graph.add_node(gc.NodeDef("new", "NoOp")),
    "node builder": lambda s: gc.NodeBuilder("new", "Neg").input(s.x.node).finalize(s.graph),
    "import": lambda s: gc.import_graph_def(gc.GraphDef(), s.graph, prefix=""),
    "remove_node": lambda s: s.graph.remove_node(s.y.node),
    "clear": lambda s: s.graph.clear(),
    "add_edge": lambda s: s.graph.add_edge(s.x.node, 0, s.y.node, 0),
    "remove_edge": lambda s: s.graph.remove_edge(s.y.node.input_edge(0)),
    "remove control edge": lambda s: s.graph.remove_edge(
        next(edge for edge in s.graph.get_operation_by_name("after").in_edges() if edge.is_control_edge)
    ),
    "update_edge": lambda s: s.graph.update_edge(s.x.node, 0, s.y.node, 0),
    "add_control_edge": lambda s: s.graph.add_control_edge(s.x.node, s.y.node),
    "remove_control_edge": lambda s: s.graph.remove_control_edge(s.w.initializer, s.graph.get_operation_by_name("after")),
    "set_attr": lambda s: s.graph.set_attr(s.y.node, "_mark", 1),
    "add_attr": lambda s: s.y.node.add_attr("_mark", 1),
    "clear_attr": lambda s: s.several.clear_attr("_mark"),
    "set_requested_device": lambda s: s.graph.set_requested_device(s.several, "/cpu:1"),
    "shrink_type_info": lambda s: s.graph.shrink_type_info(s.several, {0: 0}),
    "set_shape": lambda s: s.x.set_shape([3, 2]),
    "set_shape_like": lambda s: s.graph.set_shape_like(s.x, s.y),
    "add_function_library": lambda s: s.graph.add_function_library(FunctionDefLibrary((TWICE,))),
    "library.add_function_def": lambda s: s.graph.library.add_function_def(TWICE),
    "library.add_gradient_def": lambda s: s.graph.library.add_gradient_def(gc.GradientDef("Square2", "Twice")),
    "library.add_library": lambda s: s.graph.library.add_library(FunctionDefLibrary((TWICE,))),
    "library.replace_function": lambda s: s.graph.library.replace_function("Square2", TWICE),
    "library.replace_gradient": lambda s: s.graph.library.replace_gradient(gc.GradientDef("Square2", "Square2")),
    "library.remove_function": lambda s: s.graph.library.remove_function("Square2"),
    "library.remove_gradient": lambda s: s.graph.library.remove_gradient("Square2"),
    "library.clear": lambda s: s.graph.library.clear(),
    "add_to_collection": lambda s: s.graph.add_to_collection("mine", s.x),
    "add_to_collections": lambda s: s.graph.add_to_collections(["c", "d"], 1),
    "clear_collection": lambda s: s.graph.clear_collection("c"),
    "gc.add_to_collection": lambda s: gc.add_to_collection(gc.GraphKeys.VARIABLES, s.w),
    "optimize_graph": lambda s: gc.optimize_graph(None, s.graph),
    "fold_constants": lambda s: gc.fold_constants(s.graph),
    "eliminate_common_subexpressions": lambda s: gc.eliminate_common_subexpressions(s.graph),
    "remove_identity_nodes": lambda s: gc.remove_identity_nodes(s.graph),
    "expand_inline_functions": lambda s: gc.expand_inline_functions(gc.InstantiatedFunctions(s.graph.library), s.graph),
    "lower_functional_ops": lambda s: gc.lower_functional_ops(gc.InstantiatedFunctions(s.graph.library), s.graph),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_finalized_graph_refuses_to_be_changed_and_is_as_it_was(change: str) -> None:
    setting = _setting()
    before = state(setting.graph)
    with setting.graph.as_default(), pytest.raises(FailedPreconditionError, match="The graph has been finalized and cannot be modified"):
        CHANGES[change](setting)
    assert state(setting.graph) == before


def test_an_empty_finalized_graph_takes_no_copy() -> None:
    graph, other = gc.Graph(), _setting().graph
    graph.finalize()
    with pytest.raises(FailedPreconditionError, match="has been finalized"):
        gc.copy_graph(other, graph)
    assert state(graph) == state(_finalized())


def _finalized() -> Graph:
    graph = gc.Graph()
    graph.finalize()
    return graph


def test_the_mutators_of_a_graph_are_all_tried_here() -> None:
    """A new method that changes graphs must be added to the table above."""
    names = {name for name in dir(Graph) if not name.startswith("_") and callable(getattr(Graph, name))}
    names |= {f"library.{name}" for name in dir(gc.FunctionLibraryDefinition) if not name.startswith("_")}
    begins = ("add_", "remove_", "replace_", "update_", "set_", "clear", "shrink_")
    changing = {name for name in names if name.removeprefix("library.").startswith(begins)}
    assert changing <= set(CHANGES)


def test_a_finalized_graph_still_runs_and_is_looked_at() -> None:
    setting = _setting()
    graph, session = setting.graph, gc.Session(graph=setting.graph)
    before = state(graph)
    session.run(setting.w.initializer)
    assert session.run(setting.y, {setting.x: [[1, 2]]}).tolist() == [[9, 11]]
    assert session.run("cond:0", {setting.x: [[1, 2]], "p:0": False}).tolist() == [[-1, -2]]
    assert len(graph.copy()) == len(graph)
    gc.explain_gradient(setting.y, setting.w)
    gc.explain_shape(setting.y)
    assert state(graph)[:4] == (graph.as_graph_def(), *before[1:4])


def test_a_finalized_graph_whose_transaction_fails_can_be_changed_again() -> None:
    graph = gc.Graph()

    def finalize_and_fail() -> None:
        with graph.transaction():
            graph.finalize()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        finalize_and_fail()
    graph.library.add_function_def(TWICE)
    assert "Twice" in graph.library


def test_a_cell_that_runs_again_leaves_a_finalized_graph_as_it_is() -> None:
    run = CellRun(cell="a", execution=1, label="In [1]")
    graph = gc.Graph()
    token = current_run.set(run)
    try:
        graph.begin_cell(run)
        with graph.as_default():
            x = gc.constant(1.0, name="x")
        graph.end_cell(run)
        graph.finalize()
        before = state(graph)
        graph.begin_cell(run)
        with graph.as_default(), pytest.raises(FailedPreconditionError, match="has been finalized"):
            gc.constant(1.0, name="x")
        assert graph.end_cell(run) == []
        assert graph.drop_cell("a") == []
    finally:
        current_run.reset(token)
    assert state(graph) == before
    assert x.node in graph
