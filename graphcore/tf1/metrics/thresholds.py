"""Metrics of probabilities at thresholds, and the area under curves of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from graphcore.dtypes import bool_, float32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1.arrays.layout import identity, reshape
from graphcore.tf1.calls import apply_one, named
from graphcore.tf1.framework import constant, control_dependencies, convert_to_tensor, name_scope
from graphcore.tf1.math.elementwise import cast, maximum, minimum, where
from graphcore.tf1.math.reductions import reduce_all, reduce_sum
from graphcore.tf1.metrics.gathering import Collections, Metric, compared, gathered, metric_variable, quotient, spread

__all__ = [
    "auc",
    "false_negatives_at_thresholds",
    "false_positives_at_thresholds",
    "precision_at_thresholds",
    "recall_at_thresholds",
    "true_negatives_at_thresholds",
    "true_positives_at_thresholds",
]

_BEYOND: Final = 1e-7
"""The distance of the outermost thresholds from [0, 1]."""
_SMALL: Final = 1e-6
_KINDS: Final = {"tp": (True, True), "fn": (True, False), "tn": (False, False), "fp": (False, True)}
_NAMES: Final = {"tp": "true_positives", "fn": "false_negatives", "tn": "true_negatives", "fp": "false_positives"}
_Counts = dict[str, Tensor]


def _counted(labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any, kinds: Sequence[str]) -> tuple[_Counts, _Counts]:
    """The counts of some kinds at each threshold so far, and their updates."""
    tensor = convert_to_tensor(predictions)
    problem = constant("predictions must be in [0, 1]")
    inside = [reduce_all(apply_one("GreaterEqual", [tensor, 0.0], None)), reduce_all(apply_one("LessEqual", [tensor, 1.0], None))]
    checks = [tensor.graph.building().apply_op("Assert", [is_inside, [problem, tensor]]) for is_inside in inside]
    with control_dependencies(checks):
        there, here, weights = compared(cast(convert_to_tensor(labels), bool_), cast(identity(tensor), float32), weights)
    limits = constant(np.array(thresholds, np.float32)[:, None])
    is_found = apply_one("Greater", [reshape(here, [1, -1]), limits], None)  # [thresholds, predictions]
    is_true = reshape(there, [1, -1])
    factors = None if weights is None else reshape(spread(weights, here), [1, -1])
    values, updates = {}, {}
    for kind in kinds:
        truth, predicted = _KINDS[kind]
        both = apply_one("LogicalAnd", [_is(is_true, truth), _is(is_found, predicted)], None)
        hits = cast(both, float32) if factors is None else cast(both, float32) * factors
        variable = metric_variable([len(thresholds)], float32, _NAMES[kind])
        values[kind] = variable.read_value()
        updates[kind] = variable.assign_add(reduce_sum(hits, 1))
    return values, updates


def _is(value: Tensor, wanted: bool) -> Tensor:
    return value if wanted else apply_one("LogicalNot", [value], None)


if TYPE_CHECKING:

    class _AtThresholds(Protocol):
        def __call__(
            self,
            labels: Any,
            predictions: Any,
            thresholds: Sequence[float],
            weights: Any = None,
            metrics_collections: Collections = None,
            updates_collections: Collections = None,
            name: str | None = None,
        ) -> Metric:
            """A number of predictions so far for each threshold."""


def _at_thresholds(kind: str) -> _AtThresholds:
    function, (truth, predicted) = _NAMES[kind], _KINDS[kind]

    def call(
        labels: Any,
        predictions: Any,
        thresholds: Sequence[float],
        weights: Any = None,
        metrics_collections: Collections = None,
        updates_collections: Collections = None,
        name: str | None = None,
    ) -> Metric:
        with name_scope(name or function):
            values, updates = _counted(labels, predictions, thresholds, weights, [kind])
            return gathered(values[kind], identity(updates[kind]), metrics_collections, updates_collections)

    return named(
        call,
        f"{function}_at_thresholds",
        f"""The number of predictions so far {"above" if predicted else "up to"} each threshold whose labels are {str(truth).lower()}.

    Args:
        labels: truth values, of any shape.
        predictions: numbers from 0 to 1, of the same shape.
        thresholds: numbers.
        weights, metrics_collections, updates_collections, name: as of `gc.metrics.mean`.
    """,
    )


true_positives_at_thresholds = _at_thresholds("tp")
false_negatives_at_thresholds = _at_thresholds("fn")
true_negatives_at_thresholds = _at_thresholds("tn")
false_positives_at_thresholds = _at_thresholds("fp")


def precision_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The part of predictions so far above each threshold whose labels are true.

    The arguments are those of `true_positives_at_thresholds`.
    """
    with name_scope(name or "precision_at_thresholds"):
        both = _counted(labels, predictions, thresholds, weights, ["tp", "fp"])
        value, update = (_ratio(counts["tp"], counts["fp"], label) for counts, label in zip(both, ("value", "update_op"), strict=True))
        return gathered(value, update, metrics_collections, updates_collections)


