"""Changing a graph altogether or not at all: what is noted before things change, so that they can be brought back.

Each thing is noted when it is first touched: that costs what changes, not what the graph holds. Only of a transaction the
top-level dicts are copied whole, because the order of their entries is part of what must come back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from graphcore.graph.changes import Change
from graphcore.graph.node import Node

if TYPE_CHECKING:
    from graphcore.graph.graph import Graph

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
SHAPES: Final = 3
_ENTRY: Final = 4
INFERRED: Final = 8
_WHOLE: Final = len(_STATE) + 2
"""What ends an entry of a log: how long it is, by which it is known what it is."""
Keys = dict[tuple[int, int], dict[str, int]]
Adjacency = dict[str, dict[str, Keys]]


class Journal(ABC):
    """What a graph was before a change, noted as the change comes to it, so that the change is made altogether or not at all.

    Ctrl-C may come at any time: making this changes nothing yet, and whatever else it does can be done once more.

    Attributes:
        graph: the graph that changes.
        changes: what the subscribers are to be told of.
        log: what was, in the order in which it was noted; a node may be there more than once. One list of all, so that the cyclic collector
            has no containers to visit. An entry is a node, its state, and the length of that; a node, what was inferred for it, and the
            length; a node, its shapes if nothing else was inferred, and the length; a table beside the nodes, a key, what was under it, and
            the length.
        is_kept: True from where all went well: what is left to do is done then, whatever comes.
        is_ended: everything is as it is to be.
    """

    is_kept = False
    is_ended = False
    _told = 0

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.changes: list[Change] = []
        self.log: list[Any] = []

    def note(self, node: Node) -> None:
        """Keep what `node` is now."""
        self.log += (node, *_state_of(node), _WHOLE)

    def note_inferred(self, node: Node) -> None:
        """Keep what has been inferred for `node`: nothing else of it is going to change."""
        self.log += (node, *_inferred_of(node), INFERRED)

    def note_entry(self, table: dict[Any, Any], key: object) -> None:
        """Keep what is under `key` in a table beside the nodes."""
        self.log += (table, key, table.get(key, _NOTHING), _ENTRY)

    @abstractmethod
    def complete(self) -> None:
        """Do what is left to do when all went well."""

    @abstractmethod
    def restore(self) -> None:
        """Bring everything back."""

    def end(self) -> None:
        """Something ended the change: bring everything back, or complete what is kept. Nothing, where that has been done."""
        if not self.is_ended:
            finish = self.complete if self.is_kept else self.restore
            finish()
            self.is_ended = True

    def restore_nodes(self) -> None:
        """Bring the nodes back: what was noted first comes last."""
        end = len(self.log)
        while end:
            length = self.log[end - 1]
            of, *values = self.log[end - length : end - 1]
            end -= length
            if length == SHAPES:
                (of.output_handles,) = values
                of.handle_data = of.constants = of.error = None
                of.asked_values = 0
                of.input_errors = {}
            elif length == INFERRED:
                of.output_handles, of.handle_data, of.constants, of.asked_values, of.error, of.input_errors = values
            elif length == _WHOLE:
                for name, value in zip(_STATE, values, strict=True):
                    setattr(of, name, value)
            elif values[1] is _NOTHING:
                of.pop(values[0], None)
            else:
                of[values[0]] = values[1]

    def tell(self) -> None:
        """Tell the subscribers of the changes that they have not been told of."""
        failure: Exception | None = None
        while self._told < len(self.changes):
            try:
                self.graph.tell(self.changes[self._told])
            except Exception as error:  # noqa: BLE001 - a subscriber's own, which is raised when all know of all
                failure = failure or error
            self._told += 1
        if failure is not None:
            raise failure


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

    def note_pair(self, src: str, dst: str, _keys: Keys | None) -> None:
        """Keep the edges of both."""
        self.note(src)
        self.note(dst)

    def note_node(self, name: str, _data: dict[str, Node], after: dict[str, Keys], before: dict[str, Keys]) -> None:
        """Keep a node that is about to be taken out, with the edges that leave and enter it."""
        for other in (*before, *after, name):
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
