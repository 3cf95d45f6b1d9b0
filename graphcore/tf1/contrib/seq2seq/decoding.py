"""`tf.contrib.seq2seq.dynamic_decode`: a decoder, step by step in a loop of the graph."""

from __future__ import annotations

from typing import Any, NamedTuple

from graphcore.api.loops import while_loop
from graphcore.brief import brief
from graphcore.dtypes import int32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.graph.shapes.constant_values import constant_value
from graphcore.tf1 import nest
from graphcore.tf1.arrays.layout import shape as shape_of
from graphcore.tf1.arrays.layout import zeros_like
from graphcore.tf1.arrays.ranges import fill
from graphcore.tf1.calls import apply_one
from graphcore.tf1.contrib.seq2seq.helpers import Helper, logical_or
from graphcore.tf1.following import derived
from graphcore.tf1.framework import constant, convert_to_tensor, name_scope, zeros
from graphcore.tf1.math.elementwise import where
from graphcore.tf1.math.reductions import reduce_all
from graphcore.tf1.nn.rnn.base import sizes_of
from graphcore.tf1.nn.rnn.cells import require_cell
from graphcore.tf1.nn.rnn.dynamic import exchanged
from graphcore.tf1.tensor_array import TensorArray
from graphcore.tf1.variable_scopes.opening import variable_scope


class Decoder:
    """The base class of decoders.

    A subclass has the attributes `batch_size`, `output_size` and `output_dtype`, and the methods `initialize()`, which returns which sequences
    have ended, the first inputs and the first state, and `step(time, inputs, state, name=None)`, which returns outputs, state, next inputs and
    which sequences have ended. It may have `finalize(outputs, final_state, sequence_lengths)`.
    """

    @property
    def tracks_own_finished(self) -> bool:
        """True if `step` says of all sequences whether they have ended, not only of those that end then."""
        return False


class BasicDecoderOutput(NamedTuple):
    """The outputs of a `BasicDecoder`: those of the cell, and the samples."""

    rnn_output: Any
    sample_id: Any


