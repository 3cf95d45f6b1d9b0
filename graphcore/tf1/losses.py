"""`tf.losses`: losses of batches with weights, gathered in a collection."""

from __future__ import annotations

from typing import Any, Final

from graphcore.dtypes import float32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1.arrays.layout import expand_dims, shape, squeeze, stop_gradient
from graphcore.tf1.calls import apply_one, either
from graphcore.tf1.framework import add_to_collection, constant, convert_to_tensor, get_collection, name_scope
from graphcore.tf1.math.elementwise import add_n, cast
from graphcore.tf1.math.reductions import Axis
from graphcore.tf1.math.reductions import reduction as reduce_by
from graphcore.tf1.nn.activations import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits,
)
from graphcore.tf1.variables.collections import GraphKeys

__all__ = [
    "Reduction",
    "absolute_difference",
    "add_loss",
    "compute_weighted_loss",
    "cosine_distance",
    "get_losses",
    "get_regularization_loss",
    "get_regularization_losses",
    "get_total_loss",
    "hinge_loss",
    "huber_loss",
    "log_loss",
    "mean_pairwise_squared_error",
    "mean_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]


class Reduction:
    """The ways from the losses of elements to one number."""

    NONE: Final = "none"
    SUM: Final = "weighted_sum"
    SUM_OVER_BATCH_SIZE: Final = "weighted_sum_over_batch_size"
    MEAN: Final = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS: Final = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS: Final = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """All of them."""
        return (cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, cls.SUM_BY_NONZERO_WEIGHTS)

    @classmethod
    def validate(cls, key: str) -> None:
        """Raise an error for another one.

        Raises:
            InvalidArgumentError: there is none of this name.
        """
        if key not in cls.all():
            raise InvalidArgumentError(f"Invalid ReductionKey {key}; required one of {', '.join(cls.all())}")


_USUAL: Final = Reduction.SUM_BY_NONZERO_WEIGHTS


def compute_weighted_loss(
    losses: Any, weights: Any = 1.0, scope: str | None = None, loss_collection: str | None = GraphKeys.LOSSES, reduction: str = _USUAL
) -> Tensor:
    """The losses of elements times their weights, as one number.

    Args:
        losses: [...], the losses of elements.
        weights: a scalar, or a tensor that is broadcast to the losses.
        scope: the name scope.
        loss_collection: the collection to put the result into.
        reduction: one of `Reduction`; by default the sum divided by the number of weights other than 0.
    """
    Reduction.validate(reduction)
    with name_scope(scope or "weighted_loss"):
        losses = convert_to_tensor(losses)
        dtype = losses.dtype.base
        precise = cast(losses, float32)
        factors = cast(_weights(weights, precise), float32)
        loss = precise * factors
        if reduction != Reduction.NONE:
            loss = _reduced(loss, factors, precise, reduction)
        loss = cast(loss, dtype)
        add_loss(loss, loss_collection)
        return loss


def _weights(weights: Any, losses: Tensor) -> Tensor:
    """The weights, with a dimension more if they lack the last one."""
    tensor = convert_to_tensor(weights, None if isinstance(weights, Tensor) else float32)
    if tensor.shape.rank is not None and losses.shape.rank is not None:
        if 0 < tensor.shape.rank == losses.shape.rank - 1:
            return expand_dims(tensor, -1)
        if tensor.shape.rank == losses.shape.rank + 1:
            return squeeze(tensor, [-1])
    return tensor


def _reduced(loss: Tensor, weights: Tensor, losses: Tensor, how: str) -> Tensor:
    total = reduce_by("Sum", loss)
    if how == Reduction.SUM:
        return total
    everywhere = apply_one("BroadcastTo", [weights, shape(losses)], None)
    if how == Reduction.MEAN:
        return apply_one("DivNoNan", [total, reduce_by("Sum", everywhere)], "value")
    if how == Reduction.SUM_OVER_BATCH_SIZE:
        return apply_one("DivNoNan", [total, cast(apply_one("Size", [losses], None), float32)], "value")
    count = reduce_by("Sum", cast(apply_one("NotEqual", [everywhere, 0.0], None), float32))
    return apply_one("DivNoNan", [total, count], "value")


def _compared(labels: Any, predictions: Any, scope: str) -> tuple[Tensor, Tensor]:
    """Both as float32, which must have compatible shapes."""
    if labels is None or predictions is None:
        raise InvalidArgumentError(f"{scope}: labels and predictions must not be None.")
    pair = cast(convert_to_tensor(labels), float32), cast(convert_to_tensor(predictions), float32)
    pair[0].shape.assert_is_compatible_with(pair[1].shape)
    return pair


def absolute_difference(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _USUAL,
) -> Tensor:
    """The mean absolute difference; see `compute_weighted_loss`."""
    with name_scope(scope or "absolute_difference") as name:
        there, here = _compared(labels, predictions, "absolute_difference")
        return compute_weighted_loss(apply_one("Abs", [here - there], None), weights, name, loss_collection, reduction)


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _USUAL,
) -> Tensor:
    """The mean squared difference; see `compute_weighted_loss`."""
    with name_scope(scope or "mean_squared_error") as name:
        there, here = _compared(labels, predictions, "mean_squared_error")
        return compute_weighted_loss(apply_one("SquaredDifference", [here, there], None), weights, name, loss_collection, reduction)


