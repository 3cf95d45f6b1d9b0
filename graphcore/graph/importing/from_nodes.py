"""Graphs from NodeDefs in any order, and graphs from graphs."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from graphcore.definitions import NodeDef
from graphcore.errors import InvalidArgumentError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph.copying import copy_graph
from graphcore.graph.graph import Graph
from graphcore.graph.model.filling import fill_in_order
from graphcore.graph.model.node import Node
from graphcore.plumbing import is_back_edge


def graph_from_nodes(nodes: Sequence[NodeDef], library: FunctionLibraryDefinition | None = None) -> Graph:
    """A graph of these nodes; each is added once its inputs are present, in list order.

    Args:
        nodes: complete NodeDefs (defaults filled in) in any order.
        library: the library of their ops, which becomes the graph's own; an empty one by default.

    Raises:
        NotFoundError: an op is not registered.
        InvalidArgumentError: an input is missing, or of another type, or there is a cycle.
    """
    graph = graph_with_library(library)
    fill_in_order(graph, nodes)
    return graph


def graph_with_library(library: FunctionLibraryDefinition | None) -> Graph:
    """An empty graph with `library` itself, not a copy, as function library."""
    if library is None:
        return Graph()
    graph = Graph(library.default_registry)
    graph.library = library
    return graph


def copy_sharing_library(graph: Graph) -> tuple[Graph, dict[Node, Node]]:
    """A copy that shares the function library of `graph`, and the mapping of its nodes."""
    made = graph_with_library(graph.library)
    return made, copy_graph(graph, made)


def in_order(graph: Graph) -> list[Node]:
    """The op nodes in topological order without loop back edges; ties are broken by id.

    Raises:
        InvalidArgumentError: there is a cycle.
    """
    nodes = graph.nodes
    if all(other.id < node.id or is_back_edge(other.op, node.op) for node in nodes for other in producers_of(node)):
        return nodes
    awaited = {node: {other for other in producers_of(node) if not is_back_edge(other.op, node.op)} for node in nodes}
    waiting = {node: len(producers) for node, producers in awaited.items()}
    waited_for: dict[Node, list[Node]] = {}
    for node, producers in awaited.items():
        for producer in producers:
            waited_for.setdefault(producer, []).append(node)
    ready = [(node.id, node) for node in nodes if not waiting[node]]
    order: list[Node] = []
    while ready:
        _, node = heappop(ready)
        order.append(node)
        for later in waited_for.get(node, ()):
            waiting[later] -= 1
            if not waiting[later]:
                heappush(ready, (later.id, later))
    if len(order) < len(nodes):
        stuck = next(node for node in nodes if waiting[node])
        raise InvalidArgumentError(
            f"Graph is invalid, contains a cycle through '{stuck.name}' (op {stuck.op})", op=stuck.op, node=stuck.name
        )
    return order


def producers_of(node: Node) -> list[Node]:
    """The nodes that `node` has inputs or control inputs from."""
    return [tensor.node for tensor in node.inputs] + node.control_inputs
