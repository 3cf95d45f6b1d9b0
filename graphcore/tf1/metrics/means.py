"""Metrics that are means over all values so far."""

from __future__ import annotations

from typing import Any

from graphcore.dtypes import float32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import control_dependencies, convert_to_tensor, name_scope
from graphcore.tf1.math.elementwise import cast
from graphcore.tf1.math.reductions import reduce_sum
from graphcore.tf1.metrics.gathering import Collections, Metric, compared, gathered, metric_variable, quotient, spread, weights_for

__all__ = [
    "mean",
    "mean_absolute_error",
    "mean_cosine_distance",
    "mean_relative_error",
    "mean_squared_error",
    "mean_tensor",
    "percentage_below",
    "root_mean_squared_error",
]


def mean(
    values: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The mean of all values so far.

    Args:
        values: numbers of any shape.
        weights: their weights, which broadcast; 1 by default.
        metrics_collections: the collections to put the value into.
        updates_collections: the collections to put the update into.
        name: the name scope.

    Returns:
        The mean so far, a scalar, and the node that takes in the values, whose value is the new mean. Both need
        `gc.local_variables_initializer()`.
    """
    with name_scope(name or "mean"):
        tensor = cast(convert_to_tensor(values), float32)
        total, count = metric_variable([], float32, "total"), metric_variable([], float32, "count")
        if weights is None:
            number = cast(apply_one("Size", [tensor], None), float32)
        else:
            factors = spread(weights_for(weights, tensor), tensor)
            tensor, number = tensor * factors, reduce_sum(factors)
        return _mean_of(tensor, number, reduce_sum(tensor), total, count, metrics_collections, updates_collections)


def _mean_of(
    values: Tensor,
    number: Tensor,
    added: Tensor,
    total: Any,
    count: Any,
    metrics_collections: Collections,
    updates_collections: Collections,
) -> Metric:
    new_total = total.assign_add(added)
    with control_dependencies([values]):
        new_count = count.assign_add(number)
    value = quotient(total, count, "value")
    return gathered(value, quotient(new_total, new_count, "update_op"), metrics_collections, updates_collections)


def mean_tensor(
    values: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The mean of each element over the runs so far; the arguments are those of `mean`.

    Raises:
        InvalidArgumentError: the shape of the values is not known.
    """
    with name_scope(name or "mean"):
        tensor = cast(convert_to_tensor(values), float32)
        if not tensor.shape.is_fully_defined:
            raise InvalidArgumentError(f"mean_tensor: required values of known shape, got {tensor.shape}")
        sizes = [size or 0 for size in tensor.shape.as_list()]
        total, count = metric_variable(sizes, float32, "total_tensor"), metric_variable(sizes, float32, "count_tensor")
        number = apply_one("OnesLike", [tensor], None)
        if weights is not None:
            number = spread(weights_for(weights, tensor), tensor)
            tensor = tensor * number
        return _mean_of(tensor, number, tensor, total, count, metrics_collections, updates_collections)


def mean_absolute_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The mean absolute difference so far; see `mean`."""
    there, here, weights = compared(labels, predictions, weights)
    errors = apply_one("Abs", [here - there], None)
    return mean(errors, weights, metrics_collections, updates_collections, name or "mean_absolute_error")


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The mean squared difference so far; see `mean`."""
    there, here, weights = compared(labels, predictions, weights)
    errors = apply_one("SquaredDifference", [there, here], None)
    return mean(errors, weights, metrics_collections, updates_collections, name or "mean_squared_error")


def root_mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The root of the mean squared difference so far; see `mean`."""
    value, update = mean_squared_error(labels, predictions, weights, name=name or "root_mean_squared_error")
    return gathered(apply_one("Sqrt", [value], None), apply_one("Sqrt", [update], None), metrics_collections, updates_collections)


def mean_relative_error(
    labels: Any,
    predictions: Any,
    normalizer: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The mean absolute difference so far, relative to `normalizer`; 0 where that is 0. See `mean`."""
    there, here, weights = compared(labels, predictions, weights)
    errors = quotient(apply_one("Abs", [there - here], None), convert_to_tensor(normalizer, here.dtype.base))
    return mean(errors, weights, metrics_collections, updates_collections, name or "mean_relative_error")


def mean_cosine_distance(
    labels: Any,
    predictions: Any,
    dim: int,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """1 minus the mean product of unit vectors along `dim` so far; see `mean`."""
    there, here, weights = compared(labels, predictions, weights)
    products = reduce_sum(here * there, [dim], True)
    value, update = mean(products, weights, name=name or "mean_cosine_distance")
    return gathered(1 - value, 1 - update, metrics_collections, updates_collections)


def percentage_below(
    values: Any,
    threshold: float,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The part of all values so far that is below `threshold`, from 0 to 1; see `mean`."""
    below = apply_one("Less", [convert_to_tensor(values), threshold], None)
    return mean(below, weights, metrics_collections, updates_collections, name or "percentage_below_threshold")
