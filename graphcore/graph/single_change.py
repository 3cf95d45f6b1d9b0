"""Single changes of a graph, each made altogether or not at all, at the cost of what it changes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, TypeVar

from graphcore.errors import FailedPreconditionError
from graphcore.graph.edge_undo import Gone, Pair, Restored
from graphcore.graph.journal import Journal, Keys
from graphcore.graph.node import Node

if TYPE_CHECKING:
    from graphcore.graph.graph import Graph

FINALIZED: Final = "The graph has been finalized and cannot be modified"
_P = ParamSpec("_P")
_T = TypeVar("_T")


def refuse_finalized(graph: Graph) -> None:
    """Refuse to change a graph that is read-only.

    Raises:
        FailedPreconditionError: it has been finalized.
    """
    if graph.finalized:
        raise FailedPreconditionError(FINALIZED)


def whole(graph: Graph, change: Callable[Concatenate[Graph, _P], _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """What `change` of the graph and these arguments gives; if it raises, Ctrl-C included, the graph is exactly as it was.

    Subscribers learn of what has changed when all of it has. Within a transaction, or another such change, that sees to all of this.

    Raises:
        FailedPreconditionError: the graph has been finalized.
    """
    with graph.lock:
        refuse_finalized(graph)
        return noted(graph, change, *args, **kwargs)


def noted(graph: Graph, change: Callable[Concatenate[Graph, _P], _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """As `whole`, also where the graph has been finalized: `change` leaves its nodes as they are then."""
    with graph.lock:
        if graph.journal is not None:
            return change(graph, *args, **kwargs)
        single = SingleChange(graph)
        try:
            try:
                graph.journal = graph.edge_store.journal = single
                result = change(graph, *args, **kwargs)
                single.is_kept = True
                single.complete()
            except BaseException:
                single.end()
                raise
        except BaseException:
            single.end()  # Ctrl-C may have come before that was done
            raise
        return result


class SingleChange(Journal):
    """What a graph was when a change began; unlike a transaction it copies nothing that does not change.

    Attributes:
        completions: what is left to do when all has gone well; it may be done twice, and never fails.
        undoing: what brings back what is not noted otherwise; it may be done twice, and never fails.
        pairs, gone: see `edges_before`.
        edges: what that gives, once somebody has asked for it.
        edge_state: what else the edges come back with.
    """

    first_new_id = sys.maxsize
    """Every edge is noted, whatever node it leaves."""
    edges: Restored | None = None

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.completions: list[Callable[[], object]] = []
        self.undoing: list[Callable[[], object]] = []
        self.pairs: list[Pair] = []
        self.gone: list[Gone] = []
        self.edge_state = graph.edge_store.change_state()
        self._version = graph.version
        self._ranks_are_stale = graph.ranks_are_stale

    def note_pair(self, src: str, dst: str, keys: Keys | None) -> None:
        """Keep the edges from `src` to `dst`."""
        self.pairs.append((src, dst, keys, None if keys is None else dict(keys)))

    def note_node(self, name: str, data: dict[str, Node], after: dict[str, Keys], before: dict[str, Keys]) -> None:
        """Keep a node that is about to be taken out, with the edges that leave and enter it."""
        self.gone.append((name, data, after, before))

    def complete(self) -> None:
        """Do what waits for that, and tell the subscribers."""
        self.graph.edge_store.journal = None
        self.graph.journal = None
        for completion in self.completions:
            completion()
        self.completions.clear()
        if self.changes:
            self.tell()

    def restore(self) -> None:
        """Bring everything back."""
        graph = self.graph
        graph.edge_store.restore_change(self)
        self.restore_nodes()
        graph.put_back([data["node"] for _, data, _, _ in self.gone])
        for undo in reversed(self.undoing):
            undo()
        graph.version, graph.ranks_are_stale = self._version, self._ranks_are_stale
        graph.journal = None
