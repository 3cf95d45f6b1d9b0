"""`tf.contrib.seq2seq.sequence_loss`: the loss of sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1 import nn
from graphcore.tf1.arrays.layout import reshape
from graphcore.tf1.arrays.layout import shape as shape_of
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import convert_to_tensor, name_scope
from graphcore.tf1.math.reductions import reduce_sum

__all__ = ["sequence_loss"]


def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Tensor:
    """The weighted cross entropy of sequences.

    Args:
        logits: [batch, time, classes].
        targets: [batch, time], ints.
        weights: [batch, time].
        average_across_timesteps, average_across_batch: sum over time, or over the batch, and divide by the sum of the weights.
        softmax_loss_function: a function of `labels` and `logits` instead of the cross entropy.
        name: the name scope.

    Returns:
        A loss: a scalar, [batch], [time] or [batch, time].

    Raises:
        InvalidArgumentError: a tensor has another rank.
    """
    logits, targets, weights = convert_to_tensor(logits), convert_to_tensor(targets), convert_to_tensor(weights)
    for what, tensor, rank in (("logits", logits, 3), ("targets", targets, 2), ("weights", weights, 2)):
        if tensor.shape.rank not in (None, rank):
            raise InvalidArgumentError(
                f"sequence_loss: required {what} of rank {rank}, got {tensor.shape}", node=tensor.node.name, source=tensor.node.source
            )
    axes = [axis for axis, chosen in ((0, average_across_batch), (1, average_across_timesteps)) if chosen]
    with name_scope(name or "sequence_loss"):
        flat = reshape(logits, [-1, shape_of(logits)[2]])
        loss_of = softmax_loss_function or nn.sparse_softmax_cross_entropy_with_logits
        losses = reshape(loss_of(labels=reshape(targets, [-1]), logits=flat) * reshape(weights, [-1]), shape_of(weights))
        losses.set_shape(weights.shape)
        if not axes:
            return losses
        return apply_one("DivNoNan", [reduce_sum(losses, axes), reduce_sum(weights, axes)], None)
