"""Shared parts of metrics: their variables, collections, and the shapes that they compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from graphcore.dtypes import DType, float32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1.arrays.layout import expand_dims, shape, squeeze
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import add_to_collection, convert_to_tensor
from graphcore.tf1.math.elementwise import cast
from graphcore.tf1.variables.collections import GraphKeys
from graphcore.tf1.variables.variables import Variable

Metric = tuple[Tensor, Tensor]
"""The value so far, and the node that updates it, whose value is the new one."""
Collections = Sequence[str] | None
_KEPT_IN: Final = (GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES)


def metric_variable(sizes: Sequence[int], dtype: DType, name: str) -> Variable:
    """A local variable that begins with zeros."""
    return Variable(np.zeros(sizes, dtype.as_numpy), False, _KEPT_IN, name=name)


def gathered(value: Tensor, update: Tensor, metrics_collections: Collections, updates_collections: Collections) -> Metric:
    """A metric, put into its collections."""
    for names, item in ((metrics_collections, value), (updates_collections, update)):
        for name in [names] if isinstance(names, str) else names or ():
            add_to_collection(name, item)
    return value, update


def quotient(numerator: Any, denominator: Any, name: str | None = None) -> Tensor:
    """The quotient, 0 where the denominator is 0."""
    return apply_one("DivNoNan", [numerator, denominator], name)


def compared(labels: Any, predictions: Any, weights: Any = None) -> tuple[Tensor, Tensor, Tensor | None]:
    """Labels, predictions and weights of compatible shapes.

    A last dimension of 1 that the others lack is dropped.

    Raises:
        InvalidArgumentError: the shapes are incompatible.
    """
    there, here = convert_to_tensor(labels), convert_to_tensor(predictions)
    ranks = there.shape.rank, here.shape.rank
    if ranks[0] is not None and ranks[1] is not None:
        if ranks[1] - ranks[0] == 1 and here.shape.as_list()[-1] in (1, None):
            here = squeeze(here, [-1])
        elif ranks[0] - ranks[1] == 1 and there.shape.as_list()[-1] in (1, None):
            there = squeeze(there, [-1])
    if not there.shape.is_compatible_with(here.shape):
        raise InvalidArgumentError(f"Shapes {here.shape} of predictions and {there.shape} of labels are incompatible")
    return there, here, None if weights is None else weights_for(weights, here)


def weights_for(weights: Any, values: Tensor) -> Tensor:
    """Weights as float32, of a rank that broadcasts to `values`."""
    tensor = cast(convert_to_tensor(weights), float32)
    ranks = tensor.shape.rank, values.shape.rank
    if ranks[0] is None or ranks[1] is None or ranks[0] == 0:
        return tensor
    if ranks[0] - ranks[1] == 1:
        return squeeze(tensor, [-1])
    return expand_dims(tensor, -1) if ranks[1] - ranks[0] == 1 else tensor


def spread(weights: Tensor, values: Tensor) -> Tensor:
    """Weights, one for each of `values`."""
    return apply_one("BroadcastTo", [weights, shape(values)], None)
