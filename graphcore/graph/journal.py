"""What a transaction notes before things change, so that it can bring them back.

Each thing is noted once, when it is first touched: a transaction costs what it changes, not what the graph holds. Only
the top-level dicts are copied whole, because the order of their entries is part of what must come back.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final

from graphcore.graph.changes import Change
from graphcore.graph.node import Node

_STATE: Final = (
    "op",
    "node_def",
    "registration",
    "op_def",
    "input_types",
    "output_types",
    "inputs",
    "control_inputs",
    "outputs",
    "output_handles",
    "handle_data",
    "constants",
    "asked_values",
    "like",
    "rank",
    "assigned_device",
    "source",
    "error",
    "input_errors",
)
_state_of: Final = attrgetter(*_STATE)
_Adjacency = dict[str, dict[str, dict[tuple[int, int], dict[str, int]]]]


class NodeJournal:
    """The nodes that changed and the changes that nobody has been told of yet.

    Args:
        first_new_id: nodes from this id on are new and need not be noted.
    """

    __slots__ = ("_before", "changes", "first_new_id")

    def __init__(self, first_new_id: int) -> None:
        self.first_new_id = first_new_id
        self.changes: list[Change] = []
        self._before: dict[Node, tuple[Any, ...]] = {}

    def note(self, node: Node) -> None:
        """Keep what `node` is now."""
        if node.id < self.first_new_id and node not in self._before:
            self._before[node] = _state_of(node)

    def restore(self) -> None:
        """Bring the nodes back."""
        for node, values in self._before.items():
            for name, value in zip(_STATE, values, strict=True):
                setattr(node, name, value)

    def absorb(self, inner: NodeJournal) -> None:
        """Take over what a transaction within this one noted: it has succeeded."""
        self.changes += inner.changes
        for node, values in inner._before.items():
            if node.id < self.first_new_id:
                self._before.setdefault(node, values)


class EdgeJournal:
    """The edges of nodes that changed.

    Args:
        first_new_id: nodes from this id on are new and need not be noted.
        nodes, succ, pred: networkx's dicts; they are filled again in place.
    """

    __slots__ = ("_dicts", "_kept", "_pred", "_succ", "_top", "first_new_id")

    def __init__(self, first_new_id: int, nodes: dict[str, dict[str, Node]], succ: _Adjacency, pred: _Adjacency) -> None:
        self.first_new_id = first_new_id
        self._succ = succ
        self._pred = pred
        self._dicts: tuple[dict[str, Any], ...] = (nodes, succ, pred)
        self._top = [dict(each) for each in self._dicts]
        self._kept: dict[str, tuple[list[Any], list[Any]]] = {}

    def note(self, name: str) -> None:
        """Keep the edges that node `name` has now."""
        if name in self._kept or name not in self._top[0]:
            return
        leaving = [(other, keys, dict(keys)) for other, keys in self._succ[name].items()]
        self._kept[name] = leaving, list(self._pred[name].items())

    def restore(self) -> None:
        """Bring the edges back, in their order."""
        for each, before in zip(self._dicts, self._top, strict=True):
            each.clear()
            each.update(before)
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
        """Take over what a transaction within this one noted: it has succeeded."""
        for name, kept in inner._kept.items():
            if name in self._top[0]:
                self._kept.setdefault(name, kept)
