"""`tf.nn.static_rnn`: a recurrent cell along a list of inputs, without a loop."""

from __future__ import annotations

from typing import Any

from graphcore.dtypes import int32
from graphcore.errors import InvalidArgumentError
from graphcore.tf1 import nest
from graphcore.tf1.arrays.layout import concat, identity, stack
from graphcore.tf1.arrays.layout import shape as shape_of
from graphcore.tf1.arrays.slices import reverse_sequence, unstack
from graphcore.tf1.calls import apply_one
from graphcore.tf1.following import derived
from graphcore.tf1.framework import convert_to_tensor
from graphcore.tf1.math.elementwise import cast, where
from graphcore.tf1.nn.rnn.cells import require_cell
from graphcore.tf1.variable_scopes.opening import variable_scope


def static_rnn(
    cell: Any, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None
) -> tuple[list[Any], Any]:
    """Run a recurrent cell along a list of inputs; each step has nodes of its own.

    Args:
        cell: the cell.
        inputs: a list of the inputs of the steps: [batch, n], or (nested) tuples of these.
        initial_state: the state before the first step; zeros of `dtype` if None.
        dtype: the dtype of the initial state.
        sequence_length: [batch], ints: the length of each sequence. Beyond it outputs are zeros, and the state stays.
        scope: the variable scope, "rnn" by default.

    Returns:
        The outputs of the steps, and the state after the last one.

    Raises:
        InvalidArgumentError: `inputs` is no list, or empty; or neither an initial state nor a dtype is given.
    """
    require_cell(cell, "static_rnn")
    if not isinstance(inputs, list | tuple) or not inputs:
        raise InvalidArgumentError(f"static_rnn: required a list of at least one input, got {inputs!r}")

    def build() -> Any:
        with variable_scope(scope or "rnn") as opened:
            state = initial_state
            if state is None:
                if dtype is None:
                    raise InvalidArgumentError("If no initial_state is provided, dtype must be specified")
                first = convert_to_tensor(nest.flatten(inputs[0])[0])
                static_size = first.shape.as_list()[0]
                state = cell.zero_state(shape_of(first)[0] if static_size is None else static_size, dtype)
            lengths = None if sequence_length is None else identity(cast(convert_to_tensor(sequence_length), int32), name="sequence_length")
            outputs = []
            for time, value in enumerate(inputs):
                if time:
                    opened.reuse_variables()
                output, new_state = cell(value, state)
                if lengths is not None:
                    ended = lengths <= time
                    output = nest.map_structure(
                        lambda tensor, ended=ended: where(ended, apply_one("ZerosLike", [tensor], None), tensor), output
                    )
                    new_state = nest.map_structure(lambda old, new, ended=ended: where(ended, old, new), state, new_state)
                outputs.append(output)
                state = new_state
            return outputs, state

    result: tuple[list[Any], Any] = derived("static_rnn", build, list(inputs), initial_state, sequence_length)
    return result


def static_bidirectional_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any, Any]:
    """Run one cell forwards along a list of inputs, and another one backwards; see `static_rnn`.

    Returns:
        For each step the outputs of both cells side by side, and the final states of both.
    """

    def build() -> Any:
        with variable_scope(scope or "bidirectional_rnn"):
            with variable_scope("fw") as inner:
                forward, state_fw = static_rnn(cell_fw, inputs, initial_state_fw, dtype, sequence_length, inner)
            with variable_scope("bw") as inner:
                turned = _turned(list(inputs), sequence_length)
                reversed_outputs, state_bw = static_rnn(cell_bw, turned, initial_state_bw, dtype, sequence_length, inner)
                backward = _turned(reversed_outputs, sequence_length)
            both = zip(forward, backward, strict=True)
            return [nest.map_structure(lambda fw, bw: concat([fw, bw], 1), *pair) for pair in both], state_fw, state_bw

    result: tuple[list[Any], Any, Any] = derived(
        "static_bidirectional_rnn", build, list(inputs), initial_state_fw, initial_state_bw, sequence_length
    )
    return result


def _turned(steps: list[Any], lengths: Any) -> list[Any]:
    """The steps in reverse order; each sequence is reversed within its length."""
    if lengths is None:
        return steps[::-1]
    flat = [nest.flatten(step) for step in steps]
    columns = [unstack(reverse_sequence(stack(list(column)), lengths, 0, 1), len(steps)) for column in zip(*flat, strict=True)]
    return [nest.pack_sequence_as(step, list(leaves)) for step, leaves in zip(steps, zip(*columns, strict=True), strict=True)]
