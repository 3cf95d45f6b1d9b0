"""The functions that a node runs, as graphs with the shapes of the call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from graphcore.attrs import Func
from graphcore.errors import GraphError
from graphcore.frontends.record import foreign_of
from graphcore.functions.library import GRADIENT_OP
from graphcore.graph import Graph, Node
from graphcore.graph.importing.from_nodes import graph_from_nodes
from graphcore.graph.model.node import Tensor
from graphcore.graph.shapes.symbolic_refiner import refiner_within
from graphcore.inference import ShapeHandle
from graphcore.passes import FunctionBody, InstantiatedFunctions
from graphcore.placement.called_work import called_functions, runs_functions
from graphcore.plumbing import BRANCH, WHILE

_FOREIGN: Final = ("then_branch", "else_branch", "cond", "body", "f")


def has_bodies(node: Node) -> bool:
    """True if a node runs functions."""
    return any(name in node.attr for name in (*_FOREIGN, "branches")) if node.is_opaque else runs_functions(node)


def is_choice(node: Node) -> bool:
    """True if a node runs one of its functions."""
    return node.op in BRANCH or (node.is_opaque and ("then_branch" in node.attr or "branches" in node.attr))


def is_loop(node: Node) -> bool:
    """True if a node runs its functions until a condition is false."""
    return node.op in WHILE or (node.is_opaque and "body" in node.attr)


def bodies_of(node: Node, functions: InstantiatedFunctions) -> Iterator[tuple[str, Graph]]:
    """The functions that a node runs: their names, and their graphs with the shapes of this call.

    Raises:
        GraphError: one cannot be instantiated.
    """
    foreign = foreign_of(node.graph)
    if foreign is None:
        for function, first in called_functions(node):
            attrs = {"f": function} if node.op == GRADIENT_OP else function.attr
            body = functions.body_of(GRADIENT_OP if node.op == GRADIENT_OP else function.name, attrs)
            tensors = node.outputs if node.op in WHILE else node.inputs[first:]
            yield function.name, _with_shapes(node, body, tensors)
        return
    for function in _foreign_functions(node):
        yield function.name, foreign.body(function.name, "").graph


def _foreign_functions(node: Node) -> Iterator[Func]:
    branches = node.attr.get("branches")
    for value in (*[node.attr.get(name) for name in _FOREIGN], *(branches if isinstance(branches, tuple) else ())):
        if isinstance(value, Func):
            yield value


def _with_shapes(caller: Node, body: FunctionBody, tensors: Sequence[Tensor]) -> Graph:
    graph = graph_from_nodes([node.node_def for node in body.graph.op_nodes()], body.graph.library, infers_functions=False)
    graph.refiner = refiner_within(caller.graph)
    for arg, tensor in zip(body.arg_nodes, tensors, strict=False):
        inner = graph.find(arg.name)
        if inner is not None:
            inner.output_handles = (tensor.node.output_handles[tensor.index],)
    for node in graph.op_nodes():
        if node.inputs or runs_functions(node):
            _infer(graph, node)
    return graph


def _infer(graph: Graph, node: Node) -> None:
    node.constants = None
    try:
        graph.refiner.add_node(node)
    except GraphError:  # the call itself says what is wrong
        node.output_handles = tuple([ShapeHandle() for _ in node.outputs])
