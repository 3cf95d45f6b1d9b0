"""Pieces of neural networks, under TF1's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphcore.graph import Tensor, get_default_graph


def _apply(op: str, inputs: Sequence[Any], name: str | None, default: str, attrs: Mapping[str, Any] | None = None) -> Tensor:
    return get_default_graph().apply_op(op, inputs, attrs, name or default).outputs[0]


def softmax(logits: Any, name: str | None = None) -> Tensor:
    """`exp(x) / sum(exp(x))` over the last dimension. logits: [..., n] -> y: [..., n]."""
    return _apply("Softmax", [logits], name, "Softmax")


def log_softmax(logits: Any, name: str | None = None) -> Tensor:
    """The logarithm of the softmax. logits: [..., n] -> y: [..., n]."""
    return _apply("LogSoftmax", [logits], name, "LogSoftmax")


def relu(x: Any, name: str | None = None) -> Tensor:
    """`max(x, 0)`."""
    return _apply("Relu", [x], name, "Relu")


def bias_add(value: Any, bias: Any, name: str | None = None) -> Tensor:
    """Add a bias along the last dimension. value: [..., n]  bias: [n] -> y: [..., n]."""
    return _apply("BiasAdd", [value, bias], name, "BiasAdd")


def softmax_cross_entropy_with_logits(logits: Any, labels: Any, name: str | None = None) -> Tensor:
    """The cross entropy of each row. logits: [b, n]  labels: [b, n], rows sum to 1 -> loss: [b]."""
    return _apply("SoftmaxCrossEntropyWithLogits", [logits, labels], name, "SoftmaxCrossEntropyWithLogits")
