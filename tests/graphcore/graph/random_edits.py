"""Random edits of graphs, and the visible state of a graph after them."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

import graphcore as gc
from graphcore.errors import GraphError
from graphcore.graph import GradientRecord
from graphcore.source import CellRun, current_run
from tests.graphcore.graph.example_graphs import LOOP, import_into, node

Edit = tuple[str, int, int, int]
KINDS = (
    "add",
    "add loop",
    "remove",
    "update",
    "control",
    "double control",
    "uncontrol",
    "cut",
    "mend",
    "attr",
    "shape",
    "collect",
    "look",
    "cell",
    "clear",
    "record",
)


def edits() -> st.SearchStrategy[list[Edit]]:
    return st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)), max_size=12)


def pick(graph: gc.Graph, number: int) -> gc.Node | None:
    nodes = graph.nodes
    return nodes[number % len(nodes)] if nodes else None


def edit(graph: gc.Graph, change: Edit) -> None:
    """Make one change; a refused one has no effect."""
    kind, a, b, c = change
    first, second = pick(graph, a), pick(graph, b)
    try:
        if kind == "add":
            add(graph, a, b, c)
        elif kind == "add loop":
            import_into(graph, "W1=TestParams", *LOOP, prefix=f"p{a}")
        elif kind == "collect":
            graph.add_to_collection(f"c{a}", b)
        elif kind == "look":
            assert graph.nx is not None
        elif kind == "cell":
            cell(graph, a, b, c)
        elif kind == "clear" and a == 0:
            graph.clear()
        elif kind == "record":
            graph.gradient_records[f"n{a}"] = GradientRecord("x", None, {}, "y")
        elif first is not None and second is not None:
            edit_nodes(graph, kind, first, second, c)
    except GraphError:
        assert kind in {"add", "add loop", "update", "control", "double control", "mend", "attr", "shape", "cut"}


def add(graph: gc.Graph, a: int, b: int, c: int) -> None:
    first, second = pick(graph, b), pick(graph, c)
    if first is None or second is None or not first.outputs or not second.outputs:
        graph.add_node(node(f"n{a}=Vector", size=b))
    elif c % 2:
        graph.add_node(node(f"n{a}=Identity({first.name}, ^{second.name})"))
    else:
        graph.add_node(node(f"n{a}=TestMul({first.name}, {second.name})"))


def cell(graph: gc.Graph, a: int, b: int, c: int) -> None:
    run = CellRun(cell=f"c{a % 2}", execution=b, label="In [1]")
    token = current_run.set(run)
    graph.begin_cell(run)
    try:
        add(graph, a, b, c)
        failed = False
    except GraphError:
        failed = True
    finally:
        current_run.reset(token)
    graph.end_cell(run, failed=failed)


def edit_nodes(graph: gc.Graph, kind: str, first: gc.Node, second: gc.Node, number: int) -> None:
    if kind == "remove":
        graph.remove_node(first)
    elif kind == "update":
        graph.update_edge(first, 0, second, number % 2)
    elif kind in {"control", "double control"}:
        graph.add_control_edge(first, second, allow_duplicates=kind == "double control")
    elif kind == "uncontrol":
        graph.remove_control_edge(first, second)
    elif kind == "cut":
        graph.remove_edge(first.input_edge(number % 2))
    elif kind == "mend":
        graph.add_edge(second, 0, first, number % 2)
    elif kind == "attr":
        graph.set_attr(first, "size" if number % 2 else "_note", number)
        graph.set_requested_device(second, f"/cpu:{number}")
    elif kind == "shape" and first.outputs:
        graph.set_shape(first.outputs[0], [number])


def run_all(graph: gc.Graph, changes: Sequence[Edit]) -> None:
    for change in changes:
        edit(graph, change)


def picture(graph: gc.Graph) -> tuple[object, ...]:
    """The visible state of a graph, by names.

    Edge ids are left out: those of source and sink are assigned lazily.
    """
    nodes = [
        (each.id, each.node_def, [tensor.name for tensor in each.inputs], [str(t.shape) for t in each.outputs], each.input_errors)
        for each in graph.nodes
    ]
    edges = {(edge.src.name, edge.src_output, edge.dst.name, edge.dst_input) for edge in graph.edges()}
    return nodes, edges, graph.names.state(), graph.collections
