"""The undo log of edges in a transaction; its size depends on the changes, not on the graph."""

from __future__ import annotations

from typing import Any

from graphcore.graph.model.node import Node

Keys = dict[tuple[int, int], dict[str, int]]
Adjacency = dict[str, dict[str, Keys]]


class EdgeJournal:
    """The saved edges of changed nodes.

    Args:
        first_new_id: nodes from this id on are new and not saved.
        nodes, succ, pred: networkx's dicts; they are restored in place.
    """

    __slots__ = ("_dicts", "_kept", "_pred", "_succ", "_top", "first_new_id")

    def __init__(self, first_new_id: int, nodes: dict[str, dict[str, Node]], succ: Adjacency, pred: Adjacency) -> None:
        self.first_new_id = first_new_id
        self._succ = succ
        self._pred = pred
        self._dicts: tuple[dict[str, Any], ...] = (nodes, succ, pred)
        self._top = [dict(adjacency) for adjacency in self._dicts]
        self._kept: dict[str, tuple[list[Any], list[Any]]] = {}

    def note(self, *names: str) -> None:
        """Save the current edges of these nodes."""
        for name in names:
            if name not in self._kept and name in self._top[0]:
                leaving = [(other, keys, dict(keys)) for other, keys in self._succ[name].items()]
                self._kept[name] = leaving, list(self._pred[name].items())

    def restore(self) -> None:
        """Restore the edges, in their order."""
        for adjacency, before in zip(self._dicts, self._top, strict=True):
            adjacency.clear()
            adjacency.update(before)
        for name, (leaving, entering) in self._kept.items():
            succ, pred = self._succ[name], self._pred[name]
            succ.clear()
            for other, keys, content in leaving:
                keys.clear()
                keys.update(content)
                succ[other] = keys
            pred.clear()
            pred.update(entering)

    def absorb(self, inner: EdgeJournal) -> None:
        """Take over the log of an inner transaction that succeeded."""
        for name, kept in inner._kept.items():
            if name in self._top[0]:
                self._kept.setdefault(name, kept)
