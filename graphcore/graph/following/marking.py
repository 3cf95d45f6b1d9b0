"""Marks on nodes that could not follow a change; they are kept until the node is made again."""

from __future__ import annotations

from graphcore.errors import GraphError
from graphcore.graph.model.node import Node
from graphcore.graph.shapes.propagation import forget_shapes, infer_downstream
from graphcore.graph.shapes.shaped_graph import ShapedGraph


def mark(graph: ShapedGraph, node: Node, error: GraphError) -> None:
    """Mark `node` with an error: it refuses to run, and inference skips it, until it is replaced.

    The mark of a node that is left from an earlier run leaves its shapes as they are.
    """
    if node.error is not None and node.error.is_mark and node.error.message == error.message:
        return
    graph.journal.note(node)
    error.is_mark = True
    node.error = error
    if error.is_left:
        graph.journal.publish("shapes", node)
        return
    forget_shapes(node)
    graph.journal.publish("shapes", node)
    infer_downstream(graph, node)


def unmark(graph: ShapedGraph, node: Node) -> None:
    """Remove a mark; the node is inferred again."""
    if node.error is not None and node.error.is_mark:
        graph.journal.note(node)
        node.error = None
        graph.journal.publish("replaced", node)
        infer_downstream(graph, node, include_start=True)
