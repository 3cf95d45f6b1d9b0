"""Graphs behind the user's variables, and the node names in them."""

from __future__ import annotations

from graphcore.api import Function
from graphcore.definitions import FunctionDef
from graphcore.difference import GraphDiff, difference_graph
from graphcore.graph import Graph


def graph_of(value: object) -> Graph | None:
    """The graph of `value`: itself, or that of a tensor, node, variable, session or difference."""
    if isinstance(value, Graph):
        return value
    if isinstance(value, GraphDiff):
        return difference_graph(value)
    graph = getattr(value, "graph", None) if type(value).__module__.startswith("graphcore.") else None
    return graph if isinstance(graph, Graph) else None


def can_be_shown(value: object) -> bool:
    """True iff `%graph` can show `value`: it is or has a graph, or is a function."""
    return isinstance(value, Function | FunctionDef | GraphDiff) or graph_of(value) is not None


def matching_names(graph: Graph, typed: str, *, outputs: bool) -> list[str]:
    """Names of nodes (after a colon, of their outputs) that begin with `typed`, in graph order."""
    head, colon, _ = typed.partition(":")
    if outputs and colon:
        node = graph.find(head)
        return [] if node is None else [name for name in (tensor.name for tensor in node.outputs) if name.startswith(typed)]
    return [node.name for node in graph.nodes if node.name.startswith(typed)]
