"""`tf.contrib.seq2seq`: helpers, which choose the inputs of a decoder's next step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphcore.api.branches import cond
from graphcore.brief import brief
from graphcore.dtypes import int32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.shapes import Shape
from graphcore.tf1 import nest, nn
from graphcore.tf1.arrays.layout import reshape, zeros_like
from graphcore.tf1.arrays.layout import shape as shape_of
from graphcore.tf1.arrays.ranges import fill
from graphcore.tf1.calls import apply_one
from graphcore.tf1.contrib.seq2seq.attention import size_of
from graphcore.tf1.framework import convert_to_tensor
from graphcore.tf1.math.elementwise import cast, equal
from graphcore.tf1.math.reductions import argmax, reduce_all
from graphcore.tf1.nn.rnn.dynamic import exchanged
from graphcore.tf1.random import multinomial
from graphcore.tf1.tensor_array import TensorArray

__all__ = [
    "CustomHelper",
    "GreedyEmbeddingHelper",
    "Helper",
    "InferenceHelper",
    "SampleEmbeddingHelper",
    "TrainingHelper",
]


class Helper:
    """The base class of helpers.

    A subclass has the attribute `batch_size` and the methods `initialize()`, which returns which sequences have ended at the start ([batch], bool)
    and the first inputs, and `next_inputs(time, outputs, state, sample_ids)`, which returns which sequences end before the next step, its inputs
    and its state.
    """

    batch_size: Any = None
    sample_ids_shape: Any = Shape([])
    sample_ids_dtype: Any = int32

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """The numbers of the symbols for outputs: by default those of the greatest. outputs: [batch, symbols] -> [batch]."""
        del time, state
        if not isinstance(outputs, Tensor):
            raise InvalidArgumentError(f"{type(self).__name__}.sample: required a single tensor as outputs, got {brief(outputs)}")
        return cast(argmax(outputs, -1), int32, name=name)


class TrainingHelper(Helper):
    """Inputs that are known beforehand.

    Args:
        inputs: [batch, time, ...], or [time, batch, ...] with `time_major`; or (nested) tuples of these.
        sequence_length: [batch], ints: the length of each sequence.
        time_major: the first dimension is time.
        name: without effect.

    Raises:
        InvalidArgumentError: the lengths are no vector.
    """

    def __init__(self, inputs: Any, sequence_length: Any, time_major: bool = False, name: str | None = None) -> None:
        del name
        inputs = nest.map_structure(convert_to_tensor, inputs)
        self._inputs = inputs
        if not time_major:
            inputs = nest.map_structure(exchanged, inputs)
        self._arrays = nest.map_structure(lambda tensor: TensorArray(tensor.dtype.base, 0).unstack(tensor), inputs)
        self.sequence_length = convert_to_tensor(sequence_length, name="sequence_length")
        if self.sequence_length.shape.rank != 1:
            raise InvalidArgumentError(f"TrainingHelper: required a vector as sequence_length, got {self.sequence_length.shape}")
        self._zeros = nest.map_structure(lambda tensor: zeros_like(tensor[0]), inputs)
        self.batch_size = size_of(self.sequence_length, 0)

    @property
    def inputs(self) -> Any:
        """The inputs."""
        return self._inputs

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """See `Helper`."""
        del name
        finished = equal(self.sequence_length, 0)
        return finished, self._at(0, finished)

    def _at(self, time: Any, finished: Any) -> Any:
        """The inputs of a step, zeros if all sequences have ended."""
        flat = nest.flatten(self._arrays)
        tensors = cond(reduce_all(finished), lambda: nest.flatten(self._zeros), lambda: [array.read(time) for array in flat], strict=True)
        for tensor, zero in zip(tensors, nest.flatten(self._zeros), strict=True):
            tensor.set_shape(zero.shape)
        return nest.pack_sequence_as(self._arrays, tensors)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None) -> tuple[Any, Any, Any]:
        """See `Helper`."""
        del outputs, sample_ids, name
        following = time + 1
        finished = following >= cast(self.sequence_length, int32)
        return finished, self._at(following, finished), state


class GreedyEmbeddingHelper(Helper):
    """Inputs that are the vectors of the symbols chosen before: those of the greatest outputs.

    Args:
        embedding: a matrix of vectors, or a function from numbers of symbols to vectors.
        start_tokens: [batch], ints: the first symbols.
        end_token: the symbol that ends a sequence.

    Raises:
        InvalidArgumentError: the first symbols are no vector, or the end no scalar.
    """

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        self._vectors: Callable[[Any], Any] = embedding if callable(embedding) else lambda ids: nn.embedding_lookup(embedding, ids)
        self._start = cast(convert_to_tensor(start_tokens, name="start_tokens"), int32)
        self._end = cast(convert_to_tensor(end_token, name="end_token"), int32)
        if self._start.shape.rank != 1 or self._end.shape.rank != 0:
            raise InvalidArgumentError(
                f"{type(self).__name__}: required a vector as start_tokens and a scalar as end_token, got {self._start.shape} and {self._end.shape}"
            )
        self._first = self._vectors(self._start)
        self.batch_size = size_of(self._start, 0)

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """See `Helper`."""
        del name
        return fill(reshape(self.batch_size, [1]), value=False), self._first

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None) -> tuple[Any, Any, Any]:
        """See `Helper`."""
        del time, outputs, name
        finished = equal(sample_ids, self._end)
        following = cond(reduce_all(finished), lambda: self._first, lambda: self._vectors(sample_ids))
        following.set_shape(self._first.shape)
        return finished, following, state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Inputs that are the vectors of symbols drawn by the outputs, which are logits.

    Args:
        embedding, start_tokens, end_token: see `GreedyEmbeddingHelper`.
        softmax_temperature: divides the logits; None for 1.
        seed: the seed of the draws.
    """

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any, softmax_temperature: Any = None, seed: int | None = None) -> None:
        super().__init__(embedding, start_tokens, end_token)
        self._temperature, self._seed = softmax_temperature, seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """See `Helper.sample`."""
        del time, state
        logits = outputs if self._temperature is None else outputs / self._temperature
        return cast(reshape(multinomial(logits, 1, seed=self._seed), shape_of(logits)[:1]), int32, name=name)


