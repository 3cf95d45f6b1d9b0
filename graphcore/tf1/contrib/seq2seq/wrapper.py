"""`tf.contrib.seq2seq.AttentionWrapper`: a recurrent cell that attends to the outputs of an encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from graphcore.brief import brief
from graphcore.dtypes import int32
from graphcore.errors import InvalidArgumentError
from graphcore.shapes import Shape
from graphcore.tf1 import nest
from graphcore.tf1.arrays.layout import concat, stack
from graphcore.tf1.contrib.seq2seq.attention import AttentionMechanism, attend, checked, size_of
from graphcore.tf1.framework import name_scope, zeros
from graphcore.tf1.layers.core import Dense
from graphcore.tf1.nn.rnn.base import RNNCell
from graphcore.tf1.nn.rnn.cells import require_cell
from graphcore.tf1.tensor_array import TensorArray


class AttentionWrapperState(NamedTuple):
    """The state of an `AttentionWrapper`.

    Attributes:
        cell_state: the state of the cell.
        attention: the attention after the last step, [batch, n].
        time: the number of steps.
        alignments: the weights of the last step, [batch, time], or one for each mechanism.
        alignment_history: a tensor array of the weights of all steps, or one for each mechanism; () if they are not kept.
        attention_state: the same as `alignments`.
    """

    cell_state: Any
    attention: Any
    time: Any
    alignments: Any
    alignment_history: Any
    attention_state: Any

    def clone(self, **kwargs: Any) -> AttentionWrapperState:
        """The state with other parts."""
        return self._replace(**kwargs)


class AttentionWrapper(RNNCell):
    """A cell that takes the attention of the step before as a further input.

    Args:
        cell: the cell.
        attention_mechanism: the mechanism, or a list of these.
        attention_layer_size: the size of the attention, made from output and context by a layer; one for each mechanism in a list; None for the
            context itself.
        alignment_history: keep the weights of all steps.
        cell_input_fn: a function of inputs and attention to the inputs of the cell; both side by side by default.
        output_attention: the outputs are the attention; otherwise those of the cell.
        initial_cell_state: the state of the cell in `zero_state`.
        name: the name of the layer.
        attention_layer: a layer, or one for each mechanism, in place of those made for `attention_layer_size`.

    Raises:
        InvalidArgumentError: something is of another kind.
    """

    def __init__(
        self,
        cell: Any,
        attention_mechanism: Any,
        attention_layer_size: Any = None,
        alignment_history: bool = False,
        cell_input_fn: Callable[[Any, Any], Any] | None = None,
        output_attention: bool = True,
        initial_cell_state: Any = None,
        name: str | None = None,
        attention_layer: Any = None,
    ) -> None:
        super().__init__(name=name)
        require_cell(cell, "AttentionWrapper")
        self._cell = cell
        self._is_multi = isinstance(attention_mechanism, list | tuple)
        self._mechanisms = tuple(attention_mechanism) if self._is_multi else (attention_mechanism,)
        for mechanism in self._mechanisms:
            if not isinstance(mechanism, AttentionMechanism):
                raise InvalidArgumentError(f"AttentionWrapper: required an AttentionMechanism or a list of these, got {brief(mechanism)}")
        self._layers, self._size = self._layers_of(attention_layer_size, attention_layer)
        self._join = cell_input_fn or (lambda inputs, attention: concat([inputs, attention], -1))
        self._output_attention = output_attention
        self._keeps_history = alignment_history
        self._initial_cell_state = initial_cell_state
        if initial_cell_state is not None:
            batch = size_of(nest.flatten(initial_cell_state)[-1], 0)
            self._initial_cell_state = nest.map_structure(
                lambda tensor: checked(tensor, batch, self._mechanisms, "initial_cell_state"), initial_cell_state
            )

    def _layers_of(self, sizes: Any, layers: Any) -> tuple[list[Any], int]:
        count = len(self._mechanisms)
        if sizes is not None and layers is not None:
            raise InvalidArgumentError("AttentionWrapper: required only one of attention_layer_size and attention_layer")
        layer_sizes = sizes if layers is None else layers
        if layer_sizes is None:
            return [None] * count, sum(mechanism.values.shape.as_list()[-1] for mechanism in self._mechanisms)
        listed = list(layer_sizes) if isinstance(layer_sizes, list | tuple) else [layer_sizes]
        if len(listed) != count:
            raise InvalidArgumentError(
                f"AttentionWrapper: required one attention layer (size) for each of {count} mechanisms, got {len(listed)}"
            )
        if layers is not None:
            return listed, sum(layer.units for layer in listed)
        return [Dense(size, use_bias=False, name="attention_layer") for size in listed], sum(listed)

    def _one_or_all(self, parts: Iterable[Any]) -> Any:
        listed = tuple(parts)
        return listed if self._is_multi else listed[0]

    @property
    def output_size(self) -> Any:
        """The size of the attention, or that of the cell's outputs."""
        return self._size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> Any:
        """The sizes of an `AttentionWrapperState`."""
        alignments = self._one_or_all(mechanism.alignments_size for mechanism in self._mechanisms)
        history = self._one_or_all(() for _ in self._mechanisms)
        return AttentionWrapperState(self._cell.state_size, self._size, Shape([]), alignments, history, alignments)

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The state before the first step: zeros, or the initial state of the cell."""
        with name_scope(f"{type(self).__name__}ZeroState"):
            initial = self._initial_cell_state
            state = self._cell.zero_state(batch_size, dtype) if initial is None else initial
            state = nest.map_structure(lambda tensor: checked(tensor, batch_size, self._mechanisms, "zero_state"), state)
            alignments = self._one_or_all(mechanism.initial_alignments(batch_size, dtype) for mechanism in self._mechanisms)
            history = self._one_or_all(TensorArray(dtype, 0, dynamic_size=True) if self._keeps_history else () for _ in self._mechanisms)
            return AttentionWrapperState(
                state, zeros(stack([batch_size, self._size]), dtype), zeros([], int32), alignments, history, alignments
            )

    def call(self, inputs: Any, state: Any) -> Any:
        """One step.

        Raises:
            InvalidArgumentError: the state is no `AttentionWrapperState`.
        """
        if not isinstance(state, AttentionWrapperState):
            raise InvalidArgumentError(f"AttentionWrapper: required an AttentionWrapperState as the state, got {brief(state)}")
        output, cell_state = self._cell(self._join(inputs, state.attention), state.cell_state)
        output = checked(output, size_of(output, 0), self._mechanisms, "AttentionWrapper")
        before = state.attention_state if self._is_multi else (state.attention_state,)
        histories = state.alignment_history if self._is_multi else (state.alignment_history,)
        attended = [attend(*arguments) for arguments in zip(self._mechanisms, [output] * len(before), before, self._layers, strict=True)]
        attention = concat([vector for vector, _ in attended], 1) if len(attended) > 1 else attended[0][0]
        alignments = self._one_or_all(weights for _, weights in attended)
        written = [
            history.write(state.time, weights) if self._keeps_history else ()
            for history, (_, weights) in zip(histories, attended, strict=True)
        ]
        after = AttentionWrapperState(cell_state, attention, state.time + 1, alignments, self._one_or_all(written), alignments)
        return attention if self._output_attention else output, after

    def _all_weights(self) -> list[Any]:
        return [*self._weights, *self._cell.variables]
