"""`tf.contrib.legacy_seq2seq`: decoders along lists of inputs, and their losses."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from graphcore.api.branches import cond
from graphcore.dtypes import float32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1 import nest, nn
from graphcore.tf1.arrays.layout import concat, reshape, stack, stop_gradient
from graphcore.tf1.arrays.layout import shape as shape_of
from graphcore.tf1.following import derived
from graphcore.tf1.framework import name_scope, zeros
from graphcore.tf1.initializers import Zeros
from graphcore.tf1.math.elementwise import add_n, cast, matmul, tanh
from graphcore.tf1.math.reductions import argmax, reduce_sum
from graphcore.tf1.nn.rnn.unrolled import static_rnn
from graphcore.tf1.nn.rnn.wrappers import EmbeddingWrapper, OutputProjectionWrapper
from graphcore.tf1.variable_scopes.getting import get_variable
from graphcore.tf1.variable_scopes.opening import variable_scope
from graphcore.tf1.variable_scopes.scope import get_variable_scope

__all__ = [
    "attention_decoder",
    "basic_rnn_seq2seq",
    "embedding_attention_seq2seq",
    "embedding_rnn_decoder",
    "embedding_rnn_seq2seq",
    "model_with_buckets",
    "rnn_decoder",
    "sequence_loss",
    "sequence_loss_by_example",
]


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
            for number, decoder_input in enumerate(decoder_inputs):
                value = decoder_input
                if loop_function is not None and outputs:
                    with variable_scope("loop_function", reuse=True):
                        value = loop_function(outputs[-1], number)
                if number:
                    get_variable_scope().reuse_variables()
                output, state = cell(value, state)
                outputs.append(output)
            return outputs, state

    result: tuple[list[Any], Any] = derived("rnn_decoder", build, list(decoder_inputs), initial_state)
    return result


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
                cross_entropy = nn.sparse_softmax_cross_entropy_with_logits(labels=reshape(target, [-1]), logits=logit)
            else:
                cross_entropy = softmax_loss_function(labels=target, logits=logit)
            losses.append(cross_entropy * weight)
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


def embedding_rnn_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    output_projection: tuple[Any, Any] | None = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Run a cell along the vectors of a list of symbols, or of those that its outputs chose.

    Args:
        decoder_inputs: for each step [batch], ints.
        initial_state: the state before the first step.
        cell: the cell.
        num_symbols, embedding_size: the number of symbols and the size of their vectors, the variable `embedding`.
        output_projection: a matrix and a bias that make scores of symbols from outputs; None if the outputs are scores.
        feed_previous: take the symbols with the best scores of the step before; of the inputs only the first is taken.
        update_embedding_for_previous: let gradients reach the vectors of symbols chosen so.
        scope: the variable scope, "embedding_rnn_decoder" by default.

    Returns:
        The outputs of the steps, and the state after the last one.
    """
    with variable_scope(scope or "embedding_rnn_decoder"):
        embedding = get_variable("embedding", [num_symbols, embedding_size])
        choose = _chooser(embedding, output_projection, update_embedding_for_previous) if feed_previous else None
        return rnn_decoder([nn.embedding_lookup(embedding, decoder_input) for decoder_input in decoder_inputs], initial_state, cell, choose)


def _chooser(embedding: Any, output_projection: Any, update_embedding: bool) -> Callable[[Any, int], Any]:
    """A function from outputs to the vectors of the symbols with the best scores."""

    def choose(previous: Any, _: int) -> Any:
        if output_projection is not None:
            previous = matmul(previous, output_projection[0]) + output_projection[1]
        embedded = nn.embedding_lookup(embedding, argmax(previous, 1))
        return embedded if update_embedding else stop_gradient(embedded)

    return choose