class BasicDecoder(Decoder):
    """A cell whose inputs come from a helper.

    Args:
        cell: the cell.
        helper: chooses inputs and samples.
        initial_state: the state before the first step.
        output_layer: a layer on the outputs of the cell; None for none.

    Raises:
        InvalidArgumentError: something is of another kind.
    """

    def __init__(self, cell: Any, helper: Any, initial_state: Any, output_layer: Any = None) -> None:
        require_cell(cell, "BasicDecoder")
        if not isinstance(helper, Helper):
            raise InvalidArgumentError(f"BasicDecoder: required a Helper, got {brief(helper)}")
        self._helper: Any = helper
        self._cell, self._initial_state, self._layer = cell, initial_state, output_layer

    @property
    def batch_size(self) -> Any:
        """The number of sequences, an int or a scalar tensor."""
        return self._helper.batch_size

    @property
    def output_size(self) -> BasicDecoderOutput:
        """The sizes of the outputs, without the batch."""
        size = self._cell.output_size if self._layer is None else self._layer.units
        return BasicDecoderOutput(size, self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> BasicDecoderOutput:
        """The dtypes of the outputs."""
        dtype = nest.flatten(self._initial_state)[0].dtype.base
        return BasicDecoderOutput(nest.map_structure(lambda _: dtype, self.output_size.rnn_output), self._helper.sample_ids_dtype)

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """See `Decoder`."""
        del name
        return (*self._helper.initialize(), self._initial_state)

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        """See `Decoder`."""
        with name_scope(name or "BasicDecoderStep"):
            outputs, state = self._cell(inputs, state)
            if self._layer is not None:
                outputs = self._layer(outputs)
            samples = self._helper.sample(time=time, outputs=outputs, state=state)
            finished, following, state = self._helper.next_inputs(time=time, outputs=outputs, state=state, sample_ids=samples)
            return BasicDecoderOutput(outputs, samples), state, following, finished


def dynamic_decode(
    decoder: Any,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: Any = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Any]:
    """Run a decoder until all sequences have ended.

    Args:
        decoder: the decoder.
        output_time_major: the first dimension of outputs is time, not the batch.
        impute_finished: outputs after the end of a sequence are zeros, and its state stays.
        maximum_iterations: the greatest number of steps, an int or scalar tensor.
        parallel_iterations: the number of steps that may overlap.
        swap_memory: without effect.
        scope: the variable scope, "decoder" by default.

    Returns:
        The outputs of all steps, the state after the last one, and the lengths of the sequences, [batch].

    Raises:
        InvalidArgumentError: the decoder is of another kind, or `maximum_iterations` no scalar.
    """
    del swap_memory
    if not isinstance(decoder, Decoder):
        raise InvalidArgumentError(f"dynamic_decode: required a Decoder, got {brief(decoder)}")

    def build() -> Any:
        with variable_scope(scope, "decoder"):
            outputs, state, lengths = _run(decoder, impute_finished, maximum_iterations, parallel_iterations)
            return outputs if output_time_major else nest.map_structure(exchanged, outputs), state, lengths

    result: tuple[Any, Any, Any] = derived("dynamic_decode", build)
    return result


def _run(decoder: Any, impute_finished: bool, maximum_iterations: Any, parallel: int) -> tuple[Any, Any, Any]:
    limit = None if maximum_iterations is None else convert_to_tensor(maximum_iterations, int32, name="maximum_iterations")
    if limit is not None and limit.shape.rank != 0:
        raise InvalidArgumentError(f"dynamic_decode: required a scalar as maximum_iterations, got {limit.shape}")
    finished, inputs, state = decoder.initialize()
    batch = decoder.batch_size
    static_batch = constant_value(batch) if isinstance(batch, Tensor) else batch
    static_batch = None if static_batch is None else int(static_batch)
    sizes = [_sizes(size) for size in nest.flatten(decoder.output_size)]
    dtypes = nest.flatten(decoder.output_dtype)
    form = decoder.output_size
    arrays = [
        TensorArray(dtype, 0, dynamic_size=True, element_shape=[static_batch, *size]) for dtype, size in zip(dtypes, sizes, strict=True)
    ]
    nothing = [zeros([batch if static_batch is None else static_batch, *size], dtype) for dtype, size in zip(dtypes, sizes, strict=True)]
    if limit is not None:
        finished = logical_or(finished, limit <= 0)
    lengths = zeros_like(finished, dtype=int32)

    def one_step(time: Any, written: Any, state: Any, inputs: Any, finished: Any, lengths: Any) -> Any:
        outputs, new_state, following, ended = decoder.step(time, inputs, state)
        nest.assert_same_structure(state, new_state, check_types=False)
        if not decoder.tracks_own_finished:
            ended = logical_or(ended, finished)
        lengths = where(finished, lengths, fill(shape_of(lengths), time + 1))
        emitted = nest.flatten(outputs)
        if impute_finished:
            emitted = [where(finished, zero, value) for zero, value in zip(nothing, emitted, strict=True)]
            olds = zip(nest.flatten(state), nest.flatten(new_state), strict=True)
            new_state = nest.pack_sequence_as(state, [_kept(finished, old, new) for old, new in olds])
        new_state = nest.pack_sequence_as(state, nest.flatten(new_state))
        written = [array.write(time, value) for array, value in zip(written, emitted, strict=True)]
        return time + 1, written, new_state, following, ended, lengths

    _, arrays, state, _, _, lengths = while_loop(
        lambda time, written, state, inputs, finished, lengths: apply_one("LogicalNot", [reduce_all(finished)], None),  # noqa: ARG005 - loop variables
        one_step,
        (constant(0, int32, name="time"), arrays, state, inputs, finished, lengths),
        parallel_iterations=parallel,
        maximum_iterations=limit,
    )
    outputs = nest.pack_sequence_as(form, [array.stack() for array in arrays])
    finalize = getattr(decoder, "finalize", None)
    if finalize is not None:
        outputs, state = finalize(outputs, state, lengths)
    return outputs, state, lengths


def _sizes(size: Any) -> list[int]:
    return sizes_of(size) if isinstance(size, int) else [int(dim) for dim in size.as_list()]


def _kept(finished: Any, old: Any, new: Any) -> Any:
    if isinstance(new, TensorArray) or new.shape.rank == 0:
        return new
    value = where(finished, old, new)
    value.set_shape(old.shape)
    return value