def mean_pairwise_squared_error(
    labels: Any, predictions: Any, weights: Any = 1.0, scope: str | None = None, loss_collection: str | None = GraphKeys.LOSSES
) -> Tensor:
    """The mean squared difference of the errors of pairs of elements, summed over examples.

    Args:
        labels, predictions: [batch, ...].
        weights: a scalar, or a tensor that is broadcast to the labels; elements with weight 0 do not count.
        scope: the name scope.
        loss_collection: the collection to put the result into.
    """
    with name_scope(scope or "mean_pairwise_squared_error"):
        there, here = _compared(labels, predictions, "mean_pairwise_squared_error")
        factors, errors = cast(convert_to_tensor(weights), float32), here - there
        axes = apply_one("Range", [1, apply_one("Rank", [errors], None), 1], None)
        counted = cast(apply_one("NotEqual", [factors, 0.0], None), float32)
        number = reduce_by("Sum", apply_one("BroadcastTo", [counted, shape(errors)], None), axes, True)
        others = apply_one("Maximum", [number - 1.0, 0.0], None)
        pairs = apply_one("Maximum", [number * (number - 1.0), 0.0], None)
        squares = apply_one("DivNoNan", [reduce_by("Sum", errors * errors, axes, True), others], None)
        total = reduce_by("Sum", errors, axes, True)
        loss = reduce_by("Sum", (2.0 * squares - 2.0 * apply_one("DivNoNan", [total * total, pairs], None)) * factors)
        present = apply_one("Greater", [reduce_by("Sum", number), 0.0], None)
        loss = apply_one("Select", [present, loss, apply_one("ZerosLike", [loss], None)], "value")
        add_loss(loss, loss_collection)
        return loss


def huber_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    delta: float = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _USUAL,
) -> Tensor:
    """Half the squared difference up to `delta`, linear beyond; see `compute_weighted_loss`."""
    with name_scope(scope or "huber_loss") as name:
        there, here = _compared(labels, predictions, "huber_loss")
        error = apply_one("Abs", [here - there], None)
        near = apply_one("Minimum", [error, delta], None)
        return compute_weighted_loss(0.5 * (near * near) + delta * (error - near), weights, name, loss_collection, reduction)


def log_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _USUAL,
) -> Tensor:
    """The cross entropy of probabilities; see `compute_weighted_loss`."""
    with name_scope(scope or "log_loss") as name:
        there, here = _compared(labels, predictions, "log_loss")
        losses = -(there * apply_one("Log", [here + epsilon], None)) - (1 - there) * apply_one("Log", [1 - here + epsilon], None)
        return compute_weighted_loss(losses, weights, name, loss_collection, reduction)


