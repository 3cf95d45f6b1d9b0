"""The tensors and the parts of graphs that checks are about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from graphcore.attrs import Func
from graphcore.definitions import NodeDef
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.graph import Graph, Node, Tensor, get_default_graph
from graphcore.graph.model.node import producers_of
from graphcore.graph.model.search import reachable
from graphcore.testing.failure import CheckFailed


class Part(msgspec.Struct, frozen=True):
    """A graph, or the nodes of it that some tensors and nodes need.

    Attributes:
        graph: the graph.
        nodes: the nodes, in the order in which they were made.
        roots: the chosen tensors and nodes; none for a whole graph.
    """

    graph: Graph
    nodes: list[Node]
    roots: list[Node | Tensor]


def node_of(value: Node | Tensor) -> Node:
    """The node that is `value`, or whose output it is."""
    return value.node if isinstance(value, Tensor) else value


def element(value: Any) -> Node | Tensor:
    """The node or tensor behind `value`: a tensor, a node, a variable, or a name in the default graph.

    Raises:
        CheckFailed: there is no node or tensor of this name.
        InvalidArgumentError: it is none of these, or was removed.
    """
    graph = getattr(value, "graph", None)
    graph = graph if isinstance(graph, Graph) else get_default_graph()
    graph.settle()
    try:
        return graph.as_graph_element(value)
    except NotFoundError as error:
        raise CheckFailed(error.message) from None


def tensor(value: Any) -> Tensor:
    """The tensor behind `value`; that of a node with one output.

    Raises:
        CheckFailed: there is no tensor of this name.
        InvalidArgumentError: it is no tensor.
    """
    target = element(value)
    if isinstance(target, Tensor):
        return target
    if len(target.outputs) != 1:
        raise InvalidArgumentError.at(
            target, f"Required a tensor, got node '{target.name}' (op {target.op}) with {len(target.outputs)} outputs"
        )
    return target.outputs[0]


def part(value: Any) -> Part:
    """The part of a graph that `value` stands for.

    Args:
        value: a graph for all of its nodes; a tensor, node, variable or name, or a list of these, for what they need.

    Raises:
        CheckFailed: there is no node or tensor of a name.
        InvalidArgumentError: it is none of these, or the list is empty or of several graphs.
    """
    if isinstance(value, Graph):
        value.settle()
        return Part(value, list(value.op_nodes()), [])
    listed = value if isinstance(value, list | tuple) else [value]
    if not listed:
        raise InvalidArgumentError("Required a graph, or tensors and nodes of one, got an empty list")
    roots = [element(item) for item in listed]
    graph = node_of(roots[0]).graph
    for root in roots:
        graph.owned(root)
    needed = reachable([node_of(root) for root in roots], producers_of)
    return Part(graph, [node for node in graph.op_nodes() if node in needed], roots)


def definitions(nodes: Sequence[Node], graph: Graph) -> Iterator[tuple[NodeDef, str]]:
    """The definitions of nodes and of those in functions that they use, with the name of the function."""
    seen: set[str] = set()
    pending: list[tuple[NodeDef, str]] = [(node.node_def, "") for node in nodes]
    while pending:
        node_def, inside = pending.pop()
        yield node_def, inside
        for name in functions_of(node_def, graph):
            function = graph.library.find(name)
            if function is not None and name not in seen:
                seen.add(name)
                pending += [(inner, name) for inner in function.node_def]


def functions_of(node_def: NodeDef, graph: Graph) -> list[str]:
    """The names of the functions that a node calls, or has as attrs."""
    names = [node_def.op] if graph.library.find(node_def.op) is not None else []
    for value in node_def.attr.values():
        values = value if isinstance(value, tuple) else (value,)
        names += [function.name for function in values if isinstance(function, Func)]
    return names


def where(node: Node) -> str:
    """` (In [3], line 2)`, or "" if the line is not known."""
    return "" if node.source is None else f" ({node.source.where})"
