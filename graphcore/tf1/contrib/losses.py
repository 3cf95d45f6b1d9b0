"""`tf.contrib.losses`: `tf.losses` with the predictions as first argument."""

from __future__ import annotations

from typing import Any

from graphcore.graph import Tensor
from graphcore.tf1 import losses
from graphcore.tf1.contrib.arg_scopes import add_arg_scope
from graphcore.tf1.losses import add_loss, compute_weighted_loss, get_losses, get_regularization_losses, get_total_loss

__all__ = [
    "absolute_difference",
    "add_loss",
    "compute_weighted_loss",
    "cosine_distance",
    "get_losses",
    "get_regularization_losses",
    "get_total_loss",
    "hinge_loss",
    "log_loss",
    "mean_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]


@add_arg_scope
def absolute_difference(predictions: Any, labels: Any = None, weights: Any = 1.0, scope: str | None = None) -> Tensor:
    """The mean of absolute differences; see `gc.losses.absolute_difference`."""
    return losses.absolute_difference(labels, predictions, weights, scope)


@add_arg_scope
def cosine_distance(
    predictions: Any, labels: Any = None, axis: Any = None, weights: Any = 1.0, scope: Any = None, dim: Any = None
) -> Tensor:
    """One minus the product of unit vectors; see `gc.losses.cosine_distance`."""
    return losses.cosine_distance(labels, predictions, dim if axis is None else axis, weights, scope)


@add_arg_scope
def hinge_loss(logits: Any, labels: Any = None, scope: str | None = None) -> Tensor:
    """The hinge loss; see `gc.losses.hinge_loss`."""
    return losses.hinge_loss(labels, logits, scope=scope)


@add_arg_scope
def log_loss(predictions: Any, labels: Any = None, weights: Any = 1.0, epsilon: float = 1e-7, scope: str | None = None) -> Tensor:
    """The cross entropy of probabilities; see `gc.losses.log_loss`."""
    return losses.log_loss(labels, predictions, weights, epsilon, scope)


@add_arg_scope
def mean_squared_error(predictions: Any, labels: Any = None, weights: Any = 1.0, scope: str | None = None) -> Tensor:
    """The mean of squared differences; see `gc.losses.mean_squared_error`."""
    return losses.mean_squared_error(labels, predictions, weights, scope)


@add_arg_scope
def sigmoid_cross_entropy(
    logits: Any, multi_class_labels: Any, weights: Any = 1.0, label_smoothing: float = 0, scope: str | None = None
) -> Tensor:
    """The cross entropy of the sigmoids of logits; see `gc.losses.sigmoid_cross_entropy`."""
    return losses.sigmoid_cross_entropy(multi_class_labels, logits, weights, label_smoothing, scope)


@add_arg_scope
def softmax_cross_entropy(
    logits: Any, onehot_labels: Any, weights: Any = 1.0, label_smoothing: float = 0, scope: str | None = None
) -> Tensor:
    """The cross entropy of the softmax of logits; see `gc.losses.softmax_cross_entropy`."""
    return losses.softmax_cross_entropy(onehot_labels, logits, weights, label_smoothing, scope)


@add_arg_scope
def sparse_softmax_cross_entropy(logits: Any, labels: Any, weights: Any = 1.0, scope: str | None = None) -> Tensor:
    """The cross entropy of softmax and class numbers; see `gc.losses.sparse_softmax_cross_entropy`."""
    return losses.sparse_softmax_cross_entropy(labels, logits, weights, scope)
