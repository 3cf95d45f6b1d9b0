"""Graphs as text and as GraphDefs whose names are stable, whatever passes have made of the nodes' own names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from graphcore.brief import brief
from graphcore.definitions import FunctionDef, GraphDef, NodeDef, OpDef
from graphcore.errors import InvalidArgumentError
from graphcore.graph.graph import Graph
from graphcore.graph.model.node import Node
from graphcore.text import debug_string as text_of
from graphcore.text.statements import LookUp


class OfFunction(Protocol):
    """What was made of one function definition, such as one instantiation of a `gc.function`, or its body."""

    @property
    def fdef(self) -> FunctionDef:
        """The definition."""


Printable = Graph | FunctionDef | OfFunction | OpDef | NodeDef | GraphDef | Sequence[NodeDef]


def debug_string(value: Printable, look_up: LookUp | None = None) -> str:
    """The text of a function, an op's signature, a node, instantiated nodes, a GraphDef, or of a graph (its nodes renamed `n<id>`).

    `parse_function`, `parse_op_signature` and `parse_nodes` read it back. Docs and debug info are left out.

    Args:
        value: what to print; of an instantiation of a `gc.function` its definition.
        look_up: the ops that a reader of a function will know; those of the global registry unless given.

    Raises:
        InvalidArgumentError: it is nothing that has a text.
    """
    if isinstance(value, Graph):
        return text_of(to_graph_def(value), look_up)
    if isinstance(value, FunctionDef | OpDef | NodeDef | GraphDef | list | tuple):
        return text_of(value, look_up)
    fdef = getattr(value, "fdef", None)
    if isinstance(fdef, FunctionDef):
        return text_of(fdef, look_up)
    raise InvalidArgumentError(
        f"debug_string prints a graph, a GraphDef, a function, an op, a node or nodes; got {brief(value)} of type {type(value).__name__}"
    )


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
