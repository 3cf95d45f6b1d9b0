"""Import in a cell that runs again."""

from __future__ import annotations

from typing import Any

import pytest

import graphcore as gc
from graphcore.errors import GraphError
from graphcore.source import CellRun, current_run
from tests.graphcore.graph.example_graphs import LOOP, import_into, node, ranks_fit, registry


@pytest.fixture
def graph() -> gc.Graph:
    return gc.Graph(registry())


def run_cell(graph: gc.Graph, execution: int, *nodes: Any, **options: Any) -> list[str]:
    """Import in one cell, in its `execution`-th run. Returns the names of removed nodes."""
    run = CellRun(cell="c", execution=execution, label=f"In [{execution}]")
    token = current_run.set(run)
    graph.begin_cell(run)
    failed = False
    try:
        import_into(graph, *nodes, **options)
    except GraphError:
        failed = True
    finally:
        current_run.reset(token)
    return graph.end_cell(run, failed=failed)


@pytest.mark.parametrize(
    "options", [{}, {"prefix": "p", "uniquify_prefix": True}, {"uniquify_names": True}], ids=["plain", "prefix", "names"]
)
def test_a_cell_that_imports_again_replaces_what_it_imported(graph: gc.Graph, options: dict[str, Any]) -> None:
    run_cell(graph, 1, "W1=TestParams", *LOOP, **options)
    before, nodes = graph.as_graph_def(), graph.nodes
    assert run_cell(graph, 2, "W1=TestParams", *LOOP, **options) == []
    assert graph.as_graph_def() == before
    assert graph.nodes == nodes
    assert all(each.error is None for each in nodes)
    assert len([edge for edge in graph.edges() if edge.dst.name.endswith("merge")]) == 2
    assert ranks_fit(graph)


def test_a_cell_whose_second_import_fails_keeps_the_first(graph: gc.Graph) -> None:
    run_cell(graph, 1, "A=TestParams", "B=TestMul(A, A)")
    before = graph.as_graph_def()
    assert run_cell(graph, 2, node("A=Vector", size=2), "B=TestInt(A)") == []
    assert graph.as_graph_def() == before


def test_a_changed_file_imported_by_the_same_cell_changes_the_nodes_in_place(graph: gc.Graph) -> None:
    run_cell(graph, 1, "A=TestParams", "B=Identity(A)", "C=TestParams")
    held = graph.get_tensor_by_name("B")
    assert run_cell(graph, 2, node("A=Vector", size=2), "B=Identity(A)") == ["C"]
    assert graph.get_tensor_by_name("B") is held
    assert str(held.shape) == "[2]"
