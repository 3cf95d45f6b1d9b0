"""The nodes that a run needs, producers first, and the frames of the loops among them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from graphcore.errors import InvalidArgumentError
from graphcore.graph.control_flow.frames import NodeFrame, control_flow_info
from graphcore.graph.model.node import Node, Tensor
from graphcore.graph.model.search import dependency_order
from graphcore.plumbing import ARG, EXIT, FRAME_OPS, MERGE, NEXT_ITERATION, PLACEHOLDER, is_back_edge

PLACEHOLDERS: Final = PLACEHOLDER | ARG
"""Ops that stand for a feed. To wait for a fed one is to wait for the feed, since it cannot run by itself."""


def is_replaced(node: Node, fed: Collection[Tensor]) -> bool:
    """True iff `node` is replaced by feeds and does not run, even if others wait for it.

    Any other node with all outputs fed still runs if it is a target or a control input.
    """
    return node.op in PLACEHOLDERS and all(tensor in fed for tensor in node.outputs)


def needed_nodes(fetches: Iterable[Tensor], targets: Iterable[Node], fed: Collection[Tensor]) -> list[Node]:
    """The nodes that `fetches` and `targets` depend on, given `fed`, in topological order.

    A loop back edge comes after its Merge.

    Raises:
        InvalidArgumentError: there is a cycle other than a loop.
    """
    fed_set = set(fed)
    roots = [tensor.node for tensor in fetches if tensor not in fed_set] + list(targets)

    def producers(node: Node) -> list[Node]:
        if is_replaced(node, fed_set):
            return []
        producers = [tensor.node for tensor in node.inputs if tensor not in fed_set]
        producers += node.control_inputs
        if node.op in MERGE:
            roots.extend(producer for producer in producers if is_back_edge(producer.op, node.op))
            producers = [producer for producer in producers if not is_back_edge(producer.op, node.op)]
        return producers

    return dependency_order(roots, producers, cyclic)


def cyclic(node: Node) -> InvalidArgumentError:
    """The error for a node that depends on itself."""
    return InvalidArgumentError.at(node, f"Graph is invalid, contains a cycle through '{node.name}' (op {node.op})")


def checked_frames(nodes: Sequence[Node], fetches: Sequence[Tensor], feeds: Collection[Tensor]) -> dict[Node, NodeFrame]:
    """The frames of `nodes`, which `fetches` need for the given `feeds`.

    Raises:
        InvalidArgumentError, InternalError: a loop is malformed, or a tensor inside it is fetched or fed.
    """
    if feeds and any(node.op in FRAME_OPS for node in nodes):
        whole = control_flow_info(needed_nodes([*fetches, *feeds], nodes, ()))
        for tensor in feeds:
            _require_outside(whole[tensor.node], tensor, "fed", "feed what enters the loop")
    info = control_flow_info(nodes, feeds)
    for node in nodes:
        if info[node].frame is None and (node.op in EXIT or node.op in NEXT_ITERATION):
            raise _refused(node, f"Invalid loop structure: {{{{node {node.name}}}}} is in no loop, for no Enter leads to it.")
    for tensor in fetches:
        if tensor not in feeds:
            _require_outside(info[tensor.node], tensor, "fetched", "fetch what leaves the loop through an Exit")
    return info


def _require_outside(inside: NodeFrame, tensor: Tensor, done: str, instead: str) -> None:
    if inside.frame is None or (tensor.node.op in EXIT and inside.parent_frame is None):
        return
    raise _refused(
        tensor.node,
        f"Tensor '{tensor.name}' cannot be {done}: it has a value in each iteration of loop '{inside.frame_name}'; {instead}",
    )


def _refused(node: Node, text: str) -> InvalidArgumentError:
    return InvalidArgumentError.at(node, text)
