"""`tf.contrib.crf`: conditional random fields over sequences of tags."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphcore.api.loops import while_loop
from graphcore.dtypes import int32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1.arrays.layout import expand_dims, one_hot, squeeze
from graphcore.tf1.arrays.layout import shape as shape_of
from graphcore.tf1.arrays.ranges import range as numbers_to
from graphcore.tf1.arrays.ranges import sequence_mask
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import constant, convert_to_tensor
from graphcore.tf1.math.elementwise import cast, where
from graphcore.tf1.math.reductions import reduce_logsumexp, reduce_max, reduce_sum
from graphcore.tf1.nn.rnn.dynamic import exchanged
from graphcore.tf1.tensor_array import TensorArray
from graphcore.tf1.variable_scopes.getting import get_variable

__all__ = [
    "crf_binary_score",
    "crf_decode",
    "crf_log_likelihood",
    "crf_log_norm",
    "crf_sequence_score",
    "crf_unary_score",
    "viterbi_decode",
]


def crf_log_likelihood(inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any = None) -> tuple[Tensor, Any]:
    """The log probabilities of sequences of tags.

    Args:
        inputs: [batch, time, tags], the scores of tags at each step.
        tag_indices: [batch, time], ints.
        sequence_lengths: [batch], ints.
        transition_params: [tags, tags], the scores of transitions; a variable `transitions` if None.

    Returns:
        The log probabilities, [batch], and the scores of transitions.

    Raises:
        InvalidArgumentError: the number of tags is not known.
    """
    inputs = convert_to_tensor(inputs)
    if transition_params is None:
        if inputs.shape.rank is None or inputs.shape.as_list()[2] is None:
            raise InvalidArgumentError(f"crf_log_likelihood: required a known number of tags, got inputs of shape {inputs.shape}")
        tags = inputs.shape.as_list()[2]
        transition_params = get_variable("transitions", [tags, tags], inputs.dtype.base)
    scores = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    return scores - crf_log_norm(inputs, sequence_lengths, transition_params), transition_params


def crf_sequence_score(inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Tensor:
    """The scores of sequences of tags, [batch], which are not normalized; see `crf_log_likelihood`."""
    unary = crf_unary_score(tag_indices, sequence_lengths, inputs)
    return unary + crf_binary_score(tag_indices, sequence_lengths, transition_params)


def crf_unary_score(tag_indices: Any, sequence_lengths: Any, inputs: Any) -> Tensor:
    """The sums of the scores of the tags of each step: [batch]."""
    inputs = convert_to_tensor(inputs)
    dtype = inputs.dtype.base
    chosen = reduce_sum(one_hot(tag_indices, shape_of(inputs)[2], dtype=dtype) * inputs, 2)
    return reduce_sum(chosen * sequence_mask(sequence_lengths, shape_of(inputs)[1], dtype), 1)


def crf_binary_score(tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Tensor:
    """The sums of the scores of transitions between tags: [batch]."""
    tags, table = convert_to_tensor(tag_indices), convert_to_tensor(transition_params)
    dtype = table.dtype.base
    before, after = [one_hot(part, shape_of(table)[0], dtype=dtype) for part in (tags[:, :-1], tags[:, 1:])]
    chosen = reduce_sum(expand_dims(before, 3) * expand_dims(after, 2) * table, [2, 3])
    mask = sequence_mask(cast(convert_to_tensor(sequence_lengths), int32) - 1, shape_of(tags)[1] - 1, dtype)
    return reduce_sum(chosen * mask, 1)


def crf_log_norm(inputs: Any, sequence_lengths: Any, transition_params: Any) -> Tensor:
    """The logarithms of the sums of `exp(score)` over all sequences: [batch]; 0 for a length of 0."""
    table = convert_to_tensor(transition_params)
    last, _ = _forward(inputs, sequence_lengths, lambda before: reduce_logsumexp(expand_dims(before, 2) + table, 1))
    total = reduce_logsumexp(last, 1)
    lengths = cast(convert_to_tensor(sequence_lengths), int32)
    return where(lengths <= 0, total * 0.0, total)


def _forward(inputs: Any, sequence_lengths: Any, step: Any, note: Any = None) -> tuple[Tensor, Any]:
    """The values after the last step of each sequence, and those of `note` for all steps."""
    inputs = convert_to_tensor(inputs)
    lengths = cast(convert_to_tensor(sequence_lengths), int32)
    steps = shape_of(inputs)[1]
    scores = TensorArray(inputs.dtype.base, 0).unstack(exchanged(inputs))
    notes = TensorArray(int32, steps)

    def one_step(time: Any, before: Any, notes: Any) -> Any:
        alive = expand_dims(time < lengths, 1)
        after = apply_one("SelectV2", [alive, step(before) + scores.read(time), before], None)
        after.set_shape(before.shape)
        if note is not None:
            notes = notes.write(time, note(before, alive))
        return time + 1, after, notes

    first = inputs[:, 0]
    if note is not None:
        notes = notes.write(0, cast(first * 0.0, int32))
    _, last, notes = while_loop(lambda time, *_: time < steps, one_step, (constant(1, int32), first, notes))
    return last, notes


def crf_decode(potentials: Any, transition_params: Any, sequence_length: Any) -> tuple[Tensor, Tensor]:
    """The sequences of tags with the best scores, and these: [batch, time] and [batch].

    Args:
        potentials: [batch, time, tags], the scores of tags at each step.
        transition_params: [tags, tags], the scores of transitions.
        sequence_length: [batch], ints. Beyond it tags are 0.
    """
    potentials, table = convert_to_tensor(potentials), convert_to_tensor(transition_params)
    steps, lengths = shape_of(potentials)[1], cast(convert_to_tensor(sequence_length), int32)
    own = expand_dims(numbers_to(shape_of(potentials)[2]), 0)

    def came_from(before: Any, alive: Any) -> Any:
        best = apply_one("ArgMax", [expand_dims(before, 2) + table, 1], None, {"output_type": int32})
        return apply_one("SelectV2", [alive, best, own + best * 0], None)  # beyond the end the tag stays

    last, notes = _forward(potentials, lengths, lambda before: reduce_max(expand_dims(before, 2) + table, 1), came_from)
    tag = apply_one("ArgMax", [last, 1], None, {"output_type": int32})

    def back(time: Any, tag: Any, written: Any) -> Any:
        before = reduce_sum(notes.read(time) * one_hot(tag, shape_of(potentials)[2], dtype=int32), 1)
        return time - 1, before, written.write(time, tag)

    _, first, written = while_loop(lambda time, *_: time > 0, back, (steps - 1, tag, TensorArray(int32, steps)))
    tags = exchanged(expand_dims(written.write(0, first).stack(), 2))
    decoded = squeeze(tags, [2]) * sequence_mask(lengths, steps, int32)
    decoded.set_shape(potentials.shape[:2])
    return decoded, reduce_max(last, 1)


def viterbi_decode(score: Any, transition_params: Any) -> tuple[list[int], float]:
    """The best sequence of tags for one sequence of scores, and its score, in NumPy.

    Args:
        score: [time, tags], an array.
        transition_params: [tags, tags], an array.
    """
    score, table = np.asarray(score), np.asarray(transition_params)
    best, parents = score[0], []
    for row in score[1:]:
        through = best[:, None] + table
        parents.append(through.argmax(0))
        best = row + through.max(0)
    tags = [int(best.argmax())]
    for parent in reversed(parents):
        tags.append(int(parent[tags[-1]]))
    return tags[::-1], best.max()
