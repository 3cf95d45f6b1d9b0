"""Snapshots of a graph, by which a later picture can mark new and changed nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphcore.definitions.types import NodeDef
from widgets.scene.types import State

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node

_Mark = tuple[NodeDef, tuple[tuple[int | None, ...] | None, ...]]


class Snapshot:
    """The definition and output shapes of every node at one moment. Take it with `take_snapshot`."""

    __slots__ = ("_marks",)

    def __init__(self, marks: dict[str, _Mark]) -> None:
        self._marks = marks

    def state_of(self, node: Node) -> State:
        """`new` if there was no such node, `changed` if its definition or shapes differ, else `normal`."""
        mark = self._marks.get(node.name)
        if mark is None:
            return "new"
        return "normal" if mark == _mark(node) else "changed"

    def __len__(self) -> int:
        return len(self._marks)


def take_snapshot(graph: Graph) -> Snapshot:
    """Take a snapshot of a graph."""
    return Snapshot({node.name: _mark(node) for node in graph.nodes})


def _mark(node: Node) -> _Mark:
    return node.node_def, tuple([tensor.shape.dims for tensor in node.outputs])
