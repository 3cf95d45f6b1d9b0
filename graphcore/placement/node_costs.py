"""The time of a node's kernel on a CPU, from shapes."""

from __future__ import annotations

import math
from typing import Final

from graphcore.graph.model.node import Node
from graphcore.traits import Cost

BY_FIRST_INPUT: Final = frozenset({"cubic", "transform", "sort"})
"""The kernels whose cost follows from the shape of the first input, and that cannot be stopped while they run."""
FLOPS_PER_MICROSECOND: Final = 2.0e4
_SLOW_PER_MICROSECOND: Final = 300.0
_FAST_PER_MICROSECOND: Final = 1500.0
_TRANSFORMED_PER_MICROSECOND: Final = 500.0
_SORTED_PER_MICROSECOND: Final = 300.0


def cost(node: Node) -> float:
    """The approximate microseconds of the kernel of `node`, from shapes; 0 if unknown."""
    kind = node.registration.traits.cost
    if kind in BY_FIRST_INPUT:
        known = node.inputs[0].shape.as_list() if node.inputs[0].shape.is_fully_defined else ()
        return cost_by_first_input(kind, tuple([size or 0 for size in known]))
    sizes = [tensor.shape.num_elements for tensor in (*node.inputs, *node.outputs)]
    if not sizes or min(sizes) < 0:
        return 0.0
    if kind == "product":
        left = node.inputs[0].shape.as_list()
        transposed = node.attr.get("transpose_a") or node.attr.get("adj_x")
        depth = (left[-2] if transposed else left[-1]) or 0
        return 2.0 * depth * node.outputs[0].shape.num_elements / FLOPS_PER_MICROSECOND
    if kind == "convolution":
        return 2.0 * _multiplications(node) / FLOPS_PER_MICROSECOND
    if kind == "contraction":  # of two matrices: the root of (ij)(jk)(ik) is the cost of a product
        return 2.0 * math.sqrt(math.prod(sizes)) / FLOPS_PER_MICROSECOND
    return max(sizes) / (_SLOW_PER_MICROSECOND if kind == "transcendental" else _FAST_PER_MICROSECOND)


def _multiplications(node: Node) -> float:
    """The multiplications of a convolution or its gradients: result elements times a channel's filter."""
    filters = node.inputs[1] if len(node.inputs[1].shape) > 1 else node.outputs[0]
    result = node.inputs[2] if len(node.inputs) == 3 else node.outputs[0]
    sizes = result.shape.as_list()
    channels = sizes[1] if node.attr.get("data_format") in {b"NCHW", b"NCDHW"} else sizes[-1]
    return filters.shape.num_elements * result.shape.num_elements / (channels or 1)


def cost_by_first_input(kind: Cost, shape: tuple[int, ...]) -> float:
    """The approximate microseconds of a kernel of this kind, from the shape of its first input."""
    size = math.prod(shape)
    if kind == "cubic":
        return 10.0 * max(shape[-2:], default=1) * size / FLOPS_PER_MICROSECOND
    return size * math.log2(size + 2) / (_TRANSFORMED_PER_MICROSECOND if kind == "transform" else _SORTED_PER_MICROSECOND)
