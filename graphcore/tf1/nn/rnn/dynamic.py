"""`tf.nn.dynamic_rnn`: a recurrent cell along sequences, in a loop of the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphcore.api.loops import while_loop
from graphcore.dtypes import int32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1 import nest
from graphcore.tf1.arrays.layout import concat, identity, transpose
from graphcore.tf1.arrays.layout import shape as shape_of
from graphcore.tf1.arrays.ranges import range as numbers_to
from graphcore.tf1.arrays.slices import reverse, reverse_sequence
from graphcore.tf1.calls import apply_one
from graphcore.tf1.following import derived
from graphcore.tf1.framework import constant, convert_to_tensor, name_scope, zeros
from graphcore.tf1.math.elementwise import cast, maximum, minimum, where
from graphcore.tf1.math.reductions import reduce_all, reduce_max
from graphcore.tf1.nn.rnn.base import sizes_of
from graphcore.tf1.nn.rnn.cells import require_cell
from graphcore.tf1.tensor_array import TensorArray
from graphcore.tf1.variable_scopes.opening import variable_scope


def dynamic_rnn(
    cell: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> Any:
    """Run a recurrent cell along sequences of any length.

    Args:
        cell: the cell.
        inputs: [batch, time, n], or [time, batch, n] with `time_major`; or (nested) tuples of these.
        sequence_length: [batch], ints: the length of each sequence. Beyond it outputs are zeros, and the state stays; None for all of the same
            length.
        initial_state: the state before the first step; zeros of `dtype` if None.
        dtype: the dtype of the initial state.
        parallel_iterations: the number of steps that may overlap; 32 by default.
        swap_memory: without effect.
        time_major: the first dimension is time.
        scope: the variable scope, "rnn" by default.

    Returns:
        The outputs in the form of the cell's, each [batch, time, size] or [time, batch, size], and the state after the last step.

    Raises:
        InvalidArgumentError: neither an initial state nor a dtype is given, or the inputs do not fit.
    """
    del swap_memory
    require_cell(cell, "dynamic_rnn")

    def build() -> Any:
        with variable_scope(scope or "rnn"):
            flat = [convert_to_tensor(tensor) for tensor in nest.flatten(inputs)]
            steps = flat if time_major else [exchanged(tensor) for tensor in flat]
            batch = _batch_size(steps)
            state = _initial_state(cell, initial_state, batch, dtype)
            lengths = None if sequence_length is None else _lengths(sequence_length)
            outputs, state = _run(cell, nest.pack_sequence_as(inputs, steps), state, lengths, batch, dtype, parallel_iterations or 32)
            return outputs if time_major else nest.map_structure(exchanged, outputs), state

    return derived("dynamic_rnn", build, inputs, sequence_length, initial_state)


def exchanged(x: Tensor) -> Tensor:
    """A tensor with its first two dimensions, batch and time, exchanged."""
    rank = x.shape.rank
    if rank is not None and rank < 2:
        raise InvalidArgumentError(
            f"Expected input tensor {x.name} to have rank at least 2, but saw shape: {x.shape}", node=x.node.name, source=x.node.source
        )
    if rank is not None:
        return transpose(x, [1, 0, *range(2, rank)])
    order = concat([[1, 0], numbers_to(2, apply_one("Rank", [x], None))], 0)
    return transpose(x, order)


def _batch_size(steps: list[Tensor]) -> Any:
    """The number of sequences: an int if it is known, else a scalar tensor."""
    for tensor in steps:
        if tensor.shape.rank is not None and tensor.shape.as_list()[1] is not None:
            return tensor.shape.as_list()[1]
    return shape_of(steps[0])[1]


def _initial_state(cell: Any, initial: Any, batch: Any, dtype: Any) -> Any:
    if initial is not None:
        return nest.map_structure(convert_to_tensor, initial)
    if dtype is None:
        raise InvalidArgumentError("If there is no initial_state, you must give a dtype.")
    return cell.zero_state(batch, dtype)


def _lengths(sequence_length: Any) -> Tensor:
    lengths = cast(convert_to_tensor(sequence_length), int32)
    if lengths.shape.rank not in (None, 1):
        raise InvalidArgumentError(f"sequence_length must be a vector of length batch_size, but saw shape: {lengths.shape}")
    return identity(lengths, name="sequence_length")


def _run(cell: Any, steps: Any, state: Any, lengths: Any, batch: Any, dtype: Any, parallel: int) -> Any:
    flat = nest.flatten(steps)
    time_steps = shape_of(flat[0])[0]
    step_count = next(
        (tensor.shape.as_list()[0] for tensor in flat if tensor.shape.rank is not None and tensor.shape.as_list()[0] is not None), None
    )
    kinds = _output_dtypes(cell, dtype, state)
    sizes = [sizes_of(size) for size in nest.flatten(cell.output_size)]
    fixed = None if isinstance(batch, Tensor) else batch
    arrays = [
        TensorArray(kind, time_steps, element_shape=[fixed, *size], tensor_array_name="output")
        for kind, size in zip(kinds, sizes, strict=True)
    ]
    inputs = [TensorArray(tensor.dtype, 0).unstack(tensor) for tensor in flat]
    end = time_steps if lengths is None else minimum(time_steps, maximum(1, reduce_max(lengths)))

    def one_step(time: Any, written: Any, state: Any) -> Any:
        values = nest.pack_sequence_as(steps, [array.read(time) for array in inputs])
        output, new_state = cell(values, state)
        nest.assert_same_structure(cell.output_size, output, check_types=False)
        nest.assert_same_structure(state, new_state, check_types=False)
        outputs = nest.flatten(output)
        if lengths is not None:
            ended = time >= lengths
            outputs = [_chosen(ended, apply_one("ZerosLike", [tensor], None), tensor) for tensor in outputs]
            olds = zip(nest.flatten(state), nest.flatten(new_state), strict=True)
            new_state = nest.pack_sequence_as(state, [_chosen(ended, old, new) for old, new in olds])
        new_state = nest.pack_sequence_as(state, nest.flatten(new_state))
        return time + 1, [array.write(time, tensor) for array, tensor in zip(written, outputs, strict=True)], new_state

    start = (constant(0, int32, name="time"), arrays, state)
    _, arrays, state = while_loop(lambda time, *_: time < end, one_step, start, parallel_iterations=parallel)
    outputs = [array.stack() for array in arrays]
    for output, size in zip(outputs, sizes, strict=True):
        output.set_shape([step_count, fixed, *size])
    return nest.pack_sequence_as(cell.output_size, outputs), state


def _output_dtypes(cell: Any, dtype: Any, state: Any) -> list[Any]:
    count = len(nest.flatten(cell.output_size))
    if nest.is_nested(dtype) and len(nest.flatten(dtype)) == count:
        return nest.flatten(dtype)
    kinds = {tensor.dtype.base for tensor in nest.flatten(state)}
    if dtype is None and len(kinds) != 1:
        names = ", ".join(sorted(kind.text for kind in kinds))
        raise InvalidArgumentError(f"State has tensors of different dtypes ({names}). Unable to infer the dtype of the outputs; give it")
    return [kinds.pop() if dtype is None else dtype] * count


def _chosen(ended: Tensor, old: Any, new: Any) -> Any:
    """The old rows of sequences that have ended, and the new ones of the others."""
    if new.shape.rank == 0:
        return new
    value = where(ended, old, new)
    value.set_shape(old.shape)
    return value


def bidirectional_dynamic_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> Any:
    """Run one cell forwards along sequences, and another one backwards; see `dynamic_rnn`.

    Returns:
        The outputs of both, those of the second in the order of the inputs, and the final states of both.
    """
    time, batch = (0, 1) if time_major else (1, 0)

    def turned(x: Any) -> Any:
        return reverse(x, [time]) if sequence_length is None else reverse_sequence(x, sequence_length, time, batch)

    def build() -> Any:
        rest = (dtype, parallel_iterations, swap_memory, time_major)
        with variable_scope(scope or "bidirectional_rnn"):
            with variable_scope("fw") as inner:
                forward, state_fw = dynamic_rnn(cell_fw, inputs, sequence_length, initial_state_fw, *rest, scope=inner)
            with variable_scope("bw") as inner:
                with name_scope("ReverseInput"):
                    backwards = nest.map_structure(turned, inputs)
                reversed_outputs, state_bw = dynamic_rnn(cell_bw, backwards, sequence_length, initial_state_bw, *rest, scope=inner)
        return (forward, nest.map_structure(turned, reversed_outputs)), (state_fw, state_bw)

    return derived("bidirectional_dynamic_rnn", build, inputs, sequence_length, initial_state_fw, initial_state_bw)


def stack_bidirectional_dynamic_rnn(
    cells_fw: Any,
    cells_bw: Any,
    inputs: Any,
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    parallel_iterations: int | None = None,
    time_major: bool = False,
    scope: Any = None,
    swap_memory: bool = False,
) -> Any:
    """Several layers of `bidirectional_dynamic_rnn`, each on the outputs of both cells below.

    Args:
        cells_fw, cells_bw: one cell for each layer.
        inputs, dtype, sequence_length, parallel_iterations, time_major, swap_memory: see `dynamic_rnn`.
        initial_states_fw, initial_states_bw: one state for each layer.
        scope: the variable scope, "stack_bidirectional_rnn" by default.

    Returns:
        The outputs of the last layer, and the final states of the cells of both kinds, as tuples.

    Raises:
        InvalidArgumentError: there are not as many cells of both kinds.
    """
    if not cells_fw or len(cells_fw) != len(cells_bw):
        raise InvalidArgumentError(f"required as many forward as backward cells, at least one, got {len(cells_fw)} and {len(cells_bw)}")
    count = len(cells_fw)
    starts = initial_states_fw or [None] * count, initial_states_bw or [None] * count
    states: list[Any] = []
    rest = (parallel_iterations, swap_memory, time_major)
    with variable_scope(scope or "stack_bidirectional_rnn"):
        for number, (forward, backward, start_fw, start_bw) in enumerate(zip(cells_fw, cells_bw, *starts, strict=True)):
            with variable_scope(f"cell_{number}"):
                outputs, state_pair = bidirectional_dynamic_rnn(
                    forward, backward, inputs, sequence_length, start_fw, start_bw, dtype, *rest
                )
                inputs = concat(outputs, 2)
                states.append(state_pair)
    return inputs, tuple([forward_state for forward_state, _ in states]), tuple([backward_state for _, backward_state in states])


def raw_rnn(
    cell: Any,
    loop_fn: Callable[..., Any],
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    scope: Any = None,
) -> Any:
    """Run a recurrent cell on inputs that a function makes from the outputs.

    Args:
        cell: the cell.
        loop_fn: takes the time, the output and state of the cell, and the loop state, which are None at first. It returns which sequences have
            ended ([batch], bool), the next input, the next state, the value to emit (or None for the output), and the next loop state or None.
            At first the emitted value only tells shapes and dtypes.
        parallel_iterations: the number of steps that may overlap; 32 by default.
        swap_memory: without effect.
        scope: the variable scope, "rnn" by default.

    Returns:
        The emitted values as tensor arrays, the state after the last step, and the last loop state.
    """
    del swap_memory
    require_cell(cell, "raw_rnn")

    def build() -> Any:
        with variable_scope(scope or "rnn"):
            return _run_raw(cell, loop_fn, parallel_iterations or 32)

    return derived("raw_rnn", build)


def _run_raw(cell: Any, loop_fn: Callable[..., Any], parallel: int) -> Any:
    time = constant(0, int32, name="time")
    finished, value, state, emitted, first_loop_state = loop_fn(time, None, None, None)
    finished, state = convert_to_tensor(finished), nest.map_structure(convert_to_tensor, state)
    batch = _batch_of(nest.flatten(value)[0])
    fixed = None if isinstance(batch, Tensor) else batch
    if emitted is None:
        form = cell.output_size
        kinds = [(sizes_of(size), nest.flatten(state)[0].dtype.base) for size in nest.flatten(form)]
    else:
        form = emitted
        kinds = [(sizes_of(tensor.shape), tensor.dtype.base) for tensor in map(convert_to_tensor, nest.flatten(emitted))]
    arrays = [TensorArray(kind, 0, dynamic_size=True, element_shape=[fixed, *size]) for size, kind in kinds]
    nothing = [zeros([batch, *size], kind) for size, kind in kinds]

    def one_step(time: Any, finished: Any, value: Any, arrays: Any, state: Any, loop_state: Any) -> Any:
        output, cell_state = cell(value, state)
        ended, following, next_state, emit, next_loop_state = loop_fn(time + 1, output, cell_state, loop_state)
        emits = nest.flatten(output if emit is None else emit)
        emits = [_chosen(finished, zero, convert_to_tensor(value)) for zero, value in zip(nothing, emits, strict=True)]
        states = zip(nest.flatten(state), nest.flatten(next_state), strict=True)
        next_state = nest.pack_sequence_as(state, [_chosen(finished, old, new) for old, new in states])
        written = [array.write(time, value) for array, value in zip(arrays, emits, strict=True)]
        either = apply_one("LogicalOr", [finished, ended], None)
        return time + 1, either, following, written, next_state, loop_state if next_loop_state is None else next_loop_state

    loop_state = constant(0, int32) if first_loop_state is None else first_loop_state
    results = while_loop(
        lambda _, finished, *__: apply_one("LogicalNot", [reduce_all(finished)], None),
        one_step,
        (time, finished, value, arrays, state, loop_state),
        parallel_iterations=parallel,
    )
    arrays, state, loop_state = results[-3:]
    return nest.pack_sequence_as(form, arrays), state, None if first_loop_state is None else loop_state


def _batch_of(value: Any) -> Any:
    static_size = value.shape.as_list()[0]
    return shape_of(value)[0] if static_size is None else static_size
