"""`tf.contrib.metrics`: `tf.metrics` with the predictions as first argument."""

from __future__ import annotations

from typing import Any

from graphcore.dtypes import float32
from graphcore.graph import Tensor
from graphcore.tf1 import metrics
from graphcore.tf1.math.elementwise import cast, equal
from graphcore.tf1.math.reductions import reduce_mean, reduce_sum

__all__ = [
    "accuracy",
    "aggregate_metric_map",
    "aggregate_metrics",
    "streaming_accuracy",
    "streaming_auc",
    "streaming_false_negatives",
    "streaming_false_positives",
    "streaming_mean",
    "streaming_mean_absolute_error",
    "streaming_mean_iou",
    "streaming_mean_squared_error",
    "streaming_percentage_less",
    "streaming_precision",
    "streaming_recall",
    "streaming_root_mean_squared_error",
    "streaming_true_negatives",
    "streaming_true_positives",
]


def accuracy(predictions: Any, labels: Any, weights: Any = None, name: str | None = None) -> Tensor:
    """The part of predictions that equal their labels, weighted by `weights`; not gathered over runs."""
    del name
    hits = cast(equal(predictions, labels), float32)
    if weights is None:
        return reduce_mean(hits)
    weights = cast(weights, float32)
    return reduce_sum(hits * weights) / reduce_sum(weights)


def aggregate_metrics(*value_update_tuples: Any) -> tuple[list[Any], list[Any]]:
    """The values of metrics, and their updates."""
    return [value for value, _ in value_update_tuples], [update for _, update in value_update_tuples]


def aggregate_metric_map(names_to_tuples: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values of metrics by their names, and their updates."""
    return {name: value for name, (value, _) in names_to_tuples.items()}, {name: update for name, (_, update) in names_to_tuples.items()}


def _turned(metric: Any) -> Any:
    def streaming(predictions: Any, labels: Any, weights: Any = None, *args: Any, **kwargs: Any) -> Any:
        return metric(labels, predictions, weights, *args, **kwargs)

    streaming.__name__ = streaming.__qualname__ = f"streaming_{metric.__name__}"
    streaming.__doc__ = f"`gc.metrics.{metric.__name__}` with the predictions as first argument."
    return streaming


streaming_accuracy = _turned(metrics.accuracy)
streaming_auc = _turned(metrics.auc)
streaming_false_negatives = _turned(metrics.false_negatives)
streaming_false_positives = _turned(metrics.false_positives)
streaming_mean_absolute_error = _turned(metrics.mean_absolute_error)
streaming_mean_squared_error = _turned(metrics.mean_squared_error)
streaming_precision = _turned(metrics.precision)
streaming_recall = _turned(metrics.recall)
streaming_root_mean_squared_error = _turned(metrics.root_mean_squared_error)
streaming_true_negatives = _turned(metrics.true_negatives)
streaming_true_positives = _turned(metrics.true_positives)
streaming_mean = metrics.mean
streaming_percentage_less = metrics.percentage_below


def streaming_mean_iou(predictions: Any, labels: Any, num_classes: int, weights: Any = None, *args: Any, **kwargs: Any) -> Any:
    """`gc.metrics.mean_iou` with the predictions as first argument."""
    return metrics.mean_iou(labels, predictions, num_classes, weights, *args, **kwargs)
