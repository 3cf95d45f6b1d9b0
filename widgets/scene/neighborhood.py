"""Nodes around a node, between two nodes, and of one op, device or cell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import networkx as nx

from graphcore.errors import InvalidArgumentError
from widgets.scene.find import matching

if TYPE_CHECKING:
    from graphcore.graph import Graph


def neighborhood(graph: Graph, name: str, steps: int) -> list[str]:
    """The names of the nodes at most so many edges away from a node, itself included.

    Raises:
        InvalidArgumentError: there is no such node, or the number of steps is negative.
    """
    if steps < 0:
        raise InvalidArgumentError(f"Cannot take {steps} steps: required a number of steps >= 0")
    _check(graph, name)
    around = nx.single_source_shortest_path_length(_edges(graph).to_undirected(as_view=True), name, cutoff=steps)
    return _in_order(graph, around)


def path_between(graph: Graph, source: str, target: str) -> list[str]:
    """The names of all nodes on the ways from one node to another, or back; empty if there are none.

    Raises:
        InvalidArgumentError: there is no such node.
    """
    for name in (source, target):
        _check(graph, name)
    edges = _edges(graph)
    for first, last in ((source, target), (target, source)):
        after = nx.descendants(edges, first) | {first}
        if last in after:
            return _in_order(graph, after & (nx.ancestors(edges, last) | {last}))
    return []


def filtered(graph: Graph, *, op: str = "", device: str = "", cell: str = "") -> list[str]:
    """The names of the nodes that the search finds with these terms.

    Raises:
        InvalidArgumentError: there is no term.
    """
    terms = {"op": op, "device": device, "cell": cell}
    query = " ".join(f'{field}:"{value}"' for field, value in terms.items() if value)
    if not query:
        raise InvalidArgumentError("Cannot filter by nothing: required an op, a device, or a cell")
    return [node.name for node in matching(query, graph.nodes)]


def _edges(graph: Graph) -> nx.DiGraph[str]:
    edges: nx.DiGraph[str] = nx.DiGraph()
    for node in graph.nodes:
        edges.add_node(node.name)
        edges.add_edges_from((tensor.node.name, node.name) for tensor in node.inputs)
        edges.add_edges_from((producer.name, node.name) for producer in node.control_inputs)
    return edges


def _check(graph: Graph, name: str) -> None:
    if graph.find(name) is None:
        raise InvalidArgumentError(f"There is no node '{name}' in the graph")


def _in_order(graph: Graph, names: Iterable[str]) -> list[str]:
    wanted = set(names)
    return [node.name for node in graph.nodes if node.name in wanted]
