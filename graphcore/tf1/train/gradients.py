"""Constants and functions around `tf.gradients`."""

from __future__ import annotations

import enum
import math
from typing import Any

from graphcore.api.gradients.gradients import gradients, tensors_of
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1.arrays.layout import reshape, stack
from graphcore.tf1.framework import name_scope


class AggregationMethod:
    """Ways to add up gradients; here sums have one form, and these are accepted without effect."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


class UnconnectedGradients(enum.Enum):
    """The gradients with respect to what nothing depends on: None, or zeros."""

    NONE = "none"
    ZERO = "zero"


def hessians(
    ys: Any,
    xs: Any,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
) -> list[Tensor]:
    """The matrix of second derivatives of `sum(ys)` for each of `xs`. x: [...] -> [*x.shape, *x.shape].

    Each element of an x adds a backward pass to the graph.

    Args:
        ys: tensors.
        xs: tensors or variables with full shapes.
        name: the name scope.
        colocate_gradients_with_ops, gate_gradients, aggregation_method: those of `gc.gradients`.

    Raises:
        InvalidArgumentError: the shape of an x is not known, or no y depends on it.
    """
    hints = {
        "colocate_gradients_with_ops": colocate_gradients_with_ops,
        "gate_gradients": gate_gradients,
        "aggregation_method": aggregation_method,
    }
    x_list = list(xs) if isinstance(xs, list | tuple) else [xs]
    with name_scope(name):
        first = gradients(ys, x_list, **hints)
        return [_rows(x, gradient, hints) for x, gradient in zip(x_list, first, strict=True)]


def _rows(x: Any, gradient: Any, hints: dict[str, Any]) -> Tensor:
    tensor = tensors_of(x, "xs")[0]
    if gradient is None:
        raise InvalidArgumentError.at(tensor.node, f"hessians: no y depends on '{tensor.name}'")
    if not tensor.shape.is_fully_defined:
        raise InvalidArgumentError.at(tensor.node, f"hessians requires the full shape of '{tensor.name}', got {tensor.shape}")
    sizes = [size or 0 for size in tensor.shape.as_list()]
    flat = reshape(gradient, [-1])
    rows = [gradients(flat[i], x, unconnected_gradients=UnconnectedGradients.ZERO, **hints)[0] for i in range(math.prod(sizes))]
    return reshape(stack(rows), [*sizes, *sizes]) if rows else reshape(flat, [*sizes, *sizes])
