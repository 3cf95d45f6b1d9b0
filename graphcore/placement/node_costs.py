"""The time of a node's kernel on a CPU, from shapes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from graphcore.graph.model.node import Node, Tensor
from graphcore.shapes import Shape
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
ShapeOf = Callable[[Tensor], Shape]
"""Gives the shape of a tensor, as far as it is known."""
_HELD: Final = frozenset({"constant", "variable", "placeholder"})
"""The roles of nodes whose values are there before the step."""
_NOT_COPIED: Final = frozenset({"alias", "view", "reshaped view"})
"""The memory of outputs that are the input itself."""


def known_elements(tensor: Tensor) -> int:
    """The number of elements of a tensor by its shape, -1 if unknown."""
    return tensor.shape.num_elements


def known_shape(tensor: Tensor) -> Shape:
    """The shape of a tensor in its graph."""
    return tensor.shape


def passes_on(node: Node) -> bool:
    """True if the first output of a node is its first input, or the value of a variable.

    It takes neither time nor memory.
    """
    traits = node.registration.traits
    return traits.memory in _NOT_COPIED or traits.reads_variable == "whole"


def cost(node: Node, elements: Elements = known_elements, shape_of: ShapeOf = known_shape) -> float:
    """The approximate microseconds of the kernel of `node`, from shapes.

    0 if unknown, or if it computes no elements.

    Args:
        elements: the number of elements of a tensor; by its shape by default.
        shape_of: the shape of a tensor; that in its graph by default.
    """
    traits = node.registration.traits
    kind = traits.cost
    if traits.role in _HELD or passes_on(node) or traits.numbers_from_shapes is not None:
        return 0.0
    if kind in BY_FIRST_INPUT:
        shape = shape_of(node.inputs[0])
        return cost_by_first_input(kind, tuple([size or 0 for size in (shape.as_list() if shape.is_fully_defined else ())]))
    read = () if traits.needs_only_shapes else node.inputs[1:] if traits.gathers_rows else node.inputs
    sizes = [elements(tensor) for tensor in (*read, *node.outputs)]
    if not sizes or min(sizes) < 0:
        return 0.0
    if kind == "product":
        return 2.0 * _depth(node, elements, shape_of) * elements(node.outputs[0]) / FLOPS_PER_MICROSECOND
    if kind == "convolution":
        return 2.0 * _multiplications(node, elements, shape_of) / FLOPS_PER_MICROSECOND
    if kind == "contraction":  # of two matrices: the root of (ij)(jk)(ik) is the cost of a product
        return 2.0 * math.sqrt(math.prod(sizes)) / FLOPS_PER_MICROSECOND
    return max(sizes) / (_SLOW_PER_MICROSECOND if kind == "transcendental" else _FAST_PER_MICROSECOND)


def _depth(node: Node, elements: Elements, shape_of: ShapeOf) -> float:
    """The length of the sums of a matrix product, by the shape, or else by the numbers of elements."""
    left, right, result = *node.inputs[:2], node.outputs[0]
    shape = shape_of(left)
    if shape.rank:
        transposed = node.attr.get("transpose_a") or node.attr.get("adj_x")
        depth = shape.as_list()[-2 if transposed else -1]
        if depth is not None:
            return depth
    return math.sqrt(elements(left) * elements(right) / max(1, elements(result)))


def _multiplications(node: Node, elements: Elements, shape_of: ShapeOf) -> float:
    """The multiplications of a convolution or its gradients: result elements times a channel's filter."""
    filters = node.inputs[1] if (shape_of(node.inputs[1]).rank or 0) > 1 else node.outputs[0]
    result = node.inputs[2] if len(node.inputs) == 3 else node.outputs[0]
    shape = shape_of(result)
    if not shape.rank:
        return 0.0
    sizes = shape.as_list()
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
