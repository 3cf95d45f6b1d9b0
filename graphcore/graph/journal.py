"""What a transaction notes before things change, so that it can bring them back.

Each thing is noted once, when it is first touched: a transaction costs what it changes, not what the graph holds. Only
the top-level dicts are copied whole, because the order of their entries is part of what must come back.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

from graphcore.graph.changes import Change
from graphcore.graph.node import Node

_STATE: Final = (
    "op",
    "_definition",
    "registration",
    "op_def",
    "input_types",
    "output_types",
    "inputs",
    "control_inputs",
    "_outputs",
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
_inferred_of: Final = attrgetter("output_handles", "handle_data", "constants", "asked_values", "error", "input_errors")
_NOTHING: Final = object()
_WHOLE: Final = 3
_ENTRY: Final = 4
INFERRED: Final = 8
"""What ends an entry of a log: how long it is, by which it is known what it is."""
Adjacency = dict[str, dict[str, dict[tuple[int, int], dict[str, int]]]]


class NodeJournal:
    """The nodes that changed and the changes that nobody has been told of yet.

    Args:
        first_new_id: nodes from this id on are new and need not be noted.

    Attributes:
        removed: the nodes that were in the graph and are no longer, in the order in which they went.
        log: what was, in the order in which it was noted. One list of all, so that the cyclic collector has nothing to visit: a node, its
            state, and the length of that; a node, what was inferred for it (it may be there more than once), and the length; a table beside
            the nodes, a key, what was under it, and the length.
        completions: what is left to do when all has gone well; it may be done twice, and never fails.
    """

    __slots__ = ("_noted", "changes", "completions", "first_new_id", "log", "removed")

    def __init__(self, first_new_id: int) -> None:
        self.first_new_id = first_new_id
        self.changes: list[Change] = []
        self.removed: list[Node] = []
        self.completions: list[Callable[[], object]] | None = None
        self.log: list[Any] = []
        self._noted: set[Node] = set()

    def note(self, node: Node) -> None:
        """Keep what `node` is now."""
        if node.id < self.first_new_id and node not in self._noted:
            self.log += (node, _state_of(node), _WHOLE)
            self._noted.add(node)

    def note_inferred(self, node: Node) -> None:
        """Keep what has been inferred for `node`: nothing else of it is going to change."""
        self.log += (node, *_inferred_of(node), INFERRED)

    def note_entry(self, table: dict[Any, Any], key: object) -> None:
        """Keep what is under `key` in a table beside the nodes."""
        self.log += (table, key, table.get(key, _NOTHING), _ENTRY)

    def restore(self) -> None:
        """Bring the nodes back: what was noted first comes last."""
        end = len(self.log)
        while end:
            length = self.log[end - 1]
            of, *values = self.log[end - length : end - 1]
            end -= length
            if length == INFERRED:
                of.output_handles, of.handle_data, of.constants, of.asked_values, of.error, of.input_errors = values
            elif length == _WHOLE:
                for name, value in zip(_STATE, values[0], strict=True):
                    setattr(of, name, value)
            elif values[1] is _NOTHING:
                of.pop(values[0], None)
            else:
                of[values[0]] = values[1]

    def absorb(self, inner: NodeJournal) -> None:
        """Take over what a transaction within this one noted: it has succeeded."""
        self.changes += inner.changes
        self.log += inner.log
        self._noted |= inner._noted


class EdgeJournal:
    """The edges of nodes that changed.

    Args:
        first_new_id: nodes from this id on are new and need not be noted.
        nodes, succ, pred: networkx's dicts; they are filled again in place.
    """

    __slots__ = ("_dicts", "_kept", "_pred", "_succ", "_top", "first_new_id")

    def __init__(self, first_new_id: int, nodes: dict[str, dict[str, Node]], succ: Adjacency, pred: Adjacency) -> None:
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

    def note_pair(self, src: str, dst: str) -> None:
        """Keep the edges of both."""
        self.note(src)
        self.note(dst)

    def note_node(self, name: str) -> None:
        """Keep a node that is about to be taken out, with its edges."""
        for other in (*self._pred[name], *self._succ[name], name):
            self.note(other)

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
