"""Feeds of sizes that the graph does not know: that they are those of another tensor, as it has inferred, need not hold for what is fed."""

from __future__ import annotations

from graphcore.graph import constant_value
from graphcore.graph.model.node import Node, Tensor
from graphcore.runtime.core.control_flow import checked_frames
from graphcore.runtime.core.prune import PLACEHOLDERS, needed_nodes
from graphcore.runtime.core.rewrite import copy_with_shapes


def inferred_from_feeds(fetches: list[Tensor], targets: list[Node], feeds: list[Tensor]) -> tuple[list[Tensor], list[Node], list[Tensor]]:
    """What to run for `fetches` and `targets`: a copy with shapes of its own where those of the graph may not hold when `feeds` are given.

    Raises:
        GraphError: something within a loop is fetched or fed, or what is fed does not fit where it is needed.
    """
    if not any(_decides_shapes(tensor) for tensor in feeds):
        return fetches, targets, feeds
    checked_frames(needed_nodes(fetches, targets, feeds), fetches, feeds)  # the copy has no more what is fed
    return copy_with_shapes(fetches, targets, feeds)


def _decides_shapes(tensor: Tensor) -> bool:
    """True iff shapes may have been inferred from what `tensor` is when it is not fed, other than from a value that is known and kept."""
    return tensor.node.op not in PLACEHOLDERS and tensor.dtype.base.is_integer and constant_value(tensor) is None
