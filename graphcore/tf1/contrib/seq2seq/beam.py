"""`tf.contrib.seq2seq.BeamSearchDecoder`: the most probable sequences."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from graphcore import dtypes
from graphcore.api.branches import cond
from graphcore.api.loops import while_loop
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.shapes import Shape
from graphcore.tf1 import nest, nn
from graphcore.tf1.arrays.layout import concat, expand_dims, one_hot, reshape, stack, zeros_like
from graphcore.tf1.arrays.layout import shape as shape_of
from graphcore.tf1.arrays.ranges import fill
from graphcore.tf1.arrays.ranges import range as numbers_to
from graphcore.tf1.arrays.slices import gather
from graphcore.tf1.calls import apply_one
from graphcore.tf1.contrib.seq2seq.attention import size_of
from graphcore.tf1.contrib.seq2seq.decoding import Decoder
from graphcore.tf1.contrib.seq2seq.helpers import logical_or
from graphcore.tf1.framework import convert_to_tensor, name_scope, zeros
from graphcore.tf1.math.elementwise import cast, equal, minimum, where
from graphcore.tf1.math.reductions import reduce_all, reduce_max
from graphcore.tf1.nn.rnn.cells import require_cell
from graphcore.tf1.tensor_array import TensorArray


class BeamSearchDecoderState(NamedTuple):
    """The state of the cell; and for each candidate log probability, whether it has ended, and length."""

    cell_state: Any
    log_probs: Any
    finished: Any
    lengths: Any


class BeamSearchDecoderOutput(NamedTuple):
    """The outputs of a step: scores, symbols, and the candidates that they continue. Each: [batch, beam]."""

    scores: Any
    predicted_ids: Any
    parent_ids: Any


class FinalBeamSearchDecoderOutput(NamedTuple):
    """The symbols of whole sequences, best first ([batch, time, beam]), and the outputs of the steps."""

    predicted_ids: Any
    beam_search_decoder_output: Any


class BeamSearchDecoder(Decoder):
    """A decoder that keeps the `beam_width` best sequences so far.

    Args:
        cell: the cell. The memory of an `AttentionWrapper` and the states must be repeated by `tile_batch`.
        embedding: a matrix of vectors, or a function from numbers of symbols to vectors.
        start_tokens: [batch], ints: the first symbols.
        end_token: the symbol that ends a sequence.
        initial_state: the state of the cell, [batch * beam_width, ...].
        beam_width: the number of candidates.
        output_layer: a layer on the outputs of the cell; None for none.
        length_penalty_weight: scores are log probabilities divided by `((5 + length) / 6) ** weight`.
        coverage_penalty_weight: 0.
        reorder_tensor_arrays: without effect: the state must have no tensor arrays.

    Raises:
        InvalidArgumentError: an argument is of another kind.
    """

    def __init__(
        self,
        cell: Any,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        initial_state: Any,
        beam_width: int,
        output_layer: Any = None,
        length_penalty_weight: float = 0.0,
        coverage_penalty_weight: float = 0.0,
        reorder_tensor_arrays: bool = True,
    ) -> None:
        del reorder_tensor_arrays
        require_cell(cell, "BeamSearchDecoder")
        if coverage_penalty_weight:
            raise InvalidArgumentError("BeamSearchDecoder: coverage_penalty_weight is not available here; required 0")
        if any(isinstance(tensor, TensorArray) for tensor in nest.flatten(initial_state)):
            raise InvalidArgumentError(
                "BeamSearchDecoder: required a state without tensor arrays; make the wrapper without alignment_history"
            )
        self._cell, self._layer, self._width, self._penalty = cell, output_layer, beam_width, length_penalty_weight
        self._vectors = embedding if callable(embedding) else lambda ids: nn.embedding_lookup(embedding, ids)
        start = cast(convert_to_tensor(start_tokens, name="start_tokens"), dtypes.int32)
        self._end = cast(convert_to_tensor(end_token, name="end_token"), dtypes.int32)
        if start.shape.rank != 1 or self._end.shape.rank != 0:
            raise InvalidArgumentError(
                f"BeamSearchDecoder: required a vector as start_tokens and a scalar as end_token, got {start.shape} and {self._end.shape}"
            )
        self._batch = size_of(start, 0)
        self._first = self._vectors(self._repeated(start))
        self._state = nest.map_structure(self._split, initial_state)

    def _repeated(self, tensor: Any) -> Any:
        return expand_dims(tensor, 1) + zeros(stack([self._batch, self._width]), tensor.dtype.base)

    def _split(self, tensor: Any) -> Any:
        """From [batch * beam, ...] to [batch, beam, ...]; scalars stay."""
        if tensor.shape.rank == 0:
            return tensor
        rest = tensor.shape.as_list()[1:]
        split = reshape(tensor, concat([stack([self._batch, self._width]), shape_of(tensor)[1:]], 0))
        split.set_shape([None if isinstance(self._batch, Tensor) else self._batch, self._width, *rest])
        return split

    def _merge(self, tensor: Any) -> Any:
        """From [batch, beam, ...] to [batch * beam, ...]; scalars stay."""
        if tensor.shape.rank == 0:
            return tensor
        flat = reshape(tensor, concat([[-1], shape_of(tensor)[2:]], 0))
        size = None if isinstance(self._batch, Tensor) else self._batch * self._width
        flat.set_shape([size, *tensor.shape.as_list()[2:]])
        return flat

    @property
    def tracks_own_finished(self) -> bool:
        """True: candidates change their places."""
        return True

    @property
    def batch_size(self) -> Any:
        """The number of sequences, an int or a scalar tensor."""
        return self._batch

    @property
    def output_size(self) -> BeamSearchDecoderOutput:
        """The sizes of the outputs, without the batch."""
        return BeamSearchDecoderOutput(*[Shape([self._width])] * 3)

    @property
    def output_dtype(self) -> BeamSearchDecoderOutput:
        """The dtypes of the outputs."""
        return BeamSearchDecoderOutput(nest.flatten(self._state)[0].dtype.base, dtypes.int32, dtypes.int32)

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """See `Decoder`: only the first candidate of each sequence is alive."""
        del name
        first = zeros(reshape(self._batch, [1]), dtypes.int32)
        finished = one_hot(first, self._width, on_value=False, off_value=True, dtype=dtypes.bool_)
        dtype = self.output_dtype.scores
        log_probs = one_hot(first, self._width, on_value=0.0, off_value=float("-inf"), dtype=dtype)
        lengths = cast(zeros_like(log_probs), dtypes.int64)
        return finished, self._first, BeamSearchDecoderState(self._state, log_probs, finished, lengths)

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        """See `Decoder`."""
        del time
        with name_scope(name or "BeamSearchDecoderStep"):
            merged = nest.map_structure(self._merge, state.cell_state)
            outputs, cell_state = self._cell(self._merge(inputs), merged)
            logits = self._split(outputs if self._layer is None else self._layer(outputs))
            output, after = self._chosen(logits, nest.map_structure(self._split, cell_state), state)
            following = cond(reduce_all(after.finished), lambda: self._first, lambda: self._vectors(output.predicted_ids))
            following.set_shape(self._first.shape)
            return output, after, following, after.finished

    def _chosen(self, logits: Any, cell_state: Any, state: BeamSearchDecoderState) -> tuple[Any, BeamSearchDecoderState]:
        symbols = size_of(logits, -1)
        step = apply_one("LogSoftmax", [logits], None)
        least = float(np.finfo(logits.dtype.base.as_numpy_dtype).min)
        ended = one_hot(fill(shape_of(state.log_probs), self._end), symbols, on_value=0.0, off_value=least, dtype=logits.dtype.base)
        step = apply_one("SelectV2", [expand_dims(state.finished, 2), ended, step], None)
        total = expand_dims(state.log_probs, 2) + step
        alive = cast(apply_one("LogicalNot", [state.finished], None), dtypes.int64)
        scores = total
        if self._penalty:
            grows = one_hot(fill(shape_of(state.log_probs), self._end), symbols, on_value=0, off_value=1, dtype=dtypes.int64)
            lengths = expand_dims(state.lengths, 2) + grows * expand_dims(alive, 2)
            scores = total / ((5.0 + cast(lengths, total.dtype.base)) / 6.0) ** self._penalty
        best, places = nn.top_k(reshape(scores, stack([self._batch, -1])), k=self._width)
        words = apply_one("FloorMod", [places, cast(convert_to_tensor(symbols), dtypes.int32)], None)
        parents = apply_one("FloorDiv", [places, cast(convert_to_tensor(symbols), dtypes.int32)], None)
        log_probs = self._taken(reshape(total, stack([self._batch, -1])), places, self._width * symbols)
        before = self._taken(state.finished, parents, self._width)
        finished = logical_or(before, equal(words, self._end))
        lengths = self._taken(state.lengths + alive, parents, self._width)
        kept = nest.map_structure(lambda part: part if part.shape.rank == 0 else self._taken(part, parents, self._width), cell_state)
        return BeamSearchDecoderOutput(best, words, parents), BeamSearchDecoderState(kept, log_probs, finished, lengths)

    def _taken(self, tensor: Any, places: Any, width: Any) -> Any:
        """Of each sequence the rows at some places. tensor: [batch, width, ...], places: [batch, beam] -> [batch, beam, ...]."""
        flat = reshape(tensor, concat([[-1], shape_of(tensor)[2:]], 0))
        first = expand_dims(numbers_to(self._batch) * width, 1)
        gathered = gather(flat, places + cast(first, dtypes.int32))
        gathered.set_shape([None if isinstance(self._batch, Tensor) else self._batch, self._width, *tensor.shape.as_list()[2:]])
        return gathered

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """The whole sequences. outputs: [time, batch, beam] each."""
        del sequence_lengths
        lengths = cast(reduce_max(final_state.lengths, 1), dtypes.int32)
        ids = gather_tree(outputs.predicted_ids, outputs.parent_ids, lengths, self._end)
        return FinalBeamSearchDecoderOutput(ids, outputs), final_state


def tile_batch(t: Any, multiplier: int, name: str | None = None) -> Any:
    """Repeat each row: [batch, ...] -> [batch * multiplier, ...].

    Args:
        t: a tensor, or (nested) tuples of these.
        multiplier: the number of copies, which stand side by side.
        name: the name scope.
    """

    def repeated(tensor: Any) -> Any:
        tensor = convert_to_tensor(tensor)
        sizes = tensor.shape.as_list()
        copies = apply_one("Tile", [expand_dims(tensor, 1), [1, multiplier, *[1] * (len(sizes) - 1)]], None)
        tiled = reshape(copies, concat([[-1], shape_of(tensor)[1:]], 0))
        tiled.set_shape([None if sizes[0] is None else sizes[0] * multiplier, *sizes[1:]])
        return tiled

    with name_scope(name or "tile_batch"):
        return nest.map_structure(repeated, t)


def gather_tree(step_ids: Any, parent_ids: Any, max_sequence_lengths: Any, end_token: Any) -> Tensor:
    """Whole sequences, from the symbols of steps and the candidates that these continue.

    Args:
        step_ids, parent_ids: [time, batch, beam], ints.
        max_sequence_lengths: [batch], ints: beyond it there are end tokens.
        end_token: what stands after the end.

    Returns:
        [time, batch, beam], ints.
    """
    with name_scope("GatherTree"):
        step_ids, parent_ids = convert_to_tensor(step_ids), convert_to_tensor(parent_ids)
        last = minimum(convert_to_tensor(max_sequence_lengths), shape_of(step_ids)[0]) - 1
        steps, batch, beam = shape_of(step_ids)[0], shape_of(step_ids)[1], shape_of(step_ids)[2]
        own = expand_dims(numbers_to(beam), 0) + zeros(stack([batch, beam]), dtypes.int32)
        first = expand_dims(numbers_to(batch) * beam, 1)
        ids_of = TensorArray(dtypes.int32, 0).unstack(step_ids)
        parents_of = TensorArray(dtypes.int32, 0).unstack(parent_ids)

        def taken(values: Any, places: Any) -> Any:
            return gather(reshape(values, [-1]), places + first)

        def one_step(time: Any, parents: Any, written: Any) -> Any:
            is_last = equal(expand_dims(last, 1) + zeros_like(own), time)
            is_beyond = expand_dims(last, 1) + zeros_like(own) < time
            places = where(is_last, own, parents)
            ids = where(is_beyond, zeros_like(own) + end_token, taken(ids_of.read(time), places))
            return time - 1, taken(parents_of.read(time), places), written.write(time, ids)

        ids = while_loop(lambda time, *_: time >= 0, one_step, (steps - 1, own, TensorArray(dtypes.int32, steps)))[2].stack()
        ends = cast(equal(ids, end_token), dtypes.int32)
        ended = apply_one("Cumsum", [ends, 0], None, {"exclusive": True})
        whole = where(ended > 0, zeros_like(ids) + end_token, ids)
        whole.set_shape(step_ids.shape)
        return whole
