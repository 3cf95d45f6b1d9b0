"""`tf.contrib.layers`: summaries of tensors and collections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphcore.graph import Tensor
from graphcore.tf1.framework import get_collection
from graphcore.tf1.summary import histogram, scalar
from graphcore.tf1.variables.collections import GraphKeys


def summarize_tensor(tensor: Any, tag: str | None = None) -> Tensor:
    """A scalar summary of a scalar, a histogram of another tensor, named `tag` or after its node."""
    return (scalar if tensor.shape.rank == 0 else histogram)(tag or f"{tensor.op.name}_summary", tensor)


def summarize_activation(op: Any) -> Tensor:
    """A histogram of activations, without TensorFlow's second summary, the part of zeros."""
    return histogram(f"{op.op.name}/activation", op)


def summarize_tensors(tensors: Sequence[Any], summarizer: Callable[[Any], Tensor] = summarize_tensor) -> list[Tensor]:
    """A summary of each tensor."""
    return [summarizer(tensor) for tensor in tensors]


def summarize_collection(
    collection: str, name_filter: str | None = None, summarizer: Callable[[Any], Tensor] = summarize_tensor
) -> list[Tensor]:
    """A summary of each tensor of a collection whose name fits a pattern."""
    return summarize_tensors(get_collection(collection, name_filter), summarizer)


def summarize_variables(name_filter: str | None = None, summarizer: Callable[[Any], Tensor] = summarize_tensor) -> list[Tensor]:
    """A summary of each variable."""
    return summarize_collection(GraphKeys.GLOBAL_VARIABLES, name_filter, summarizer)


def summarize_weights(name_filter: str | None = None, summarizer: Callable[[Any], Tensor] = summarize_tensor) -> list[Tensor]:
    """A summary of each tensor of the collection `weights`."""
    return summarize_collection(GraphKeys.WEIGHTS, name_filter, summarizer)


def summarize_biases(name_filter: str | None = None, summarizer: Callable[[Any], Tensor] = summarize_tensor) -> list[Tensor]:
    """A summary of each tensor of the collection `biases`."""
    return summarize_collection(GraphKeys.BIASES, name_filter, summarizer)


def summarize_activations(name_filter: str | None = None, summarizer: Callable[[Any], Tensor] = summarize_activation) -> list[Tensor]:
    """A summary of each tensor of the collection `activations`."""
    return summarize_collection(GraphKeys.ACTIVATIONS, name_filter, summarizer)
