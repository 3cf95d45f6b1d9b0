"""Iterative graph walks: depth first, post order, topological order, cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from graphcore.errors import InvalidArgumentError
from graphcore.graph.graph import Graph
from graphcore.graph.model.node import Edge, Node, producers_of
from graphcore.graph.model.search import topological_sort
from graphcore.plumbing import is_back_edge

Visit = Callable[[Node], object]
NodeKey = Callable[[Node], Any]
"""The sort key of nodes that could come next, so that the order does not depend on the history of the graph."""
EdgeFilter = Callable[[Edge], bool]
"""False for edges that are not to be followed."""


def by_name(node: Node) -> str:
    """A sort key: the name."""
    return node.name


def by_id(node: Node) -> int:
    """A sort key: the id."""
    return node.id


def dfs(
    graph: Graph, enter: Visit | None = None, leave: Visit | None = None, key: NodeKey | None = None, edge_filter: EdgeFilter | None = None
) -> None:
    """Walk depth first from the source along the edges.

    Args:
        graph: the graph.
        enter: a callback when a node is reached.
        leave: a callback after all descendants of a node.
        key: the order of a node's successors; by edge id by default.
        edge_filter: selects the edges to follow; all by default.
    """
    dfs_from(graph, [graph.source_node], enter, leave, key, edge_filter)


def dfs_from(
    graph: Graph,
    start: Iterable[Node],
    enter: Visit | None = None,
    leave: Visit | None = None,
    key: NodeKey | None = None,
    edge_filter: EdgeFilter | None = None,
) -> None:
    """As `dfs`, from these nodes."""
    store = graph.edge_store

    def following(node: Node) -> list[Node]:
        edges = store.all_out_edges(node)
        return [edge.dst for edge in edges if edge_filter is None or edge_filter(edge)]

    plain = edge_filter is None and (key is by_id or key is by_name)  # then the order is by edge id
    _walk(start, store.all_successors if plain else following, enter, leave, key)


def reverse_dfs(
    graph: Graph, enter: Visit | None = None, leave: Visit | None = None, key: NodeKey | None = None, edge_filter: EdgeFilter | None = None
) -> None:
    """As `dfs`, from the sink against the edges."""
    reverse_dfs_from(graph, [graph.sink_node], enter, leave, key, edge_filter)


def reverse_dfs_from(
    graph: Graph,
    start: Iterable[Node],
    enter: Visit | None = None,
    leave: Visit | None = None,
    key: NodeKey | None = None,
    edge_filter: EdgeFilter | None = None,
) -> None:
    """As `reverse_dfs`, from these nodes."""
    store = graph.edge_store

    def preceding(node: Node) -> list[Node]:
        edges = store.all_in_edges(node)
        return [edge.src for edge in edges if edge_filter is None or edge_filter(edge)]

    plain = edge_filter is None and (key is by_id or key is by_name)
    _walk(start, store.all_predecessors if plain else preceding, enter, leave, key)


def _walk(
    start: Iterable[Node], neighbours: Callable[[Node], list[Node]], enter: Visit | None, leave: Visit | None, key: NodeKey | None
) -> None:
    pending = list(start)
    visited: set[Node] = set()
    path: list[Node] = []  # entered nodes still to be left, each below its descendants
    while pending:
        node = pending.pop()
        if node in visited:
            if path and path[-1] is node:
                path.pop()
                assert leave is not None
                leave(node)
            continue
        visited.add(node)
        if enter is not None:
            enter(node)
        if leave is not None:
            pending.append(node)
            path.append(node)
        following = neighbours(node)
        if key is not None and len(following) > 1:
            following.sort(key=key)
        pending += [other for other in following if other not in visited]


def post_order(graph: Graph, key: NodeKey | None = None, edge_filter: EdgeFilter | None = None) -> list[Node]:
    """All nodes reachable from the source, including both ends, descendants first.

    Args:
        graph: the graph.
        key: makes the order independent of the graph's construction (`by_name`); see `dfs`.
        edge_filter: selects the edges to follow.
    """
    order: list[Node] = []
    dfs(graph, None, order.append, key, edge_filter)
    return order


def reverse_post_order(graph: Graph, key: NodeKey | None = None, edge_filter: EdgeFilter | None = None) -> list[Node]:
    """All nodes reachable from the source, including both ends, producers first: `post_order` reversed."""
    return post_order(graph, key, edge_filter)[::-1]


def topological_order(graph: Graph, key: NodeKey = by_id) -> list[Node]:
    """The op nodes in topological order without loop back edges; ties are broken by `key`.

    Raises:
        InvalidArgumentError: there is a cycle.
    """
    nodes = graph.nodes
    if key is by_id and all(other.id < node.id or is_back_edge(other.op, node.op) for node in nodes for other in producers_of(node)):
        return nodes
    order, left = _sorted_and_rest(graph, key)
    if left:
        raise _cycle_error(left)
    return order


def validate_graph_has_no_cycle(graph: Graph) -> None:
    """Check that no node depends on itself, except by a loop (NextIteration to Merge).

    Raises:
        InvalidArgumentError: one does.
    """
    topological_order(graph)


def find_cycle(graph: Graph) -> list[Node]:
    """The nodes of a cycle other than a loop, in order; empty if there is none."""
    _, left = _sorted_and_rest(graph, by_id)
    if not left:
        return []
    waiting = set(left)
    path: dict[Node, None] = {}
    node = left[0]
    while node not in path:
        path[node] = None
        node = next(other for other in _producers(graph, node) if other in waiting)
    nodes = list(path)
    return nodes[nodes.index(node) :][::-1]


def _sorted_and_rest(graph: Graph, key: NodeKey) -> tuple[list[Node], list[Node]]:
    """The nodes in topological order, and those in or behind a cycle."""
    return topological_sort(graph.nodes, lambda node: _producers(graph, node), key)


def _producers(graph: Graph, node: Node) -> list[Node]:
    return [other for other in graph.edge_store.predecessors(node) if not is_back_edge(other.op, node.op)]


def _cycle_error(left: list[Node]) -> InvalidArgumentError:
    names = ", ".join([node.name for node in left[:3]])
    return InvalidArgumentError.at(left[0], f"Graph is invalid, contains a cycle with {len(left)} nodes, including: {names}")
