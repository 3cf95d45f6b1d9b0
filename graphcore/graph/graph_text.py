"""Graphs as text and as GraphDefs whose names are stable, whatever passes have made of the nodes' own names."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from graphcore.definitions import FunctionDef, GraphDef, NodeDef, OpDef
from graphcore.graph.graph import Graph
from graphcore.graph.node import Node
from graphcore.text import debug_string as text_of
from graphcore.text.statements import LookUp


def debug_string(value: Graph | FunctionDef | OpDef | NodeDef | GraphDef | Sequence[NodeDef], look_up: LookUp | None = None) -> str:
    """The text of a function, an op's signature, a node, instantiated nodes, a GraphDef, or of a graph (its nodes renamed `n<id>`).

    `parse_function`, `parse_op_signature` and `parse_nodes` read it back. Docs and debug info are left out.

    Args:
        value: what to print.
        look_up: the ops that a reader of a function will know; those of the global registry unless given.
    """
    return text_of(to_graph_def(value) if isinstance(value, Graph) else value, look_up)


def to_graph_def(graph: Graph, pretty: bool = False) -> GraphDef:
    """The graph as a value in an order in which it can run, its nodes renamed: `n<id>`, or with `pretty` `<op><id>`.

    Args:
        graph: what to convert.
        pretty: names that tell the op.
    """
    nodes = [_renamed(node, pretty) for node in _last_visited(graph)]
    return GraphDef(node=tuple(nodes), versions=graph.versions)


def _last_visited(graph: Graph) -> list[Node]:
    """All nodes, each after its inputs: depth first, backwards from the nodes that nothing takes anything from."""
    used = {other for node in graph.op_nodes() for other in _producers(node)}
    stack: list[tuple[Node, bool]] = [(node, False) for node in graph.op_nodes() if node not in used]
    seen: set[Node] = set()
    order: list[Node] = []
    while stack:
        node, leaving = stack.pop()
        if leaving:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((other, False) for other in _producers(node) if other not in seen)
    return order


def _producers(node: Node) -> list[Node]:
    return [tensor.node for tensor in node.inputs] + node.control_inputs


def _renamed(node: Node, pretty: bool) -> NodeDef:
    inputs = [_name(tensor.node, pretty) + (f":{tensor.index}" if tensor.index else "") for tensor in node.inputs]
    inputs += [f"^{_name(control, pretty)}" for control in node.control_inputs]
    return msgspec.structs.replace(
        node.node_def, name=_name(node, pretty), input=tuple(inputs), device=node.assigned_device or node.node_def.device
    )


def _name(node: Node, pretty: bool) -> str:
    return f"{node.op if pretty else 'n'}{node.id}"
