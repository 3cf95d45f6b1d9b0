"""Single changes of a graph, each made altogether or not at all, at the cost of what it changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from graphcore.graph.attempt import Attempt

if TYPE_CHECKING:
    from graphcore.graph.graph import Graph

_P = ParamSpec("_P")
_T = TypeVar("_T")


def whole(graph: Graph, change: Callable[Concatenate[Graph, _P], _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """What `change` of the graph and these arguments gives; if it raises, Ctrl-C included, the graph is exactly as it was.

    It adds no nodes. Subscribers learn of what has changed when all of it has. Within a transaction, or another such change, that sees to
    all of this.
    """
    with graph.lock:
        if graph.journal is not None:
            return change(graph, *args, **kwargs)
        attempt = _Change(graph)
        try:
            attempt.begin()
            result = change(graph, *args, **kwargs)
            attempt.keep()
        except BaseException:
            attempt.end()
            raise
        return result


class _Change(Attempt):
    """What a graph was when a change began; unlike a transaction it copies nothing that does not change."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.journal.completions = []
        self.edges = graph.edge_store.change_state()
        self.values = graph.version, graph.ranks_are_stale, graph.names.registers(), graph.cells.registers()

    def begin(self) -> None:
        """Note from now on what changes."""
        self.graph.edge_store.journal = self.edges[0]
        self.graph.journal = self.journal

    def keep(self) -> None:
        """All went well."""
        self.is_kept = True
        self.complete()

    def complete(self) -> None:
        """Do what waits for that, and tell the subscribers."""
        graph = self.graph
        graph.edge_store.journal = None
        graph.journal = None
        for completion in self.journal.completions or ():
            completion()
        self.tell()

    def restore(self) -> None:
        """Bring everything back."""
        graph = self.graph
        graph.edge_store.restore_change(self.edges)
        self.journal.restore()
        graph.put_back(self.journal.removed)
        graph.version, graph.ranks_are_stale, names, cells = self.values
        graph.names.restore_registers(names)
        graph.cells.restore_registers(cells)
        graph.journal = None
