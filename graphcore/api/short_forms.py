"""Short forms of functions of `gc.nn` for matrices of examples, along the last dimension."""

from __future__ import annotations

from typing import Any

from graphcore.graph import Tensor
from graphcore.tf1.calls import apply_one


def softmax(logits: Any, name: str | None = None) -> Tensor:
    """`exp(x) / sum(exp(x))` over the last dimension. logits: [..., n] -> y: [..., n]."""
    return apply_one("Softmax", [logits], name)


def log_softmax(logits: Any, name: str | None = None) -> Tensor:
    """The logarithm of the softmax. logits: [..., n] -> y: [..., n]."""
    return apply_one("LogSoftmax", [logits], name)


def bias_add(value: Any, bias: Any, name: str | None = None) -> Tensor:
    """Add a bias along the last dimension. value: [..., n]  bias: [n] -> y: [..., n]."""
    return apply_one("BiasAdd", [value, bias], name)


def softmax_cross_entropy_with_logits(logits: Any, labels: Any, name: str | None = None) -> Tensor:
    """The cross entropy of each row. logits: [b, n]  labels: [b, n], rows sum to 1 -> loss: [b]."""
    return apply_one("SoftmaxCrossEntropyWithLogits", [logits, labels], name or "softmax_cross_entropy_with_logits")
