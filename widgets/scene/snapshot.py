"""Snapshots of a graph, by which a later picture can mark new and changed nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphcore.definitions.types import NodeDef
from widgets.scene.types import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphcore.graph import Graph, Node

_Mark = tuple[NodeDef, tuple[tuple[int | None, ...] | None, ...]]


class Snapshot:
    """The definition and output shapes of every node at one moment. Take it with `take_snapshot`."""

    __slots__ = ("_ids", "_marks")

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._marks = {node.name: _mark(node) for node in nodes}
        self._ids = {node.name: node.id for node in nodes}

    def state_of(self, node: Node) -> State:
        """`new` if there was no such node, `changed` if its definition or shapes differ, else `normal`."""
        mark = self._marks.get(node.name)
        if mark is None:
            return "new"
        return "normal" if mark == _mark(node) else "changed"

    def since(self, before: Snapshot) -> tuple[list[int], list[int]]:
        """The ids of the nodes that were not there before, and of those that were different."""
        fresh, altered = [], []
        for name, mark in self._marks.items():
            previous = before._marks.get(name)
            if previous is None:
                fresh.append(self._ids[name])
            elif previous != mark:
                altered.append(self._ids[name])
        return fresh, altered

    def __len__(self) -> int:
        return len(self._marks)


def take_snapshot(graph: Graph) -> Snapshot:
    """Take a snapshot of a graph."""
    return Snapshot(graph.nodes)


def _mark(node: Node) -> _Mark:
    return node.node_def, tuple([tensor.shape.dims for tensor in node.outputs])