def recall_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The part of true labels so far with predictions above each threshold.

    The arguments are those of `true_positives_at_thresholds`.
    """
    with name_scope(name or "recall_at_thresholds"):
        both = _counted(labels, predictions, thresholds, weights, ["tp", "fn"])
        value, update = (_ratio(counts["tp"], counts["fn"], label) for counts, label in zip(both, ("value", "update_op"), strict=True))
        return gathered(value, update, metrics_collections, updates_collections)


def _ratio(right: Tensor, wrong: Tensor, name: str) -> Tensor:
    return apply_one("RealDiv", [right, right + wrong + _BEYOND], name)


def auc(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
    thresholds: Sequence[float] | None = None,
) -> Metric:
    """The approximate area under a curve of all predictions so far.

    Args:
        labels: truth values, of any shape.
        predictions: numbers from 0 to 1, of the same shape.
        num_thresholds: the number of points of the curve.
        curve: "ROC" for the rates of true and false positives, "PR" for precision and recall.
        summation_method: "trapezoidal", "minoring" or "majoring" for areas below and above; "careful_interpolation", for PR only.
        thresholds: the points of the curve between 0 and 1.
        weights, metrics_collections, updates_collections, name: as of `gc.metrics.mean`.

    Raises:
        InvalidArgumentError: no such curve or method.
    """
    if curve not in ("ROC", "PR"):
        raise InvalidArgumentError(f"curve must be either ROC or PR, {curve} unknown")
    if summation_method not in ("trapezoidal", "minoring", "majoring") and (summation_method, curve) != ("careful_interpolation", "PR"):
        raise InvalidArgumentError(f"Invalid summation_method: {summation_method}")
    with name_scope(name or "auc"):
        between = sorted(thresholds) if thresholds is not None else [(i + 1) / (num_thresholds - 1) for i in range(num_thresholds - 2)]
        both = _counted(labels, predictions, [-_BEYOND, *between, 1 + _BEYOND], weights, ["tp", "fn", "tn", "fp"])
        value, update = (_area(counts, curve, summation_method, label) for counts, label in zip(both, ("value", "update_op"), strict=True))
        return gathered(value, update, metrics_collections, updates_collections)


def _area(counts: _Counts, curve: str, method: str, name: str) -> Tensor:
    tp, fn, tn, fp = (counts[kind] for kind in ("tp", "fn", "tn", "fp"))
    if method == "careful_interpolation":
        return _interpolated(tp, fp, fn, name)
    recall = (tp + _SMALL) / (tp + fn + _SMALL)
    x, y = (fp / (fp + tn + _SMALL), recall) if curve == "ROC" else (recall, (tp + _SMALL) / (tp + fp + _SMALL))
    heights: dict[str, Callable[[], Tensor]] = {
        "trapezoidal": lambda: (y[:-1] + y[1:]) / 2.0,
        "minoring": lambda: minimum(y[:-1], y[1:]),
        "majoring": lambda: maximum(y[:-1], y[1:]),
    }
    return reduce_sum((x[:-1] - x[1:]) * heights[method](), name=name)


def _interpolated(tp: Tensor, fp: Tensor, fn: Tensor, name: str) -> Tensor:
    """The area under precision and recall, with the counts interpolated between thresholds."""
    step, positive = tp[:-1] - tp[1:], tp + fp
    slope = quotient(step, maximum(positive[:-1] - positive[1:], 0.0))
    start = tp[1:] - slope * positive[1:]
    are_some = apply_one(
        "LogicalAnd", [apply_one("Greater", [positive[:-1], 0.0], None), apply_one("Greater", [positive[1:], 0.0], None)], None
    )
    ratio = where(are_some, quotient(positive[:-1], maximum(positive[1:], 0.0)), apply_one("OnesLike", [positive[1:]], None))
    parts = quotient(slope * (step + start * apply_one("Log", [ratio], None)), maximum(tp[1:] + fn[1:], 0.0))
    return reduce_sum(parts, name=name)
