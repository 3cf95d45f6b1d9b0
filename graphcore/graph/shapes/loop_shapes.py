"""Shapes of loop variables: those of initial values, relaxed by later iterations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from graphcore.graph.model.node import Node
from graphcore.graph.model.plain_graph import PlainGraph
from graphcore.graph.model.search import reachable
from graphcore.inference import HandleData, ShapeAndType
from graphcore.inference.alternatives import relaxed_shape
from graphcore.plumbing import ENTER, MERGE, is_back_edge

_MOST_REQUESTS: Final = 16
_MOST_AHEAD: Final = 200


def enters_loop(node: Node) -> bool:
    """True iff the node passes a value into the first iteration of a loop unchanged."""
    return node.op in ENTER


def is_loop_head(node: Node) -> bool:
    """True iff `node` has loop back edges, present or awaited."""
    return node.op in MERGE and len(forward_slots(node)) < len(node.inputs)


def forward_slots(node: Node) -> list[int]:
    """The inputs of a Merge without its back edges; all inputs if all are back edges."""
    slots = [slot for slot, tensor in enumerate(node.inputs) if tensor.node.id >= 0 and not is_back_edge(tensor.node.op, node.op)]
    return slots or list(range(len(node.inputs)))


def relaxed_data(before: HandleData, again: HandleData | None, first: Sequence[HandleData]) -> HandleData:
    """The handle data common to `before` and later iterations' `again`; [] if nothing is known."""
    if again is None or len(again) != len(before):
        return []
    shapes = [
        relaxed_shape(a.shape, b.shape, [entry.shape for data in first for entry in data]) for a, b in zip(before, again, strict=True)
    ]
    if any(a.dtype is not b.dtype for a, b in zip(before, again, strict=True)):
        return []
    return [old if shape is old.shape else ShapeAndType(shape, old.dtype) for shape, old in zip(shapes, before, strict=True)]


class LoopsAround:
    """The loops around nodes, valid while the graph keeps its edges.

    Most queries are for one or two nodes with few descendants, since a new loop has no consumers yet. They search only the loops
    within reach. After many queries, or for a node with many descendants, all loops are searched once.

    Args:
        graph: the graph.
        heads: the heads of its loops.
    """

    __slots__ = ("_ends", "_graph", "_on", "_requests", "_table")

    def __init__(self, graph: PlainGraph, heads: Iterable[Node]) -> None:
        self._graph = graph
        self._requests = 0
        self._on: dict[Node, set[Node]] = {}
        self._table: dict[Node, list[Node]] | None = None
        self._ends: dict[Node, list[Node]] = {}  # the heads, by back edges
        for head in heads:
            for tensor in head.inputs if head in graph else ():
                if is_back_edge(tensor.node.op, head.op) and tensor in graph:
                    self._ends.setdefault(tensor.node, []).append(head)

    def heads(self, node: Node) -> Iterable[Node]:
        """The heads of the loops around `node`."""
        if self._table is None:
            ahead = self._ahead(node)
            if ahead is not None:
                return [head for head in ahead if node in self._nodes(head)]
            self._table = {}
            for head in dict.fromkeys([head for heads in self._ends.values() for head in heads]):
                for other in self._nodes(head):
                    self._table.setdefault(other, []).append(head)
        return self._table.get(node, ())

    def _ahead(self, node: Node) -> list[Node] | None:
        """The heads of the loops whose back edges depend on `node`; None if the search is too long."""
        self._requests += 1
        if self._requests > _MOST_REQUESTS:
            return None
        consumers_of, ends = self._graph.edge_store.consumers_of, self._ends
        seen, pending = {node}, [node]
        nodes_ahead: dict[Node, None] = {}
        while pending:
            if len(seen) > _MOST_AHEAD:
                return None
            current = pending.pop()
            nodes_ahead.update(dict.fromkeys(ends.get(current, ())))
            fresh = [other for other in consumers_of(current) if other not in seen]
            seen.update(fresh)
            pending += fresh
        return list(nodes_ahead)

    def _nodes(self, head: Node) -> set[Node]:
        loop_nodes = self._on.get(head)
        if loop_nodes is None:
            back = [end for end, heads in self._ends.items() if head in heads]
            loop_nodes = self._on[head] = _between(self._graph, head, back)
        return loop_nodes


def _between(graph: PlainGraph, head: Node, back: list[Node]) -> set[Node]:
    """The nodes on paths from `head` to `back`."""

    def producers(node: Node) -> list[Node]:
        return [tensor.node for tensor in node.inputs if tensor.node.rank > head.rank]

    before = reachable(back, producers)
    return reachable([head], lambda node: before.intersection(graph.edge_store.consumers_of(node))) - {head}