def embedding_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    output_projection: tuple[Any, Any] | None = None,
    feed_previous: Any = False,
    dtype: object = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Run a copy of a cell along symbols, and from its last state the cell along others.

    Args:
        encoder_inputs, decoder_inputs: for each step [batch], ints.
        cell: the cell.
        num_encoder_symbols, num_decoder_symbols, embedding_size: the numbers of symbols, and the size of their vectors.
        output_projection: see `embedding_rnn_decoder`; None to add one to the cell.
        feed_previous: see `embedding_rnn_decoder`; a bool or a bool tensor.
        dtype: the dtype of the states, float32 by default.
        scope: the variable scope, "embedding_rnn_seq2seq" by default.

    Returns:
        The outputs of the second steps, and the state after the last one.
    """
    with variable_scope(scope or "embedding_rnn_seq2seq"):
        reader = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        _, state = static_rnn(reader, list(encoder_inputs), dtype=dtype or float32)
        writer = cell if output_projection is not None else OutputProjectionWrapper(cell, num_decoder_symbols)

        def decode(feeds: bool) -> tuple[list[Any], Any]:
            return embedding_rnn_decoder(decoder_inputs, state, writer, num_decoder_symbols, embedding_size, output_projection, feeds)

        return _either(decode, feed_previous)


def _either(decode: Callable[[bool], tuple[list[Any], Any]], feed_previous: Any) -> tuple[list[Any], Any]:
    """The results with or without feeding, which may be decided in a run."""
    if isinstance(feed_previous, bool):
        return decode(feed_previous)
    form: list[Any] = []

    def branch(feeds: bool) -> list[Any]:
        with variable_scope(get_variable_scope(), reuse=True if form else None):
            outputs, state = decode(feeds)
        form[:] = [len(outputs), state]
        return [*outputs, *nest.flatten(state)]

    outputs = cond(feed_previous, lambda: branch(feeds=True), lambda: branch(feeds=False), strict=True)
    return list(outputs[: form[0]]), nest.pack_sequence_as(form[1], outputs[form[0] :])


def attention_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    output_size: int | None = None,
    num_heads: int = 1,
    loop_function: Callable[[Any, int], Any] | None = None,
    dtype: object = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """Run a cell along a list of inputs, each joined with what its state attends to.

    Args:
        decoder_inputs: for each step [batch, n].
        initial_state: the state before the first step.
        attention_states: [batch, time, size], what it attends to.
        cell: the cell.
        output_size: the size of the outputs; that of the cell if None.
        num_heads: the number of weightings.
        loop_function: see `rnn_decoder`.
        dtype: the dtype, that of the scope by default.
        scope: the variable scope, "attention_decoder" by default.
        initial_state_attention: attend with the initial state before the first step too; otherwise there are zeros.

    Returns:
        The outputs of the steps, and the state after the last one.

    Raises:
        InvalidArgumentError: there is no input, or the sizes of `attention_states` are not known.
    """
    if not decoder_inputs or num_heads < 1:
        raise InvalidArgumentError(f"attention_decoder: required inputs and heads, got {len(decoder_inputs)} and {num_heads}")
    length, size = attention_states.shape.as_list()[1:3]
    if size is None:
        raise InvalidArgumentError(f"attention_decoder: required attention_states with a known last size, got {attention_states.shape}")

    def build() -> Any:
        with variable_scope(scope or "attention_decoder", dtype=dtype) as opened:
            kind = opened.dtype
            batch = shape_of(decoder_inputs[0])[0]
            steps = shape_of(attention_states)[1] if length is None else length
            hidden = reshape(attention_states, [-1, steps, 1, size])
            features, vectors = [], []
            for head in range(num_heads):
                kernel = get_variable(f"AttnW_{head}", [1, 1, size, size], kind)
                features.append(nn.conv2d(hidden, kernel, [1, 1, 1, 1], "SAME"))
                vectors.append(get_variable(f"AttnV_{head}", [size], kind))

            def attend(query: Any) -> list[Any]:
                flat = nest.flatten(query)
                joined = flat[0] if len(flat) == 1 else concat(flat, 1)
                contexts = []
                for head in range(num_heads):
                    with variable_scope(f"Attention_{head}"):
                        y = reshape(linear([joined], size, bias=True), [-1, 1, 1, size])
                        weights = nn.softmax(reduce_sum(vectors[head] * tanh(features[head] + y), [2, 3]))
                        contexts.append(reshape(reduce_sum(reshape(weights, [-1, steps, 1, 1]) * hidden, [1, 2]), [-1, size]))
                return contexts

            attention = [zeros(stack([batch, size]), kind) for _ in range(num_heads)]
            for tensor in attention:
                tensor.set_shape([None, size])
            state = initial_state
            outputs: list[Any] = []
            if initial_state_attention:
                attention = attend(state)
            for number, decoder_input in enumerate(decoder_inputs):
                if number:
                    get_variable_scope().reuse_variables()
                value = decoder_input
                if loop_function is not None and outputs:
                    with variable_scope("loop_function", reuse=True):
                        value = loop_function(outputs[-1], number)
                joined = linear([value, *attention], value.shape.as_list()[1], bias=True)
                output, state = cell(joined, state)
                with variable_scope(get_variable_scope(), reuse=True if number == 0 and initial_state_attention else None):
                    attention = attend(state)
                with variable_scope("AttnOutputProjection"):
                    outputs.append(linear([output, *attention], output_size or cell.output_size, bias=True))
            return outputs, state

    result: tuple[list[Any], Any] = derived("attention_decoder", build, list(decoder_inputs), initial_state, attention_states)
    return result


def linear(args: Sequence[Any], output_size: int, *, bias: bool) -> Any:
    """The product of inputs side by side and the matrix `kernel`, plus `bias`. args: [batch, n] each -> y: [batch, output_size]."""
    joined = args[0] if len(args) == 1 else concat(list(args), 1)
    kernel = get_variable("kernel", [joined.shape.as_list()[1], output_size], joined.dtype.base)
    product = matmul(joined, kernel)
    return product + get_variable("bias", [output_size], joined.dtype.base, Zeros()) if bias else product


def embedding_attention_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_projection: tuple[Any, Any] | None = None,
    feed_previous: Any = False,
    dtype: object = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """`embedding_rnn_seq2seq`, with attention to the outputs of the first steps.

    Args:
        encoder_inputs, decoder_inputs, cell, num_encoder_symbols, num_decoder_symbols, embedding_size: see `embedding_rnn_seq2seq`.
        num_heads, initial_state_attention: see `attention_decoder`.
        output_projection, feed_previous, dtype: see `embedding_rnn_seq2seq`.
        scope: the variable scope, "embedding_attention_seq2seq" by default.

    Returns:
        The outputs of the second steps, and the state after the last one.
    """
    with variable_scope(scope or "embedding_attention_seq2seq"):
        reader = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        outputs, start = static_rnn(reader, list(encoder_inputs), dtype=dtype or float32)
        memory = concat([reshape(output, [-1, 1, cell.output_size]) for output in outputs], 1)
        writer = cell if output_projection is not None else OutputProjectionWrapper(cell, num_decoder_symbols)
        size = None if output_projection is not None else num_decoder_symbols

        def decode(feeds: bool) -> tuple[list[Any], Any]:
            with variable_scope("embedding_attention_decoder"):
                embedding = get_variable("embedding", [num_decoder_symbols, embedding_size])
                choose = _chooser(embedding, output_projection, update_embedding=True) if feeds else None
                inputs = [nn.embedding_lookup(embedding, decoder_input) for decoder_input in decoder_inputs]
                return attention_decoder(
                    inputs, start, memory, writer, size, num_heads, choose, initial_state_attention=initial_state_attention
                )

        return _either(decode, feed_previous)


def model_with_buckets(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    buckets: Sequence[tuple[int, int]],
    seq2seq: Callable[[Any, Any], tuple[list[Any], Any]],
    softmax_loss_function: Callable[..., Any] | None = None,
    per_example_loss: bool = False,
    name: str | None = None,
) -> tuple[list[list[Any]], list[Any]]:
    """A model for each pair of lengths, all with the same variables.

    Args:
        encoder_inputs, decoder_inputs, targets, weights: the lists for the greatest lengths.
        buckets: pairs of lengths, the smallest first.
        seq2seq: a function from encoder and decoder inputs to outputs and state.
        softmax_loss_function, per_example_loss: see `sequence_loss_by_example`, whose results there are with the second.
        name: the name scope.

    Returns:
        For each pair the outputs, and the loss.

    Raises:
        InvalidArgumentError: a list is shorter than the last pair.
    """
    longest = buckets[-1]
    for what, items, wanted in (
        ("encoder_inputs", encoder_inputs, longest[0]),
        ("targets", targets, longest[1]),
        ("weights", weights, longest[1]),
    ):
        if len(items) < wanted:
            raise InvalidArgumentError(f"Length of {what} ({len(items)}) must be at least that of last bucket ({wanted}).")
    outputs, losses = [], []
    with name_scope(name or "model_with_buckets"):
        for number, (first, second) in enumerate(buckets):
            with variable_scope(get_variable_scope(), reuse=True if number else None):
                bucket_outputs, _ = seq2seq(list(encoder_inputs[:first]), list(decoder_inputs[:second]))
                outputs.append(bucket_outputs)
                loss = sequence_loss_by_example if per_example_loss else sequence_loss
                losses.append(
                    loss(bucket_outputs, list(targets[:second]), list(weights[:second]), softmax_loss_function=softmax_loss_function)
                )
    return outputs, losses
