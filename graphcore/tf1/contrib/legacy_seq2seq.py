"""`tf.contrib.legacy_seq2seq`: decoders along lists of inputs, and their losses."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from graphcore.api.arrays import reshape
from graphcore.api.arrays import shape as shape_of
from graphcore.api.framework import name_scope
from graphcore.api.math import add_n, cast, reduce_sum
from graphcore.dtypes import float32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1 import nn
from graphcore.tf1.following import derived
from graphcore.tf1.rnn.unrolled import static_rnn
from graphcore.tf1.variable_scopes.opening import variable_scope
from graphcore.tf1.variable_scopes.scope import get_variable_scope

__all__ = ["basic_rnn_seq2seq", "rnn_decoder", "sequence_loss", "sequence_loss_by_example"]


def rnn_decoder(
    decoder_inputs: Sequence[Any], initial_state: Any, cell: Any, loop_function: Callable[[Any, int], Any] | None = None, scope: Any = None
) -> tuple[list[Any], Any]:
    """Run a recurrent cell along a list of inputs, or on inputs made from its outputs.

    Args:
        decoder_inputs: the inputs of the steps, each [batch, n].
        initial_state: the state before the first step.
        cell: the cell.
        loop_function: a function from the output of a step and the number of the next one to its input; None for the given inputs. Of those the
            first is taken in either case.
        scope: the variable scope, "rnn_decoder" by default.

    Returns:
        The outputs of the steps, and the state after the last one.
    """

    def build() -> Any:
        with variable_scope(scope or "rnn_decoder"):
            state = initial_state
            outputs: list[Any] = []
            for number, given in enumerate(decoder_inputs):
                value = given
                if loop_function is not None and outputs:
                    with variable_scope("loop_function", reuse=True):
                        value = loop_function(outputs[-1], number)
                if number:
                    get_variable_scope().reuse_variables()
                output, state = cell(value, state)
                outputs.append(output)
            return outputs, state

    made: tuple[list[Any], Any] = derived("rnn_decoder", build, list(decoder_inputs), initial_state)
    return made


def basic_rnn_seq2seq(
    encoder_inputs: Sequence[Any], decoder_inputs: Sequence[Any], cell: Any, dtype: object = float32, scope: Any = None
) -> tuple[list[Any], Any]:
    """Run a copy of a cell along a list of inputs, and from its last state the cell along another list.

    Returns:
        The outputs of the second steps, and the state after the last one.
    """
    with variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = static_rnn(copy.deepcopy(cell), list(encoder_inputs), dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


def sequence_loss_by_example(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Tensor:
    """The weighted cross entropy of each sequence: a sum over the steps, or a mean.

    Args:
        logits: for each step [batch, classes].
        targets: for each step [batch], ints.
        weights: for each step [batch].
        average_across_timesteps: divide by the sum of the weights.
        softmax_loss_function: a function of `labels` and `logits` instead of the cross entropy.
        name: the name scope.

    Returns:
        A loss for each sequence: [batch].

    Raises:
        InvalidArgumentError: the lists have different lengths.
    """
    if not len(logits) == len(targets) == len(weights):
        raise InvalidArgumentError(
            f"Lengths of logits, weights, and targets must be the same {len(logits)}, {len(weights)}, {len(targets)}."
        )
    with name_scope(name or "sequence_loss_by_example"):
        losses = []
        for logit, target, weight in zip(logits, targets, weights, strict=True):
            if softmax_loss_function is None:
                found = nn.sparse_softmax_cross_entropy_with_logits(labels=reshape(target, [-1]), logits=logit)
            else:
                found = softmax_loss_function(labels=target, logits=logit)
            losses.append(found * weight)
        total = add_n(losses)
        return total / (add_n(list(weights)) + 1e-12) if average_across_timesteps else total


def sequence_loss(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Tensor:
    """The weighted cross entropy of all sequences: a sum, or a mean; see `sequence_loss_by_example`. -> loss: a scalar."""
    with name_scope(name or "sequence_loss"):
        cost = reduce_sum(sequence_loss_by_example(logits, targets, weights, average_across_timesteps, softmax_loss_function))
        return cost / cast(shape_of(targets[0])[0], cost.dtype.base) if average_across_batch else cost
