"""Metrics of classes: parts that are right, and counts of right and wrong ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from graphcore.dtypes import bool_, float32, float64, int64
from graphcore.graph import Tensor
from graphcore.tf1.arrays.layout import identity, reshape
from graphcore.tf1.calls import apply_one, named
from graphcore.tf1.framework import convert_to_tensor, name_scope
from graphcore.tf1.math.elementwise import cast, where
from graphcore.tf1.math.reductions import reduce_mean, reduce_sum
from graphcore.tf1.math.segments import confusion_matrix
from graphcore.tf1.metrics.gathering import Collections, Metric, compared, gathered, metric_variable, quotient, spread
from graphcore.tf1.metrics.means import mean

__all__ = [
    "accuracy",
    "false_negatives",
    "false_positives",
    "mean_iou",
    "mean_per_class_accuracy",
    "precision",
    "recall",
    "true_negatives",
    "true_positives",
]


def accuracy(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The part of predictions so far that equal their labels; see `gc.metrics.mean`."""
    there, here, weights = compared(labels, predictions, weights)
    if there.dtype.base is not here.dtype.base:
        here = cast(here, there.dtype.base)
    return mean(apply_one("Equal", [here, there], None), weights, metrics_collections, updates_collections, name or "accuracy")


def _count(labels: Any, predictions: Any, weights: Any, truth: bool, predicted: bool, scope: str) -> Metric:
    """The number of predictions `predicted` whose labels are `truth`."""
    with name_scope(scope):
        there, here, weights = compared(cast(convert_to_tensor(labels), bool_), cast(convert_to_tensor(predictions), bool_), weights)
        both = apply_one("LogicalAnd", [_is(there, truth), _is(here, predicted)], None)
        values = cast(both, float32)
        if weights is not None:
            values = values * spread(weights, values)
        count = metric_variable([], float32, "count")
        return identity(count), identity(count.assign_add(reduce_sum(values)))


def _is(value: Tensor, wanted: bool) -> Tensor:
    return value if wanted else apply_one("LogicalNot", [value], None)


if TYPE_CHECKING:

    class _Count(Protocol):
        def __call__(
            self,
            labels: Any,
            predictions: Any,
            weights: Any = None,
            metrics_collections: Collections = None,
            updates_collections: Collections = None,
            name: str | None = None,
        ) -> Metric:
            """A number of predictions so far."""


def _counting(function: str, truth: bool, predicted: bool) -> _Count:
    def call(
        labels: Any,
        predictions: Any,
        weights: Any = None,
        metrics_collections: Collections = None,
        updates_collections: Collections = None,
        name: str | None = None,
    ) -> Metric:
        counted = _count(labels, predictions, weights, truth, predicted, name or function)
        return gathered(*counted, metrics_collections, updates_collections)

    kind, right = (str(value).lower() for value in (predicted, truth))
    return named(call, function, f"The number of {kind} predictions so far whose labels are {right}; see `gc.metrics.mean`.")


true_positives = _counting("true_positives", truth=True, predicted=True)
true_negatives = _counting("true_negatives", truth=False, predicted=False)
false_positives = _counting("false_positives", truth=False, predicted=True)
false_negatives = _counting("false_negatives", truth=True, predicted=False)


def precision(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The part of true predictions so far whose labels are true; see `gc.metrics.mean`."""
    with name_scope(name or "precision"):
        right = _count(labels, predictions, weights, True, True, "true_positives")
        wrong = _count(labels, predictions, weights, False, True, "false_positives")
        return _part(right, wrong, metrics_collections, updates_collections)


def recall(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The part of true labels so far whose predictions are true; see `gc.metrics.mean`."""
    with name_scope(name or "recall"):
        right = _count(labels, predictions, weights, True, True, "true_positives")
        wrong = _count(labels, predictions, weights, True, False, "false_negatives")
        return _part(right, wrong, metrics_collections, updates_collections)


def _part(right: Metric, wrong: Metric, metrics_collections: Collections, updates_collections: Collections) -> Metric:
    value, update = (quotient(a, a + b, label) for a, b, label in zip(right, wrong, ("value", "update_op"), strict=True))
    return gathered(value, update, metrics_collections, updates_collections)


def mean_iou(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The intersection of labels and predictions so far over their union, as a mean over classes.

    Args:
        labels, predictions: classes, of any shape.
        num_classes: the number of classes.
        weights, metrics_collections, updates_collections, name: as of `gc.metrics.mean`.

    Returns:
        The mean so far, and the update of the confusion matrix, [num_classes, num_classes].
    """
    with name_scope(name or "mean_iou"):
        there, here, weights = compared(labels, predictions, weights)
        flat_labels, flat_predictions = (reshape(cast(tensor, int64), [-1]) for tensor in (there, here))
        factors = None if weights is None else cast(reshape(spread(weights, here), [-1]), float64)
        total = metric_variable([num_classes, num_classes], float64, "total_confusion_matrix")
        matrix = confusion_matrix(flat_labels, flat_predictions, num_classes, float64, weights=factors)
        update = total.assign_add(matrix)
        return gathered(_mean_over_union(total.read_value()), identity(update), metrics_collections, updates_collections)


def _mean_over_union(matrix: Tensor) -> Tensor:
    by_row, by_column = (cast(reduce_sum(matrix, axis), float32) for axis in (0, 1))
    diagonal = cast(apply_one("DiagPart", [matrix], None), float32)
    union = by_row + by_column - diagonal
    present = apply_one("Greater", [union, 0.0], None)
    count = reduce_sum(cast(present, float32))
    return quotient(reduce_sum(where(present, quotient(diagonal, union), apply_one("ZerosLike", [union], None))), count, "mean_iou")


def mean_per_class_accuracy(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The part of right predictions so far for each label, as a mean over the classes; see `mean_iou`.

    Returns:
        The mean so far, and the update, whose value is the part for each class.
    """
    with name_scope(name or "mean_accuracy"):
        there, here, weights = compared(labels, predictions, weights)
        classes = reshape(cast(there, int64), [-1])
        right = cast(apply_one("Equal", [reshape(cast(here, int64), [-1]), classes], None), float32)
        ones = apply_one("OnesLike", [right], None)
        if weights is not None:
            ones = reshape(spread(weights, here), [-1])
            right = right * ones
        total, count = metric_variable([num_classes], float32, "total"), metric_variable([num_classes], float32, "count")
        new_total, new_count = (
            apply_one("ScatterAdd", [variable.handle, classes, values], None) for variable, values in ((total, ones), (count, right))
        )
        value = reduce_mean(quotient(count, total))
        return gathered(value, quotient(new_count, new_total, "update_op"), metrics_collections, updates_collections)
