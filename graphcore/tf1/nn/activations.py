"""`tf.nn`: activations, and losses of logits."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from graphcore.dtypes import float16, float32, int32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor, get_default_graph
from graphcore.tf1.arrays.layout import concat, ones_like, reshape, shape, stop_gradient, transpose, zeros_like
from graphcore.tf1.calls import apply_one, either
from graphcore.tf1.framework import constant, convert_to_tensor, name_scope
from graphcore.tf1.math.elementwise import cast, matmul, maximum, where
from graphcore.tf1.math.reductions import reduction


def softmax(logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None) -> Tensor:
    """`exp(x) / sum(exp(x))` along `axis` (or `dim`), the last one by default."""
    return _along_last("Softmax", logits, either("axis", axis, "dim", dim), name)


def log_softmax(logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None) -> Tensor:
    """The logarithm of the softmax along `axis` (or `dim`), the last one by default."""
    return _along_last("LogSoftmax", logits, either("axis", axis, "dim", dim), name)


def _along_last(op: str, logits: Any, axis: int | None, name: str | None) -> Tensor:
    tensor = convert_to_tensor(logits)
    rank = tensor.shape.rank
    if axis is None or axis == -1 or (rank is not None and axis == rank - 1):
        return apply_one(op, [tensor], name)
    if rank is None or not -rank <= axis < rank:
        raise InvalidArgumentError(f"{op}: axis {axis} needs a known rank above it, got shape {tensor.shape}")
    with name_scope(name or op.lower()):
        exchanged = _exchanged(rank, axis % rank)
        return transpose(apply_one(op, [transpose(tensor, exchanged)], None), exchanged)


def _exchanged(rank: int, axis: int) -> list[int]:
    """The order of dimensions with `axis` and the last one exchanged."""
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    return order


def crelu(features: Any, name: str | None = None, axis: int = -1) -> Tensor:
    """The ReLU of a tensor and of its negative, joined along `axis`."""
    with name_scope(name or "CRelu"):
        features = convert_to_tensor(features)
        return apply_one("Relu", [concat([features, -features], axis)], None)


def leaky_relu(features: Any, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """`x` where it is positive, else `alpha * x`; integers become float32."""
    tensor = convert_to_tensor(features)
    if tensor.dtype.is_integer:
        tensor = cast(tensor, float32)
    return apply_one("LeakyRelu", [tensor], name, {"alpha": float(alpha)})


def swish(features: Any, beta: float = 1.0) -> Tensor:
    """`x * sigmoid(beta * x)`."""
    features = convert_to_tensor(features)
    result: Tensor = features * apply_one("Sigmoid", [features if beta == 1.0 else features * beta], None)
    return result


silu = swish


def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """`relu(x @ weights + biases)`."""
    with name_scope(name or "relu_layer") as scope:
        return apply_one("Relu", [apply_one("BiasAdd", [matmul(x, weights), biases], None)], scope)


def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """`x @ weights + biases`."""
    with name_scope(name or "xw_plus_b") as scope:
        return apply_one("BiasAdd", [matmul(x, weights), biases], scope)


def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Tensor:
    """Add a bias to the channels. value: [..., n], or [b, n, ...] for NCHW  bias: [n]."""
    channels_first = bool(data_format) and str(data_format).startswith("NC")
    return apply_one("BiasAdd", [value, bias], name, {"data_format": "NCHW"} if channels_first else None)


def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None) -> Tensor:
    """`x` divided by its Euclidean norm along `axis` (or `dim`); all elements are one vector without it."""
    axis = either("axis", axis, "dim", dim)
    with name_scope(name or "l2_normalize") as scope:
        x = convert_to_tensor(x)
        squares = reduction("Sum", apply_one("Square", [x], None), axis, True)
        return apply_one("Mul", [x, apply_one("Rsqrt", [maximum(squares, epsilon)], None)], scope)


# ---- losses ----------------------------------------------------------------------------------------------------------


def softmax_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, dim: int = -1, name: str | None = None, axis: int | None = None
) -> Tensor:
    """The cross entropy of each row; the gradient to the labels is stopped.

    Args:
        _sentinel: None; labels and logits are given by name.
        labels: [..., classes], probabilities.
        logits: [..., classes].
        dim, axis: the dimension of the classes.
        name: the name scope.

    Returns:
        A loss for each row: [...].
    """
    _check_sentinel("softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name or "softmax_cross_entropy_with_logits_sg"):
        labels = stop_gradient(labels, "labels_stop_gradient")
    return softmax_cross_entropy_with_logits_v2(labels, logits, dim if axis is None else axis, name)


def _check_sentinel(function: str, sentinel: Any, labels: Any, logits: Any) -> None:
    if sentinel is not None:
        raise InvalidArgumentError(f"Only call `{function}` with named arguments (labels=..., logits=..., ...)").advise(
            f"Write the names: `gc.nn.{function}(labels=..., logits=...)`. Labels are the right answers, logits what the model computes.",
            required="labels=... and logits=...",
            came="arguments without names, which are easily interchanged",
        )
    if labels is None or logits is None:
        raise InvalidArgumentError("Both labels and logits must be provided.")


def softmax_cross_entropy_with_logits_v2(
    labels: Any, logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """The cross entropy of each row, with gradients to logits and labels. labels, logits: [..., classes] -> loss: [...]."""
    along = either("axis", axis, "dim", dim)
    with name_scope(name or "softmax_cross_entropy_with_logits") as scope:
        logits = convert_to_tensor(logits)
        labels = convert_to_tensor(labels)  # of any dtype, as TensorFlow has it: one_hot of ints is common
        precise = cast(logits, float32) if logits.dtype.base is float16 else logits
        labels = cast(labels, precise.dtype.base)
        rank = precise.shape.rank
        if along is not None and along != -1 and rank is not None and along % rank != rank - 1:
            order = _exchanged(rank, along % rank)
            precise, labels = transpose(precise, order), transpose(labels, order)
        if rank == 2 and labels.shape.rank in (None, 2):
            cost = apply_one("SoftmaxCrossEntropyWithLogits", [precise, labels], scope)
        else:
            kept = shape(precise)
            classes = concat([[-1], kept[-1:]], 0)
            flat = apply_one("SoftmaxCrossEntropyWithLogits", [reshape(precise, classes), reshape(labels, classes)], None)
            cost = reshape(flat, kept[:-1])
            if rank is not None:
                cost.set_shape(precise.shape[:-1])
        return cast(cost, float16) if logits.dtype.base is float16 else cost


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """The cross entropy of each row, for labels that are the numbers of classes.

    Args:
        _sentinel: None; labels and logits are given by name.
        labels: [...], ints.
        logits: [..., classes].
        name: the name scope.

    Returns:
        A loss for each row: [...].
    """
    _check_sentinel("sparse_softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name or "SparseSoftmaxCrossEntropyWithLogits"):
        labels, logits = convert_to_tensor(labels), convert_to_tensor(logits)
        precise = cast(logits, float32) if logits.dtype.base is float16 else logits
        rank = logits.shape.rank
        if rank is not None and labels.shape.rank is not None and labels.shape.rank != rank - 1:
            raise InvalidArgumentError(
                f"Rank mismatch: Rank of labels (received {labels.shape.rank}) should equal rank of logits minus 1 (received {rank})."
            )
        if rank == 2:
            cost = get_default_graph().apply_op("SparseSoftmaxCrossEntropyWithLogits", [precise, labels], None, None).outputs[0]
        else:
            kept = shape(labels)
            flat = reshape(precise, concat([[-1], shape(precise)[-1:]], 0))
            losses = (
                get_default_graph().apply_op("SparseSoftmaxCrossEntropyWithLogits", [flat, reshape(labels, [-1])], None, None).outputs[0]
            )
            cost = reshape(losses, kept)
            cost.set_shape(labels.shape)
        return cast(cost, float16) if logits.dtype.base is float16 else cost


def sigmoid_cross_entropy_with_logits(_sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None) -> Tensor:
    """The cross entropy of independent classes, element by element. labels, logits: [...] -> loss: [...]."""
    _check_sentinel("sigmoid_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name or "logistic_loss") as scope:
        logits = convert_to_tensor(logits)
        labels = convert_to_tensor(labels, logits.dtype.base)
        _check_alike(logits, labels)
        zeros = zeros_like(logits)
        positive = apply_one("GreaterEqual", [logits, zeros], None)
        above = where(positive, logits, zeros)
        below = where(positive, -logits, logits)
        return apply_one("AddV2", [above - logits * labels, apply_one("Log1p", [apply_one("Exp", [below], None)], None)], scope)


def _check_alike(logits: Tensor, labels: Tensor) -> None:
    if not logits.shape.is_compatible_with(labels.shape):
        raise InvalidArgumentError(f"logits and labels must have the same shape ({logits.shape} vs {labels.shape})")


def weighted_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, pos_weight: Any = None, name: str | None = None, targets: Any = None
) -> Tensor:
    """Like `sigmoid_cross_entropy_with_logits`, with the part of positive labels times `pos_weight`."""
    labels = either("labels", labels, "targets", targets)
    with name_scope(name or "logistic_loss") as scope:
        logits = convert_to_tensor(logits)
        labels = convert_to_tensor(labels, logits.dtype.base)
        _check_alike(logits, labels)
        weight = 1 + (convert_to_tensor(pos_weight, logits.dtype.base) - 1) * labels
        size = apply_one("Abs", [logits], None)
        rest = apply_one("Log1p", [apply_one("Exp", [-size], None)], None) + apply_one("Relu", [-logits], None)
        return apply_one("AddV2", [(1 - labels) * logits, weight * rest], scope)


def log_poisson_loss(targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None) -> Tensor:
    """The negative log likelihood of counts under Poisson distributions with the means `exp(log_input)`."""
    with name_scope(name or "log_poisson_loss"):
        log_input = convert_to_tensor(log_input)
        targets = convert_to_tensor(targets, log_input.dtype.base)
        result: Tensor = apply_one("Exp", [log_input], None) - log_input * targets
        if not compute_full_loss:
            return result
        stirling = targets * apply_one("Log", [targets], None) - targets + 0.5 * apply_one("Log", [targets * (2.0 * np.pi)], None)
        within = apply_one("LogicalAnd", [targets >= 0, targets <= 1], None)
        whole: Tensor = result + where(within, zeros_like(targets), stirling)
        return whole


# ---- ranks -----------------------------------------------------------------------------------------------------------


class TopK(NamedTuple):
    """The largest elements, and their places."""

    values: Tensor
    indices: Tensor


def top_k(input: Any, k: Any = 1, sorted: bool = True, name: str | None = None) -> TopK:
    """The `k` largest elements of each row with their places. input: [..., n] -> values, indices: [..., k]."""
    outputs = get_default_graph().apply_op("TopKV2", [input, convert_to_tensor(k, int32)], {"sorted": sorted}, name).outputs
    return TopK(outputs[0], outputs[1])


def in_top_k(predictions: Any, targets: Any, k: Any, name: str | None = None) -> Tensor:
    """True for each row whose target is among its `k` largest predictions. predictions: [b, classes]  targets: [b] -> y: [b]."""
    return apply_one("InTopKV2", [predictions, targets, k], name or "in_top_k")


def labels_of_true(logits: Tensor, count: int) -> Tensor:
    """Labels that share 1 among `count` true classes."""
    return ones_like(logits) / constant(float(count), logits.dtype.base)


def sum_rows(x: Tensor) -> Tensor:
    """The sum of each row. x: [b, n] -> y: [b]."""
    columns = shape(x)[1]
    ones = apply_one("Fill", [apply_one("Pack", [[columns, 1]], None), constant(1, x.dtype.base)], None)
    return reshape(matmul(x, ones), [-1])
