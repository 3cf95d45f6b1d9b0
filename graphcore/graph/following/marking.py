"""Marks on nodes that could not follow a change: they stay, with the reason, until the node is made again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphcore.errors import GraphError
from graphcore.graph.shapes.propagation import forget_shapes, infer_downstream

if TYPE_CHECKING:
    from graphcore.graph.graph import Graph
    from graphcore.graph.model.node import Node


def mark(graph: Graph, node: Node, error: GraphError) -> None:
    """Say what is wrong with `node`: it refuses to run with this error, and shape inference leaves it alone, until it is replaced."""
    if node.error is not None and node.error.is_mark and node.error.message == error.message:
        return
    graph.note(node)
    error.is_mark = True
    node.error = error
    forget_shapes(node)
    graph.publish("shapes", node)
    infer_downstream(graph, node)


def unmark(graph: Graph, node: Node) -> None:
    """Take a mark away: the node is inferred again."""
    if node.error is not None and node.error.is_mark:
        graph.note(node)
        node.error = None
        graph.publish("replaced", node)
        infer_downstream(graph, node, include_start=True)
