"""The time of a node's kernel on a CPU, from shapes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from graphcore.graph.model.node import Node, Tensor
from graphcore.traits import Cost

BY_FIRST_INPUT: Final = frozenset({"cubic", "transform", "sort"})
"""The kernels whose cost follows from the shape of the first input, and that cannot be stopped while they run."""
FLOPS_PER_MICROSECOND: Final = 2.0e4
_SLOW_PER_MICROSECOND: Final = 300.0
_FAST_PER_MICROSECOND: Final = 1500.0
_TRANSFORMED_PER_MICROSECOND: Final = 500.0
_SORTED_PER_MICROSECOND: Final = 300.0


Elements = Callable[[Tensor], int]
"""Gives the number of elements of a tensor, -1 if unknown."""


def known_elements(tensor: Tensor) -> int:
    """The number of elements of a tensor by its shape, -1 if unknown."""
    return tensor.shape.num_elements


def cost(node: Node, elements: Elements = known_elements) -> float:
    """The approximate microseconds of the kernel of `node`, from shapes; 0 if unknown.

    Args:
        elements: the number of elements of a tensor; by its shape by default.
    """
    kind = node.registration.traits.cost
    if kind in BY_FIRST_INPUT:
        known = node.inputs[0].shape.as_list() if node.inputs[0].shape.is_fully_defined else ()
        return cost_by_first_input(kind, tuple([size or 0 for size in known]))
    sizes = [elements(tensor) for tensor in (*node.inputs, *node.outputs)]
    if not sizes or min(sizes) < 0:
        return 0.0
    if kind == "product":
        return 2.0 * _depth(node, elements) * elements(node.outputs[0]) / FLOPS_PER_MICROSECOND
    if kind == "convolution":
        return 2.0 * _multiplications(node, elements) / FLOPS_PER_MICROSECOND
    if kind == "contraction":  # of two matrices: the root of (ij)(jk)(ik) is the cost of a product
        return 2.0 * math.sqrt(math.prod(sizes)) / FLOPS_PER_MICROSECOND
    return max(sizes) / (_SLOW_PER_MICROSECOND if kind == "transcendental" else _FAST_PER_MICROSECOND)


def _depth(node: Node, elements: Elements) -> float:
    """The length of the sums of a matrix product, by the shape, or else by the numbers of elements."""
    left, right, result = *node.inputs[:2], node.outputs[0]
    if left.shape.rank:
        transposed = node.attr.get("transpose_a") or node.attr.get("adj_x")
        depth = left.shape.as_list()[-2 if transposed else -1]
        if depth is not None:
            return depth
    return math.sqrt(elements(left) * elements(right) / max(1, elements(result)))


def _multiplications(node: Node, elements: Elements) -> float:
    """The multiplications of a convolution or its gradients: result elements times a channel's filter."""
    filters = node.inputs[1] if len(node.inputs[1].shape) > 1 else node.outputs[0]
    result = node.inputs[2] if len(node.inputs) == 3 else node.outputs[0]
    if result.shape.rank is None:
        return 0.0
    sizes = result.shape.as_list()
    channels = sizes[1] if node.attr.get("data_format") in {b"NCHW", b"NCDHW"} else sizes[-1]
    return elements(filters) * elements(result) / (channels or 1)


def elementwise_cost(size: int) -> float:
    """The approximate microseconds of an elementwise op that gives `size` bytes of 4-byte elements."""
    return size / 4 / _FAST_PER_MICROSECOND


def cost_by_first_input(kind: Cost, shape: tuple[int, ...]) -> float:
    """The approximate microseconds of a kernel of this kind, from the shape of its first input."""
    size = math.prod(shape)
    if kind == "cubic":
        return 10.0 * max(shape[-2:], default=1) * size / FLOPS_PER_MICROSECOND
    return size * math.log2(size + 2) / (_TRANSFORMED_PER_MICROSECOND if kind == "transform" else _SORTED_PER_MICROSECOND)
