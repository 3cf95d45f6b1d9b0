"""What a single change of a graph notes of the edges: the pairs of nodes between which they changed, however many others the two have."""

from __future__ import annotations

from typing import Any, Final

from graphcore.graph.journal import Adjacency
from graphcore.graph.node import Node

_Keys = dict[tuple[int, int], dict[str, int]]
_Pair = tuple[str, str]
_Gone = tuple[str, dict[str, Node], dict[str, _Keys], dict[str, _Keys]]
_ABSENT: Final[_Keys] = {}


class PairJournal:
    """The edges that changed, by the nodes that they go between; no node is added meanwhile.

    An entry that was gone comes back to where the numbers of its edges put it. Nothing is lost if bringing all back is interrupted: it is
    worked out first, and done again then.

    Args:
        nodes, succ, pred: networkx's dicts.
    """

    __slots__ = ("_gone", "_nodes", "_pairs", "_pred", "_succ", "_wanted")

    first_new_id = 0
    """Every node is one that was there."""

    def __init__(self, nodes: dict[str, dict[str, Node]], succ: Adjacency, pred: Adjacency) -> None:
        self._nodes = nodes
        self._succ = succ
        self._pred = pred
        self._pairs: dict[_Pair, tuple[_Keys, _Keys]] = {}
        self._gone: list[_Gone] = []
        self._wanted: list[tuple[dict[Any, Any], dict[Any, Any]]] | None = None

    def note_pair(self, src: str, dst: str) -> None:
        """Keep the edges from `src` to `dst`."""
        if (src, dst) not in self._pairs:
            keys = self._succ[src].get(dst, _ABSENT)
            self._pairs[src, dst] = keys, dict(keys)

    def note_node(self, name: str) -> None:
        """Keep a node that is about to be taken out, with its edges."""
        self._gone.append((name, self._nodes[name], self._succ[name], self._pred[name]))

    @property
    def touched(self) -> list[Node]:
        """The nodes whose edges changed, as long as they are in the graph."""
        names = dict.fromkeys([name for pair in self._pairs for name in pair])
        for name, _, succ, pred in self._gone:
            names.update(dict.fromkeys([name, *succ, *pred]))
        return [self._nodes[name]["node"] for name in names if name in self._nodes]

    def restore(self) -> None:
        """Bring the edges back."""
        if self._wanted is None:
            self._wanted = self._worked_out()
        for table, content in self._wanted:
            table.clear()
            table.update(content)

    def _worked_out(self) -> list[tuple[dict[Any, Any], dict[Any, Any]]]:
        """Each dict that has to change, with what it has to hold."""
        wanted = _Contents()
        succ = {**self._succ, **{name: after for name, _, after, _ in self._gone}}
        pred = {**self._pred, **{name: before for name, _, _, before in self._gone}}
        for name, _, after, before in reversed(self._gone):
            for other, keys in after.items():
                wanted.regain(pred[other], name, keys)
            for other, keys in before.items():
                wanted.regain(succ[other], name, keys)
        for (src, dst), (keys, content) in self._pairs.items():
            for table, other in ((succ[src], dst), (pred[dst], src)):
                if keys is _ABSENT:
                    wanted.of(table).pop(other, None)
                else:
                    wanted.regain(table, other, keys)
            if keys is not _ABSENT:
                wanted.set(keys, content)
        wanted.sort()
        if self._gone:
            nodes = {**self._nodes, **{name: data for name, data, _, _ in self._gone}}
            order = sorted(nodes, key=lambda name: nodes[name]["node"].id)
            tables: list[tuple[dict[str, Any], dict[str, Any]]] = [(self._nodes, nodes), (self._succ, succ), (self._pred, pred)]
            for there, found in tables:
                wanted.set(there, {name: found[name] for name in order})
        return wanted.all()


class _Contents:
    """What dicts are to hold, while it is worked out; the dicts themselves do not change."""

    def __init__(self) -> None:
        self._contents: dict[int, tuple[dict[Any, Any], dict[Any, Any]]] = {}
        self._unsorted: dict[int, dict[str, _Keys]] = {}

    def of(self, table: dict[Any, Any]) -> dict[Any, Any]:
        """What `table` is to hold."""
        found = self._contents.get(id(table))
        if found is None:
            found = self._contents[id(table)] = table, dict(table)
        return found[1]

    def set(self, table: dict[Any, Any], content: Any) -> None:
        """`table` is to hold this."""
        self._contents[id(table)] = table, content

    def regain(self, table: dict[str, _Keys], name: str, keys: _Keys) -> None:
        """`table` is to have the edges to or from `name` that it may have lost."""
        content = self.of(table)
        if content.get(name) is not keys:
            content[name] = keys
            self._unsorted[id(table)] = content

    def sort(self) -> None:
        """Put what was regained where the numbers of the edges say."""
        for content in self._unsorted.values():
            ordered = sorted(content.items(), key=self._first_number)
            content.clear()
            content.update(ordered)

    def _first_number(self, entry: tuple[str, _Keys]) -> int:
        keys: _Keys = self.of(entry[1])
        return min([data["id"] for data in keys.values()])

    def all(self) -> list[tuple[dict[Any, Any], dict[Any, Any]]]:
        """Each dict with what it is to hold."""
        return list(self._contents.values())
