"""Graphs as text and as GraphDefs with stable names, independent of names made by passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from graphcore.brief import brief
from graphcore.definitions import FunctionDef, GraphDef, NodeDef, OpDef
from graphcore.errors import InvalidArgumentError
from graphcore.graph.graph import Graph
from graphcore.graph.model.node import Node, producers_of
from graphcore.graph.model.search import post_order
from graphcore.text import debug_string as text_of
from graphcore.text.statements import LookUp


class OfFunction(Protocol):
    """The protocol of objects made from one function definition, such as an instantiation."""

    @property
    def fdef(self) -> FunctionDef:
        """The definition."""


Printable = Graph | FunctionDef | OfFunction | OpDef | NodeDef | GraphDef | Sequence[NodeDef]


def debug_string(value: Printable, look_up: LookUp | None = None) -> str:
    """Print a function, op signature, node, instantiated nodes, GraphDef, or graph.

    Nodes of a graph are renamed to `n<id>`. `parse_function`, `parse_op_signature` and `parse_nodes` read the text back. Docs and debug
    info are left out.

    Args:
        value: the value to print; for an instantiation of a `gc.function` its definition.
        look_up: the ops known to a later reader of a function; those of the global registry by default.

    Raises:
        InvalidArgumentError: the value has no text form.
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
    """Convert a graph to a GraphDef in execution order, with nodes renamed to `n<id>`.

    Args:
        graph: the graph.
        pretty: use the names `<op><id>`.
    """
    nodes = [_renamed(node, pretty) for node in _last_visited(graph)]
    return GraphDef(node=tuple(nodes), versions=graph.versions)


def _last_visited(graph: Graph) -> list[Node]:
    """All nodes in topological order, by depth-first search backwards from the leaves."""
    used = {other for node in graph.op_nodes() for other in producers_of(node)}
    return post_order([node for node in graph.op_nodes() if node not in used], producers_of)


def _renamed(node: Node, pretty: bool) -> NodeDef:
    inputs = [_name(tensor.node, pretty) + (f":{tensor.index}" if tensor.index else "") for tensor in node.inputs]
    inputs += [f"^{_name(control, pretty)}" for control in node.control_inputs]
    return msgspec.structs.replace(
        node.node_def, name=_name(node, pretty), input=tuple(inputs), device=node.assigned_device or node.node_def.device
    )


def _name(node: Node, pretty: bool) -> str:
    return f"{node.op if pretty else 'n'}{node.id}"
