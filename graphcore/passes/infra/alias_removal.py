"""Removal of dead nodes, identities and list converters."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Final

from graphcore.graph import Graph, Node, Tensor
from graphcore.graph.model.node import producers_of
from graphcore.graph.model.search import post_order, reachable
from graphcore.passes.infra.declarations import ANY, PassDeclaration, declares
from graphcore.passes.infra.rewriting import Rewriting
from graphcore.passes.infra.rewriting_graphs import rewrites
from graphcore.plumbing import ANY_SWITCH, CONTROL_FLOW, IDENTITY, LIST_CONVERTERS, NO_OP, RECV

_NOT_PASSED_OVER: Final = RECV | ANY_SWITCH | {"Recv", "HostRecv"}


@declares(PassDeclaration(name="remove_dead_nodes", removes=ANY))
@rewrites
def remove_dead_nodes(graph: Graph, keep: Container[str] = ()) -> bool:
    """Remove nodes that no kept node needs.

    Kept are stateful and control-flow nodes, and the leaves that the graph was built with.

    Args:
        graph: the graph to change.
        keep: the names of further nodes to keep.

    Returns:
        True iff anything was removed.
    """
    roots = [node for node in graph.op_nodes() if is_kept(node) or node.name in keep]
    return prune(graph, [*roots, *original_leaves(graph)])


@rewrites
def prune(graph: Graph, roots: Iterable[Node]) -> bool:
    """Remove the nodes that `roots` do not depend on. True iff there were any."""
    needed = reachable(roots, producers_of)
    dead = [node for node in graph.op_nodes() if node not in needed]
    with Rewriting(graph):
        for node in reversed(_consumers_last(dead)):
            graph.edge_store.detached.discard(node.name)
            graph.remove_node(node)
    return bool(dead)


def is_kept(node: Node) -> bool:
    """True iff a node has an effect without consumers: it is stateful or control flow."""
    return node.op_def.is_stateful or node.op in CONTROL_FLOW


def original_leaves(graph: Graph) -> list[Node]:
    """The leaves that the graph was built with, without those left over by a pass."""
    edges = graph.edge_store
    return [node for node in graph.op_nodes() if node.name not in edges.detached and not edges.has_successors(node)]


def _consumers_last(nodes: list[Node]) -> list[Node]:
    """The nodes in topological order, producers first."""
    among = set(nodes)
    return post_order(reversed(nodes), lambda node: [producer for producer in producers_of(node) if producer in among])


@declares(PassDeclaration(name="remove_identity_nodes", removes=frozenset({IDENTITY}), rewires=True, keeps_leaves=False))
@rewrites
def remove_identity_nodes(graph: Graph, keep: Container[str] = ()) -> bool:
    """Remove each Identity with exactly one incoming edge. Its users get its input instead.

    Kept are those with a control input, of a reference, or after a Recv or a Switch, which serve the execution.

    Args:
        graph: the graph to change.
        keep: the names of nodes to keep.

    Returns:
        True iff anything was removed.
    """
    detached = graph.edge_store.detached
    nodes = [node for node in graph.op_nodes() if node.op == IDENTITY and node.name not in detached and node.name not in keep]
    aliases = [node for node in nodes if _may_pass_over(node)]
    with Rewriting(graph) as rewriting:
        for node in aliases:
            source = node.inputs[0]
            rewriting.move_consumers(node, [source], source.node)
            rewriting.remove(node)
            graph.edge_store.detached.discard(source.node.name)  # the input is now wanted instead of the identity
    return bool(aliases)


def _may_pass_over(node: Node) -> bool:
    return not node.control_inputs and not node.inputs[0].dtype.is_ref and node.inputs[0].node.op not in _NOT_PASSED_OVER


@declares(
    PassDeclaration(
        name="remove_list_array_converter",
        adds=frozenset({IDENTITY, NO_OP}),
        removes=LIST_CONVERTERS,
        rewires=True,
        keeps_leaves=False,
        keeps_order=False,
    )
)
@rewrites
def remove_list_array_converter(graph: Graph, keep: Container[str] = ()) -> bool:
    """Replace each `_ListToArray` and `_ArrayToList` by one Identity for each element.

    Their names are those made by inlining.

    Args:
        graph: the graph to change.
        keep: the names of nodes to keep.

    Returns:
        True iff there was one.
    """
    nodes = [node for node in graph.op_nodes() if node.op in LIST_CONVERTERS and node.name not in keep]
    converters = [node for node in nodes if len(node.inputs) == len(node.outputs)]
    with Rewriting(graph) as rewriting:
        for node in converters:
            _split(rewriting, node)
    return bool(converters)


def _split(rewriting: Rewriting, node: Node) -> None:
    prefix = f"Func/{node.name}"
    before = [rewriting.no_op(f"{prefix}/input_control_node", node.control_inputs, node)] if node.control_inputs else []
    parts = [rewriting.identity(f"{prefix}/input", tensor, before, node, tensor.node.device) for tensor in node.inputs]
    after = None
    if any(slot < 0 for _, slot in node.consumers()):
        after = rewriting.no_op(f"{prefix}/output_control_node", parts, node)
    outputs: list[Tensor] = [part.outputs[0] for part in parts]
    rewriting.move_consumers(node, outputs, after)
    rewriting.remove(node)
    for part in parts:
        if not rewriting.graph.edge_store.has_successors(part):
            rewriting.graph.edge_store.detached.add(part.name)
