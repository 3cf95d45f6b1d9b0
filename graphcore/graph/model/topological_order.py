"""A topological order maintained under edge changes, so that cycles are detected without a full walk.

Each node has a rank; an edge goes to a node of higher rank, other than a loop's back edge. A new edge against the ranks moves only
the nodes between its ends (Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", 2007).
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from graphcore.errors import InvalidArgumentError
from graphcore.graph.model.node import Node
from graphcore.graph.model.plain_graph import PlainGraph
from graphcore.graph.model.search import reachable, topological_sort
from graphcore.plumbing import is_back_edge

_rank: Final = attrgetter("rank")


def refuse_cycle(graph: PlainGraph, node: Node, producers: Iterable[Node]) -> None:
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
            ).advise(
                f"Give the result a name of its own, such as `{_last(node.name)}_next = ...`, in Python and in `name=`.",
                required=f"an input that does not depend on '{node.name}'",
                came=f"'{producer.name}'" + (", which is that node itself" if producer.name == node.name else ", which does"),
            )


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def _advice(graph: PlainGraph, producer: Node) -> str:
    """A hint for `h = tanh(h)` in a cell that runs again: its input `h` is its own last result."""
    running, source = graph.cells.running, producer.source
    if running is None or source is None or source.run is None or source.run.cell != running.cell:
        return ""
    return (
        f". This cell made '{producer.name}' itself in an earlier run, and running it again replaces that: "
        f"give the result a name of its own, or run the cell that makes the input first"
    )


def renew_stale_ranks(graph: PlainGraph) -> None:
    """Restore ranks after bulk changes: producers below consumers, except for loop back edges."""
    if graph.ranks_are_stale:
        _renew(graph)


def may_feed(graph: PlainGraph, producer: Node, node: Node) -> bool:
    """True iff `producer` does not depend on `node`, except by a loop. Ranks are updated for the edge."""
    renew_stale_ranks(graph)
    if producer.rank < node.rank or is_back_edge(producer.op, node.op) or not (producer.is_op and node.is_op):
        return True
    below = reachable([node], lambda item: [other for other in _after(graph, item) if other.rank <= producer.rank])
    if producer in below:
        return False
    above = reachable([producer], lambda item: [other for other in _before(graph, item) if other.rank >= node.rank])
    _reorder(graph, above, below)
    return True


def _renew(graph: PlainGraph) -> None:
    """Compute all ranks again, after a pass that moved many edges without checks."""
    graph.ranks_are_stale = False
    order, _ = topological_sort(graph.nodes, lambda node: _before(graph, node), attrgetter("id"))
    for node, rank in zip(order, sorted([node.rank for node in order]), strict=True):
        if node.rank != rank:
            graph.journal.note(node)
            node.rank = rank


def _after(graph: PlainGraph, node: Node) -> list[Node]:
    """The consumers of `node`, except by loop back edges."""
    return [other for other in graph.edge_store.successors(node) if other is not node and not is_back_edge(node.op, other.op)]


def _before(graph: PlainGraph, node: Node) -> list[Node]:
    """The producers of `node`, except by loop back edges."""
    return [other for other in graph.edge_store.predecessors(node) if other is not node and not is_back_edge(other.op, node.op)]


def _reorder(graph: PlainGraph, above: set[Node], below: set[Node]) -> None:
    """Permute ranks so that the upper nodes get the lower ones."""
    order = sorted(above, key=_rank) + sorted(below, key=_rank)
    ranks = sorted([node.rank for node in order])
    for node, rank in zip(order, ranks, strict=True):
        graph.journal.note(node)
        node.rank = rank