def hinge_loss(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _USUAL,
) -> Tensor:
    """`max(0, 1 - label * logit)` with labels of 0 and 1 as -1 and 1; see `compute_weighted_loss`."""
    with name_scope(scope or "hinge_loss") as name:
        there, here = _compared(labels, logits, "hinge_loss")
        return compute_weighted_loss(apply_one("Relu", [1 - (2 * there - 1) * here], None), weights, name, loss_collection, reduction)


def cosine_distance(
    labels: Any,
    predictions: Any,
    axis: Axis = None,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _USUAL,
    dim: Axis = None,
) -> Tensor:
    """1 minus the product of unit vectors along `axis`; see `compute_weighted_loss`."""
    along = either("axis", axis, "dim", dim)
    if along is None:
        raise InvalidArgumentError("cosine_distance: required an axis, got None")
    with name_scope(scope or "cosine_distance_loss") as name:
        there, here = _compared(labels, predictions, "cosine_distance")
        return compute_weighted_loss(1 - _sum(here * there, along), weights, name, loss_collection, reduction)


def _sum(x: Tensor, axis: Any) -> Tensor:
    return reduce_by("Sum", x, [axis] if isinstance(axis, int) else axis, True)


def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _USUAL,
) -> Tensor:
    """The mean cross entropy of independent classes; see `compute_weighted_loss`."""
    with name_scope(scope or "sigmoid_cross_entropy_loss") as name:
        logits = convert_to_tensor(logits)
        labels = cast(convert_to_tensor(multi_class_labels), logits.dtype.base)
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = sigmoid_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, name, loss_collection, reduction)


def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _USUAL,
) -> Tensor:
    """The mean cross entropy of classes, for labels that are probabilities; see `compute_weighted_loss`."""
    with name_scope(scope or "softmax_cross_entropy_loss") as name:
        logits = convert_to_tensor(logits)
        labels = cast(convert_to_tensor(onehot_labels), logits.dtype.base)
        if label_smoothing > 0:
            classes = cast(shape(labels)[1], logits.dtype.base)
            labels = labels * (1 - label_smoothing) + label_smoothing / classes
        losses = softmax_cross_entropy_with_logits_v2(stop_gradient(labels, "labels_stop_gradient"), logits, name="xentropy")
        return compute_weighted_loss(losses, weights, name, loss_collection, reduction)


def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _USUAL,
) -> Tensor:
    """The mean cross entropy of classes, for labels that are numbers; see `compute_weighted_loss`."""
    with name_scope(scope or "sparse_softmax_cross_entropy_loss") as name:
        labels, logits = convert_to_tensor(labels), convert_to_tensor(logits)
        if labels.shape.rank is not None and labels.shape.rank == logits.shape.rank:
            labels = squeeze(labels, [-1])
        losses = sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, name, loss_collection, reduction)


# ---- collections -----------------------------------------------------------------------------------------------------


def add_loss(loss: Tensor, loss_collection: str | None = GraphKeys.LOSSES) -> None:
    """Put a loss into a collection."""
    if loss_collection:
        add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Tensor]:
    """The losses in a collection."""
    return get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Tensor]:
    """The losses of regularizers."""
    return get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(scope: str | None = None, name: str = "total_regularization_loss") -> Tensor:
    """The sum of the losses of regularizers; 0 without any."""
    losses = get_regularization_losses(scope)
    return add_n(losses, name) if losses else constant(0.0, name=name)


def get_total_loss(add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None) -> Tensor:
    """The sum of all losses.

    Args:
        add_regularization_losses: add those of regularizers.
        name: the name of the node.
        scope: take only those with names that begin with it.
    """
    losses = get_losses(scope) + (get_regularization_losses(scope) if add_regularization_losses else [])
    return add_n(losses, name)
