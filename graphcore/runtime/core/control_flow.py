"""Branches and loops in what a run needs: well formed, and neither fetched nor fed in the middle of a loop."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from graphcore.errors import InvalidArgumentError
from graphcore.graph.model.control_flow_ops import EXIT, FRAME_OPS, NEXT_ITERATION
from graphcore.graph.model.frames import NodeFrame, control_flow_info
from graphcore.graph.model.node import Node, Tensor
from graphcore.runtime.core.prune import needed_nodes


def checked_frames(nodes: Sequence[Node], fetches: Sequence[Tensor], feeds: Collection[Tensor]) -> dict[Node, NodeFrame]:
    """The frames of `nodes`, which are what `fetches` need when `feeds` are given.

    Raises:
        InvalidArgumentError, InternalError: a loop is malformed, or a value that it has in each iteration is fetched or fed.
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
