"""`tf.contrib.seq2seq`: mechanisms of attention, which weight the outputs of an encoder."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from graphcore.brief import brief
from graphcore.dtypes import float32, int32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1 import nn
from graphcore.tf1.arrays.layout import concat, expand_dims, one_hot, ones_like, reshape, squeeze, stack
from graphcore.tf1.arrays.layout import shape as shape_of
from graphcore.tf1.arrays.ranges import sequence_mask
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import control_dependencies, convert_to_tensor, name_scope, ones, zeros
from graphcore.tf1.initializers import Constant, Zeros
from graphcore.tf1.layers.core import Dense
from graphcore.tf1.math.elementwise import cast, matmul, square, tanh, where
from graphcore.tf1.math.reductions import argmax, reduce_sum
from graphcore.tf1.variable_scopes.getting import get_variable
from graphcore.tf1.variable_scopes.opening import variable_scope


class AttentionMechanism:
    """The base class of mechanisms: `values` of [batch, time, n], and `keys` made from them.

    Args:
        memory: the outputs of an encoder, [batch, time, n].
        memory_sequence_length: [batch], ints: the length of each sequence; None for all of the same.
        memory_layer: makes the keys from the values; None for the values themselves.
        query_layer: changes the queries; None for none.
        probability_fn: a function from scores to weights.
        score_mask_value: the score beyond the length of a sequence, minus infinity by default.
        name: the name scope.

    Raises:
        InvalidArgumentError: the last size of the memory is not known.
    """

    def __init__(
        self,
        memory: Any,
        memory_sequence_length: Any,
        memory_layer: Any,
        query_layer: Any,
        probability_fn: Callable[[Any], Any] | None,
        score_mask_value: Any,
        name: str | None,
    ) -> None:
        self.query_layer, self.memory_layer = query_layer, memory_layer
        self._probability_fn = probability_fn or nn.softmax
        self._masked = -math.inf if score_mask_value is None else score_mask_value
        with name_scope(name or "BaseAttentionMechanismInit"):
            memory = convert_to_tensor(memory, name="memory")
            if memory.shape.rank is None or memory.shape.as_list()[-1] is None:
                raise InvalidArgumentError(f"required a memory with a known last size, got {memory.shape}", node=memory.node.name)
            self._lengths = None if memory_sequence_length is None else convert_to_tensor(memory_sequence_length)
            self.values = memory
            if self._lengths is not None:
                mask = sequence_mask(self._lengths, shape_of(memory)[1], memory.dtype.base)
                self.values = memory * reshape(mask, concat([shape_of(mask), ones([memory.shape.rank - 2], int32)], 0))
            self.keys = self.values if memory_layer is None else memory_layer(self.values)
            self.batch_size = size_of(self.keys, 0)
            self.alignments_size = size_of(self.keys, 1)

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Tensor:
        """The weights before the first step, zeros: [batch, time]."""
        return zeros(stack([batch_size, self.alignments_size]), dtype)

    initial_state = initial_alignments

    def __call__(self, query: Any, state: Any) -> Any:
        """The weights of the values for queries: [batch, n] -> [batch, time]."""
        del state
        score = self._score(query)
        if self._lengths is not None:
            score = where(sequence_mask(self._lengths, shape_of(score)[1]), score, ones_like(score) * self._masked)
        return self._probability_fn(score)

    def _score(self, query: Any) -> Any:
        """Scores of [batch, time] for queries."""
        raise InvalidArgumentError(f"{type(self).__name__} must define how queries are scored, got {brief(query)}")


class LuongAttention(AttentionMechanism):
    """Scores that are products of queries and keys.

    Args:
        num_units: the size of queries and keys.
        memory, memory_sequence_length, probability_fn, score_mask_value, name: see `AttentionMechanism`.
        scale: multiply the scores by a variable, `attention_g`.
        dtype: the dtype of the layer that makes the keys.
        custom_key_value_fn: not taken; None.
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Any = None,
        name: str = "LuongAttention",
    ) -> None:
        _refuse(custom_key_value_fn)
        layer = Dense(num_units, use_bias=False, name="memory_layer", dtype=dtype or float32)
        super().__init__(memory, memory_sequence_length, layer, None, probability_fn, score_mask_value, name)
        self._scale = scale

    def _score(self, query: Any) -> Any:
        wanted, query_size = self.keys.shape.as_list()[-1], query.shape.as_list()[-1]
        if wanted != query_size:
            raise InvalidArgumentError(f"LuongAttention: required queries of size {wanted}, that of the keys (num_units), got {query_size}")
        with variable_scope(None, "luong_attention"):
            score = squeeze(matmul(expand_dims(query, 1), self.keys, transpose_b=True), [1])
            return get_variable("attention_g", [], query.dtype.base, Constant(1.0)) * score if self._scale else score


