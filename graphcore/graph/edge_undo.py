"""How the edges were before a single change: it notes the pairs of nodes between which they change, however many others the two have."""

from __future__ import annotations

from typing import Any

from graphcore.graph.journal import Adjacency, Keys
from graphcore.graph.node import Node

Pair = tuple[str, str, Keys | None, Keys | None]
"""A producer, a consumer, and the edges between them before they changed: the dict itself, None if there was none, and what it held."""
Gone = tuple[str, dict[str, Node], dict[str, Keys], dict[str, Keys]]
"""A node that was taken out: its name, and what was under that in networkx's dicts `_node`, `_succ` and `_pred`."""
Restored = list[tuple[dict[Any, Any], dict[Any, Any]]]
"""Dicts, each with what it is to hold."""


def edges_before(nodes: dict[str, dict[str, Node]], succ: Adjacency, pred: Adjacency, pairs: list[Pair], gone: list[Gone]) -> Restored:
    """Each dict that has to change so that the edges are as they were, with what it has to hold. Nothing changes yet.

    An entry that was gone comes back to where the numbers of its edges put it.

    Args:
        nodes, succ, pred: networkx's dicts, as they are now.
        pairs: between which nodes edges changed, in the order in which they did; of a pair that is there more than once the first counts.
        gone: the nodes that were taken out, in the order in which they were.
    """
    wanted = _Contents()
    all_succ = {**succ, **{name: after for name, _, after, _ in gone}}
    all_pred = {**pred, **{name: before for name, _, _, before in gone}}
    for name, _, after, before in reversed(gone):
        for other, keys in after.items():
            wanted.regain(all_pred[other], name, keys)
        for other, keys in before.items():
            wanted.regain(all_succ[other], name, keys)
    for src, dst, present, content in reversed(pairs):
        for table, other in ((all_succ[src], dst), (all_pred[dst], src)):
            if present is None:
                wanted.of(table).pop(other, None)
            else:
                wanted.regain(table, other, present)
        if present is not None:
            wanted.set(present, content)
    wanted.sort()
    if gone:
        all_nodes = {**nodes, **{name: data for name, data, _, _ in gone}}
        order = sorted(all_nodes, key=lambda name: all_nodes[name]["node"].id)
        tables: list[tuple[dict[str, Any], dict[str, Any]]] = [(nodes, all_nodes), (succ, all_succ), (pred, all_pred)]
        for there, found in tables:
            wanted.set(there, {name: found[name] for name in order})
    return wanted.all()


class _Contents:
    """What dicts are to hold, while it is worked out; the dicts themselves do not change."""

    def __init__(self) -> None:
        self._contents: dict[int, tuple[dict[Any, Any], dict[Any, Any]]] = {}
        self._unsorted: dict[int, dict[str, Keys]] = {}

    def of(self, table: dict[Any, Any]) -> dict[Any, Any]:
        """What `table` is to hold."""
        found = self._contents.get(id(table))
        if found is None:
            found = self._contents[id(table)] = table, dict(table)
        return found[1]

    def set(self, table: dict[Any, Any], content: Any) -> None:
        """`table` is to hold this."""
        self._contents[id(table)] = table, content

    def regain(self, table: dict[str, Keys], name: str, keys: Keys) -> None:
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

    def _first_number(self, entry: tuple[str, Keys]) -> int:
        keys: Keys = self.of(entry[1])
        return min([data["id"] for data in keys.values()])

    def all(self) -> Restored:
        """Each dict with what it is to hold."""
        return list(self._contents.values())
