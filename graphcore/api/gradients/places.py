"""The devices of gradient nodes: those of the nodes that they differentiate."""

from __future__ import annotations

from graphcore.graph import Graph, Node

_ALIAS = "result"
"""The part of the alias nodes that `gradients` returns, in the records of gradient nodes."""


def put_beside_forward_nodes(graph: Graph, scope: str) -> None:
    """Let the gradient nodes in `scope` share the device of what they differentiate.

    An alias shares the device of the gradient that it names.
    """
    records = graph.gradient_records
    new_nodes = [node for node in graph.op_nodes() if node.name.startswith(scope) and node.name in records]
    aliases = [node for node in new_nodes if records[node.name].body_node == _ALIAS and records[node.name].function is None]
    for node in new_nodes:
        forward = graph.find(records[node.name].forward)
        if forward is not None and node not in aliases:
            _put_beside(graph, node, forward)
    for node in aliases:
        _put_beside(graph, node, node.inputs[0].node)


def _put_beside(graph: Graph, node: Node, other: Node) -> None:
    graph.set_attr(node, "_class", tuple(other.colocation_groups()))
    graph.set_requested_device(node, other.device)
