"""A topological order maintained under edge changes, so that cycles are detected without a full walk.

Each node has a rank; an edge goes to a node of higher rank, other than a loop's back edge. A new edge against the ranks moves only
the nodes between its ends (Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", 2007).
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from graphcore.errors import InvalidArgumentError
from graphcore.graph.model.node import Node
from graphcore.plumbing import is_back_edge

if TYPE_CHECKING:
    from graphcore.graph.graph import Graph

_rank: Final = attrgetter("rank")


def refuse_cycle(graph: Graph, node: Node, producers: Iterable[Node]) -> None:
    """Check that none of `producers`, the new inputs of `node`, depends on it, except by a loop.

    Raises:
        InvalidArgumentError: one does.
    """
    for producer in producers:
        if not may_feed(graph, producer, node):
            raise InvalidArgumentError(
                f"Node '{node.name}' would take '{producer.name}' as an input, which itself depends on '{node.name}': a cycle"
                f"{_advice(graph, producer)}",
                op=node.op,
                node=node.name,
                input=producer.name,
                source=producer.source,
            )


def _advice(graph: Graph, producer: Node) -> str:
    """A hint for `h = tanh(h)` in a cell that runs again: its input `h` is its own last result."""
    running, source = graph.cells.running, producer.source
    if running is None or source is None or source.run is None or source.run.cell != running.cell:
        return ""
    return (
        f". This cell made '{producer.name}' itself in an earlier run, and running it again replaces that: "
        f"give the result a name of its own, or run the cell that makes the input first"
    )


def renew_stale_ranks(graph: Graph) -> None:
    """Restore ranks after bulk changes: producers below consumers, except for loop back edges."""
    if graph.ranks_are_stale:
        _renew(graph)


def may_feed(graph: Graph, producer: Node, node: Node) -> bool:
    """True iff `producer` does not depend on `node`, except by a loop. Ranks are updated for the edge."""
    renew_stale_ranks(graph)
    if producer.rank < node.rank or is_back_edge(producer.op, node.op) or not (producer.is_op and node.is_op):
        return True
    below = _below(graph, node, producer)
    if below is None:
        return False
    _reorder(graph, _above(graph, producer, node.rank), below)
    return True


def _renew(graph: Graph) -> None:
    """Compute all ranks again, after a pass that moved many edges without checks."""
    graph.ranks_are_stale = False
    waiting = {node: len(_before(graph, node)) for node in graph.op_nodes()}
    ready = [(node.id, node) for node, count in waiting.items() if not count]
    heapify(ready)
    order: list[Node] = []
    while ready:
        _, node = heappop(ready)
        order.append(node)
        for other in _after(graph, node):
            waiting[other] -= 1
            if not waiting[other]:
                heappush(ready, (other.id, other))
    for node, rank in zip(order, sorted([node.rank for node in order]), strict=True):
        if node.rank != rank:
            graph.editor.note(node)
            node.rank = rank


def _below(graph: Graph, node: Node, producer: Node) -> set[Node] | None:
    """The descendants of `node` ranked up to `producer`; None if `producer` is one."""
    found = {node}
    pending = [node]
    while pending:
        current = pending.pop()
        if current is producer:
            return None
        fresh = [other for other in _after(graph, current) if other not in found and other.rank <= producer.rank]
        found.update(fresh)
        pending += fresh
    return found


def _above(graph: Graph, producer: Node, lowest: int) -> set[Node]:
    """The ancestors of `producer` ranked from `lowest` on."""
    found = {producer}
    pending = [producer]
    while pending:
        current = pending.pop()
        fresh = [other for other in _before(graph, current) if other not in found and other.rank >= lowest]
        found.update(fresh)
        pending += fresh
    return found


def _after(graph: Graph, node: Node) -> list[Node]:
    """The consumers of `node`, except by loop back edges."""
    return [other for other in graph.edge_store.successors(node) if other is not node and not is_back_edge(node.op, other.op)]


def _before(graph: Graph, node: Node) -> list[Node]:
    """The producers of `node`, except by loop back edges."""
    return [other for other in graph.edge_store.predecessors(node) if other is not node and not is_back_edge(other.op, node.op)]


def _reorder(graph: Graph, above: set[Node], below: set[Node]) -> None:
    """Permute ranks so that the upper nodes get the lower ones."""
    order = sorted(above, key=_rank) + sorted(below, key=_rank)
    ranks = sorted([node.rank for node in order])
    for node, rank in zip(order, ranks, strict=True):
        graph.editor.note(node)
        node.rank = rank