class BahdanauAttention(AttentionMechanism):
    """Scores that are products of a vector and the tanh of sums of queries and keys.

    Args:
        num_units: the size of queries and keys.
        memory, memory_sequence_length, probability_fn, score_mask_value, name: see `AttentionMechanism`.
        normalize: the vector has a length of its own, a variable, and there is a bias.
        dtype: the dtype of the layers.
        custom_key_value_fn: not taken; None.
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Any = None,
        name: str = "BahdanauAttention",
    ) -> None:
        _refuse(custom_key_value_fn)
        dtype = dtype or float32
        keys = Dense(num_units, use_bias=False, name="memory_layer", dtype=dtype)
        queries = Dense(num_units, use_bias=False, name="query_layer", dtype=dtype)
        super().__init__(memory, memory_sequence_length, keys, queries, probability_fn, score_mask_value, name)
        self._units, self._normalize = num_units, normalize

    def _score(self, query: Any) -> Any:
        with variable_scope(None, "bahdanau_attention"):
            query = expand_dims(self.query_layer(query), 1)
            dtype = query.dtype.base
            vector = get_variable("attention_v", [self._units], dtype)
            if not self._normalize:
                return reduce_sum(vector * tanh(self.keys + query), [2])
            length = get_variable("attention_g", [], dtype, Constant(math.sqrt(1.0 / self._units)))
            bias = get_variable("attention_b", [self._units], dtype, Zeros())
            unit = length * vector * apply_one("Rsqrt", [reduce_sum(square(vector))], None)
            return reduce_sum(unit * tanh(self.keys + query + bias), [2])


def _refuse(custom_key_value_fn: Any) -> None:
    if custom_key_value_fn is not None:
        raise InvalidArgumentError("custom_key_value_fn is not available here; required None")


def hardmax(logits: Any, name: str | None = None) -> Tensor:
    """One at the greatest element of each row, zeros elsewhere. logits: [..., n] -> y: same."""
    with name_scope(name or "Hardmax"):
        logits = convert_to_tensor(logits)
        return one_hot(argmax(logits, -1), size_of(logits, -1), dtype=logits.dtype.base)


def attend(mechanism: AttentionMechanism, output: Any, alignments: Any, layer: Any) -> tuple[Any, Any]:
    """The attention for the output of a cell, and the weights. output: [batch, n] -> [batch, m], [batch, time]."""
    weights = mechanism(output, alignments)
    context = squeeze(matmul(expand_dims(weights, 1), mechanism.values), [1])
    return context if layer is None else layer(concat([output, context], 1)), weights


def size_of(tensor: Any, axis: int) -> Any:
    """A size of a tensor: an int if it is known, else a scalar tensor."""
    size = tensor.shape.as_list()[axis] if tensor.shape.rank is not None else None
    return shape_of(tensor)[axis] if size is None else size


def checked(tensor: Any, batch: Any, mechanisms: Any, what: str) -> Any:
    """A tensor that requires, at run time, the batch size of the memory.

    Raises:
        InvalidArgumentError: it is known to be another.
    """
    wanted = [mechanism.batch_size for mechanism in mechanisms]
    text = f"{what}: required the batch size of the memory (with a beam, its outputs repeated by tile_batch)"
    for size in wanted:
        if not isinstance(size, Tensor) and not isinstance(batch, Tensor) and size != batch:
            raise InvalidArgumentError(f"{text}, {size}, got {batch}")
    unknown = [size for size in wanted if isinstance(size, Tensor) or isinstance(batch, Tensor)]
    if not unknown:
        return tensor
    asserts = [_assert_same(cast(convert_to_tensor(batch), int32), cast(convert_to_tensor(size), int32), text) for size in unknown]
    with control_dependencies(asserts):
        return apply_one("Identity", [tensor], None)


def _assert_same(x: Any, y: Any, text: str) -> Any:
    graph = x.graph
    return graph.apply_op("Assert", [apply_one("Equal", [x, y], None), [convert_to_tensor(text), x, y]], None, None)
