"""Cells in any order: the final graph is the one described by the cells."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from graphcore.source import CellRun, current_run

CELLS = 6
Definition = tuple[str, tuple[int, ...], int]
"""The content of a cell: an op, the cells it takes inputs from (counted back), a size."""


def definitions() -> st.SearchStrategy[Definition]:
    return st.tuples(
        st.sampled_from(["Placeholder", "Neg", "AddV2", "MatMul", "Sum", "Shape"]),
        st.tuples(st.integers(1, 5), st.integers(1, 5)),
        st.integers(1, 3),
    )


def make(graph: gc.Graph, cell: int, definition: Definition) -> None:
    """Run one cell's code: it makes the node `v<cell>`, and for Sum a second one that it depends on."""
    op, back, size = definition
    sources = [graph.find(f"v{cell - step}") for step in back if cell - step >= 0]
    inputs = [node.outputs[0] for node in sources if node is not None and node.outputs[0].dtype is gc.float32]
    if op == "Placeholder" or not inputs:
        gc.placeholder(gc.float32, [None if size == 3 else size, size], name=f"v{cell}")
        return
    count = 2 if op in {"AddV2", "MatMul"} else 1
    chosen = (inputs * 2)[:count]
    if op == "Sum":
        chosen.append(gc.constant([0], name=f"axes{cell}"))
    graph.apply_op(op, chosen, None, f"v{cell}")


def run(graph: gc.Graph, cell: int, definition: Definition, execution: int) -> bool:
    """Run one cell as a notebook does. True iff it succeeded."""
    cell_run = CellRun(cell=f"c{cell}", execution=execution, label=f"In [{execution}]")
    token = current_run.set(cell_run)
    graph.begin_cell(cell_run)
    failed = False
    try:
        with graph.as_default():
            make(graph, cell, definition)
    except InvalidArgumentError:
        failed = True
    finally:
        current_run.reset(token)
    graph.end_cell(cell_run, failed=failed)
    return not failed


def picture(graph: gc.Graph) -> dict[str, tuple[object, ...]]:
    return {node.name: (node.node_def, [(t.dtype, t.shape) for t in node.outputs], str(node.error)) for node in graph.nodes}


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, CELLS - 1), definitions()), min_size=1, max_size=20))
def test_running_every_cell_once_more_gives_the_graph_of_a_fresh_notebook(edits: Sequence[tuple[int, Definition]]) -> None:
    live = gc.Graph()
    latest: dict[int, Definition] = {}
    for execution, (cell, definition) in enumerate(edits):
        run(live, cell, definition, execution)
        latest[cell] = definition
    fresh = gc.Graph()
    for execution, (cell, definition) in enumerate(sorted(latest.items())):
        again = run(live, cell, definition, 100 + execution)
        assert run(fresh, cell, definition, execution) == again
        if not again:
            return
    assert picture(live) == picture(fresh)
    assert set(live.nx.edges(keys=True)) == set(fresh.nx.edges(keys=True))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, CELLS - 1), definitions()), min_size=1, max_size=20))
def test_shapes_after_any_edits_are_those_of_a_full_inference(edits: Sequence[tuple[int, Definition]]) -> None:
    graph = gc.Graph()
    for execution, (cell, definition) in enumerate(edits):
        run(graph, cell, definition, execution)
    for node in graph.nodes:
        if any(tensor not in graph for tensor in node.inputs):
            assert node.error is not None
            continue
        known = [tensor.shape for tensor in node.outputs]
        if node.error is not None:
            continue
        graph.refiner.add_node(node)
        assert [tensor.shape for tensor in node.outputs] == known
    names = set(graph.nx.nodes) - {"_SOURCE", "_SINK"}
    assert names == {node.name for node in graph.nodes}
    for node in graph.nodes:
        for slot, tensor in enumerate(node.inputs):
            assert graph.nx.has_edge(tensor.node.name, node.name, (tensor.index, slot)) == (tensor in graph)