class CustomHelper(Helper):
    """A helper made of functions.

    Args:
        initialize_fn: takes nothing, see `Helper`.
        sample_fn: takes time, outputs and state by name, see `Helper.sample`.
        next_inputs_fn: takes time, outputs, state and sample_ids by name, see `Helper`.
        sample_ids_shape, sample_ids_dtype: the shape of a sample without the batch, and its dtype; a scalar int32 by default.
    """

    def __init__(
        self,
        initialize_fn: Callable[[], tuple[Any, Any]],
        sample_fn: Callable[..., Any],
        next_inputs_fn: Callable[..., tuple[Any, Any, Any]],
        sample_ids_shape: Any = None,
        sample_ids_dtype: Any = None,
    ) -> None:
        self._initialize, self._sample, self._next = initialize_fn, sample_fn, next_inputs_fn
        self.sample_ids_shape = Shape(list(sample_ids_shape or []))
        self.sample_ids_dtype = sample_ids_dtype or int32

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """See `Helper`."""
        del name
        finished, inputs = self._initialize()
        if self.batch_size is None:
            self.batch_size = size_of(convert_to_tensor(finished), 0)
        return finished, inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """See `Helper.sample`."""
        del name
        return self._sample(time=time, outputs=outputs, state=state)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None) -> tuple[Any, Any, Any]:
        """See `Helper`."""
        del name
        return self._next(time=time, outputs=outputs, state=state, sample_ids=sample_ids)


class InferenceHelper(Helper):
    """Inputs that are the samples of the step before.

    Args:
        sample_fn: a function from outputs to samples.
        sample_shape, sample_dtype: the shape of a sample without the batch, and its dtype.
        start_inputs: the first inputs.
        end_fn: a function from samples to which sequences end.
        next_inputs_fn: a function from samples to inputs; None for the samples themselves.
    """

    def __init__(
        self,
        sample_fn: Callable[[Any], Any],
        sample_shape: Any,
        sample_dtype: Any,
        start_inputs: Any,
        end_fn: Callable[[Any], Any],
        next_inputs_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        self._sample, self._ends, self._next = sample_fn, end_fn, next_inputs_fn
        self.sample_ids_shape, self.sample_ids_dtype = Shape(list(sample_shape)), sample_dtype
        self._first = convert_to_tensor(start_inputs, name="start_inputs")
        self.batch_size = size_of(self._first, 0)

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """See `Helper`."""
        del name
        return fill(reshape(self.batch_size, [1]), value=False), self._first

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """See `Helper.sample`."""
        del time, state, name
        return self._sample(outputs)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None) -> tuple[Any, Any, Any]:
        """See `Helper`."""
        del time, outputs, name
        return self._ends(sample_ids), sample_ids if self._next is None else self._next(sample_ids), state


def logical_or(x: Any, y: Any) -> Tensor:
    """True where one of both is."""
    return apply_one("LogicalOr", [x, y], None)
