"""The effects of a cell's beginning and end on its graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from graphcore.errors import FailedPreconditionError, GraphError
from graphcore.graph.following.marking import mark
from graphcore.graph.model.node import Node, Tensor, producers_of
from graphcore.graph.model.search import reachable
from graphcore.graph.shapes.shaped_graph import ShapedGraph
from graphcore.source import CellRun

DELETED: Final = -1
"""The number of the last execution of a deleted cell, which differs from all numbers of executions."""


def begin_cell(graph: ShapedGraph, run: CellRun) -> None:
    """See `Graph.begin_cell`."""
    stale = graph.cells.begin(run)
    graph.names.release(run.cell, stale)


def end_cell(graph: ShapedGraph, run: CellRun, *, failed: bool, error: BaseException | None) -> list[str]:
    """See `Graph.end_cell`."""
    stale = graph.cells.end(run, failed=failed)
    if not failed:
        graph.cells.forget_failed_runs(graph.run_count)
    if failed or graph.finalized:
        graph.names.keep_released(run.cell)
        for node in stale if failed and not graph.finalized else ():
            circle = graph.cells.circle
            fed = circle[1] if circle is not None and circle[0] is node else ""
            text = f"cell {run.label} failed before it made '{node.name}' again; run it again"
            left = FailedPreconditionError.at(node, text, input=fed).advise(
                f"Correct the error of cell {run.label}, run it again, and then this cell.",
                required=f"'{node.name}', which cell {run.label} makes",
                came="an error before it was made",
            )
            left.is_left = not fed
            mark(graph, node, left)
        if isinstance(error, GraphError):
            _note_fault(graph, run, error, stale)
        return []
    graph.editor.remove_all(stale)
    graph.names.end_release()
    return [node.name for node in stale]


def _note_fault(graph: ShapedGraph, run: CellRun, error: GraphError, stale: Sequence[Node]) -> None:
    """Note the node at which a cell failed, whether it is in the graph or could not be made."""
    culprit = graph.find(error.node) if error.node else None
    if culprit is not None and (culprit in stale or culprit.source == error.source):
        graph.cells.fail_at(culprit, error, run.cell)
    elif error.op and any(tensor in graph for tensor in error.inputs):  # constants made for the node are gone with it
        graph.cells.refusals[run.cell] = error


def drop_unmade(graph: ShapedGraph, but_for: Iterable[Tensor]) -> None:
    """See `Graph.drop_unmade`."""
    kept = reachable([tensor.node for tensor in but_for], producers_of)
    graph.editor.remove_all([node for node in graph.cells.unmade if node not in kept])


def drop_cell(graph: ShapedGraph, cell: str) -> list[str]:
    """See `Graph.drop_cell`."""
    owned = [] if graph.finalized else graph.cells.nodes_of(cell)
    graph.editor.remove_all(owned)
    graph.cells.last_runs[cell] = DELETED
    return [node.name for node in owned]


def delete_cell(graph: ShapedGraph, cell: str) -> None:
    """See `Graph.delete_cell`."""
    if not graph.finalized and graph.cells.delete(cell):
        graph.journal.outdate()


def forget_deleted_cells(graph: ShapedGraph) -> list[str]:
    """See `Graph.forget_deleted_cells`."""
    names = [name for cell in sorted(graph.cells.deleted) for name in drop_cell(graph, cell)]
    graph.cells.deleted = frozenset()
    return names
