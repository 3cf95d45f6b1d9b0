"""What the beginning and the end of a cell do to its graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphcore.graph.rewiring import remove_all
from graphcore.source import CellRun

if TYPE_CHECKING:
    from graphcore.graph.graph import Graph


def begin_cell(graph: Graph, run: CellRun) -> None:
    """See `Graph.begin_cell`."""
    stale = graph.cells.begin(run)
    graph.names.release(run.cell, stale)


def end_cell(graph: Graph, run: CellRun, *, failed: bool) -> list[str]:
    """See `Graph.end_cell`."""
    stale = graph.cells.end(run, failed=failed)
    if failed or graph.finalized:
        graph.names.keep_released(run.cell)
        return []
    remove_all(graph, stale)
    graph.names.end_release()
    return [node.name for node in stale]


def drop_cell(graph: Graph, cell: str) -> list[str]:
    """See `Graph.drop_cell`."""
    owned = [] if graph.finalized else graph.cells.nodes_of(cell)
    remove_all(graph, owned)
    return [node.name for node in owned]
