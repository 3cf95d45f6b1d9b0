"""`tf.nn.rnn_cell`: cells around other cells."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Any

from graphcore.errors import InvalidArgumentError
from graphcore.tf1 import nest, nn
from graphcore.tf1.arrays.layout import concat, reshape
from graphcore.tf1.arrays.slices import split
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import convert_to_tensor, device, name_scope
from graphcore.tf1.initializers import RandomUniform, Zeros
from graphcore.tf1.layers.arguments import as_activation
from graphcore.tf1.math.elementwise import matmul
from graphcore.tf1.nn.rnn.base import LSTMStateTuple, RNNCell, sizes_of
from graphcore.tf1.nn.rnn.cells import require_cell
from graphcore.tf1.random import random_uniform
from graphcore.tf1.variable_scopes.getting import get_variable
from graphcore.tf1.variable_scopes.opening import variable_scope
from graphcore.tf1.variable_scopes.scope import get_variable_scope


class MultiRNNCell(RNNCell):
    """Cells on top of each other: the output of one is the input of the next.

    Args:
        cells: the cells, the lowest first.
        state_is_tuple: the state is a tuple of theirs; otherwise all side by side.

    Raises:
        InvalidArgumentError: there is no cell, or something else than cells.
    """

    def __init__(self, cells: Sequence[Any], state_is_tuple: bool = True) -> None:
        super().__init__()
        if not isinstance(cells, list | tuple) or not cells:
            raise InvalidArgumentError(f"MultiRNNCell: required a list of at least one cell, got {cells!r}")
        for cell in cells:
            require_cell(cell, "MultiRNNCell")
        self._cells = list(cells)
        self._state_is_tuple = state_is_tuple
        if not state_is_tuple and any(nest.is_nested(cell.state_size) for cell in cells):
            raise InvalidArgumentError("MultiRNNCell: some cells have states that are tuples, which requires state_is_tuple=True")

    @property
    def state_size(self) -> Any:
        """The sizes of the states of the cells: a tuple, or with `state_is_tuple=False` their sum."""
        sizes = tuple([cell.state_size for cell in self._cells])
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        """The output size of the last cell."""
        return self._cells[-1].output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Zeros for the states of all cells."""
        with name_scope(f"{type(self).__name__}ZeroState"):
            if self._state_is_tuple:
                return tuple([cell.zero_state(batch_size, dtype) for cell in self._cells])
            return super().zero_state(batch_size, dtype)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step of all cells."""
        if self._state_is_tuple and not (nest.is_nested(state) and len(state) == len(self._cells)):
            raise InvalidArgumentError(f"Expected state to be a tuple of length {len(self._cells)}, but received: {state!r}")
        parts = state if self._state_is_tuple else split(state, [cell.state_size for cell in self._cells], 1)
        after = []
        for number, (cell, part) in enumerate(zip(self._cells, parts, strict=True)):
            with variable_scope(f"cell_{number}"):
                inputs, new = cell(inputs, part)
                after.append(new)
        return inputs, tuple(after) if self._state_is_tuple else concat(after, 1)

    def _all_weights(self) -> list[Any]:
        return [variable for cell in self._cells for variable in cell.variables]


class _Wrapper(RNNCell):
    """A cell around another one, with its sizes and variables."""

    def __init__(self, cell: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        require_cell(cell, type(self).__name__)
        self._cell = cell

    @property
    def state_size(self) -> Any:
        """The state size of the cell."""
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        """The output size of the cell."""
        return self._cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Zeros for the state."""
        with name_scope(f"{type(self).__name__}ZeroState"):
            return self._cell.zero_state(batch_size, dtype)

    def _all_weights(self) -> list[Any]:
        return [*self._weights, *self._cell.variables]


class _Transparent(_Wrapper):
    """A wrapper without variables and scope."""

    @property
    def wrapped_cell(self) -> Any:
        """The cell inside."""
        return self._cell

    def __call__(self, inputs: Any, state: Any, scope: Any = None, *args: Any, **kwargs: Any) -> Any:
        """One step of the cell inside."""
        return self._step(inputs, state, lambda *arguments: self._cell(*arguments, *args, scope=scope, **kwargs))

    def _step(self, inputs: Any, state: Any, cell: Callable[..., Any]) -> Any:
        return cell(inputs, state)


def _drops_memory(substate: Any) -> Any:
    """The parts of a state that dropout changes: not the memory of an LSTM cell."""
    return LSTMStateTuple(False, True) if isinstance(substate, LSTMStateTuple) else True


class DropoutWrapper(_Transparent):
    """Dropout of a cell's inputs, outputs and state.

    Args:
        cell: the cell.
        input_keep_prob, output_keep_prob, state_keep_prob: the probabilities that elements stay, numbers or scalar tensors.
        variational_recurrent: drop the same elements in each step of a run.
        input_size: the size of the inputs; required for variational dropout of inputs.
        dtype: the dtype of inputs, outputs and state; required for variational dropout.
        seed: the seed of the choices.
        dropout_state_filter_visitor: a function from a part of the state to True where dropout changes it; by default all but the memory of LSTM cells.
    """

    def __init__(
        self,
        cell: Any,
        input_keep_prob: Any = 1.0,
        output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0,
        variational_recurrent: bool = False,
        input_size: Any = None,
        dtype: object = None,
        seed: int | None = None,
        dropout_state_filter_visitor: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__(cell, dtype=dtype)
        self._keep = {"input": input_keep_prob, "state": state_keep_prob, "output": output_keep_prob}
        for what, keep in self._keep.items():
            if isinstance(keep, int | float) and not 0 <= keep <= 1:
                raise InvalidArgumentError(f"Parameter {what}_keep_prob must be between 0 and 1: {keep}")
        self._seed = seed
        self._filter = dropout_state_filter_visitor or _drops_memory
        self._noise: dict[str, list[Any]] = {}
        if variational_recurrent:
            if dtype is None:
                raise InvalidArgumentError("When variational_recurrent=True, dtype must be provided")
            if input_size is None and self._drops("input"):
                raise InvalidArgumentError("When variational_recurrent=True and input_keep_prob < 1.0, input_size must be provided")
            sizes = {"input": input_size, "state": cell.state_size, "output": cell.output_size}
            for what, size in sizes.items():
                if self._drops(what):
                    seeds = [self._seed_of(what, number) for number in range(len(nest.flatten(size)))]
                    shapes = [[1, *sizes_of(part)] for part in nest.flatten(size)]
                    self._noise[what] = [random_uniform(shape, seed=seed, dtype=dtype) for shape, seed in zip(shapes, seeds, strict=True)]

    def _drops(self, what: str) -> bool:
        keep = self._keep[what]
        return not isinstance(keep, int | float) or keep < 1

    def _seed_of(self, what: str, number: int) -> int | None:
        if self._seed is None:
            return None
        return int(hashlib.md5(f"{self._seed}{what}_{number}".encode(), usedforsecurity=False).hexdigest()[:8], 16) & 0x7FFFFFFF

    def _step(self, inputs: Any, state: Any, cell: Callable[..., Any]) -> Any:
        if self._drops("input"):
            inputs = self._dropped("input", inputs)
        output, state = cell(inputs, state)
        if self._drops("state"):
            state = self._dropped("state", state, self._filter)
        return self._dropped("output", output) if self._drops("output") else output, state

    def _dropped(self, what: str, values: Any, chosen: Callable[[Any], Any] = lambda _: True) -> Any:
        flags = _flags(values, chosen)
        dropped = []
        for number, (value, is_chosen) in enumerate(zip(nest.flatten(values), flags, strict=True)):
            dropped.append(self._one(what, number, value) if is_chosen else value)
        return nest.pack_sequence_as(values, dropped)

    def _one(self, what: str, number: int, value: Any) -> Any:
        keep = self._keep[what]
        if what not in self._noise:
            return nn.dropout(value, rate=1 - keep, seed=self._seed_of(what, number))
        keep = convert_to_tensor(keep, value.dtype.base)
        kept = value / keep * apply_one("Floor", [keep + self._noise[what][number]], None)
        kept.set_shape(value.shape)
        return kept


def _flags(values: Any, chosen: Callable[[Any], Any]) -> list[bool]:
    """True for each leaf that is chosen, by a function of parts of the structure."""
    choice = chosen(values)
    if nest.is_nested(choice):
        return [flag for value, is_chosen in zip(values, choice, strict=True) for flag in [bool(is_chosen)] * len(nest.flatten(value))]
    if not choice:
        return [False] * len(nest.flatten(values))
    if nest.is_nested(values):
        return [flag for value in (values.values() if isinstance(values, dict) else values) for flag in _flags(value, chosen)]
    return [True]


class ResidualWrapper(_Transparent):
    """A cell whose inputs are added to its outputs.

    Args:
        cell: the cell.
        residual_fn: a function from inputs and outputs to the outputs instead of the sum.
    """

    def __init__(self, cell: Any, residual_fn: Callable[[Any, Any], Any] | None = None) -> None:
        super().__init__(cell)
        self._residual = residual_fn or (lambda inputs, outputs: nest.map_structure(_sum, inputs, outputs))

    def _step(self, inputs: Any, state: Any, cell: Callable[..., Any]) -> Any:
        outputs, state = cell(inputs, state)
        return self._residual(inputs, outputs), state


def _sum(x: Any, y: Any) -> Any:
    if not x.shape.is_compatible_with(y.shape):
        raise InvalidArgumentError(f"ResidualWrapper: inputs and outputs must have the same shape, got {x.shape} and {y.shape}")
    return x + y


class DeviceWrapper(_Transparent):
    """A cell whose nodes request a device."""

    def __init__(self, cell: Any, device: Any) -> None:
        super().__init__(cell)
        self._device = device

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Zeros for the state, on the device."""
        with name_scope(f"{type(self).__name__}ZeroState"), device(self._device):
            return self._cell.zero_state(batch_size, dtype)

    def _step(self, inputs: Any, state: Any, cell: Callable[..., Any]) -> Any:
        with device(self._device):
            return cell(inputs, state)


class EmbeddingWrapper(_Wrapper):
    """A cell whose inputs are numbers of symbols; the wrapped cell sees their vectors.

    Args:
        cell: the cell.
        embedding_classes: the number of symbols.
        embedding_size: the size of their vectors.
        initializer: the initializer of the vectors; by default the scope's, or uniform values within sqrt(3) of 0.
        reuse: True to take existing variables of the scope.
    """

    def __init__(self, cell: Any, embedding_classes: int, embedding_size: int, initializer: Any = None, reuse: Any = None) -> None:
        super().__init__(cell, _reuse=reuse)
        if embedding_classes <= 0 or embedding_size <= 0:
            raise InvalidArgumentError(f"Both embedding_classes and embedding_size must be > 0: {embedding_classes}, {embedding_size}")
        self._table = embedding_classes, embedding_size
        self._initializer = initializer

    def call(self, inputs: Any, state: Any) -> Any:
        """One step. inputs: [batch] or [batch, 1], ints."""
        initializer = self._initializer or get_variable_scope().initializer or RandomUniform(-math.sqrt(3), math.sqrt(3))
        dtype = nest.flatten(state)[0].dtype.base
        embedding = get_variable("embedding", list(self._table), dtype, initializer)
        return self._cell(nn.embedding_lookup(embedding, reshape(inputs, [-1])), state)


class _Projection(_Wrapper):
    """A wrapper with a matrix and a bias."""

    def __init__(self, cell: Any, size: int, activation: Any, reuse: Any) -> None:
        super().__init__(cell, _reuse=reuse)
        if size < 1:
            raise InvalidArgumentError(f"{type(self).__name__}: required a size above 0, got {size}")
        self._size = size
        self._activation = as_activation(activation)

    def _projected(self, value: Any) -> Any:
        dtype = value.dtype.base
        kernel = get_variable("kernel", [value.shape.as_list()[1], self._size], dtype)
        projected = nn.bias_add(matmul(value, kernel), get_variable("bias", [self._size], dtype, Zeros()))
        return projected if self._activation is None else self._activation(projected)


class OutputProjectionWrapper(_Projection):
    """A cell whose outputs are multiplied by a matrix.

    Args:
        cell: the cell.
        output_size: the size of the outputs.
        activation: a function of them, None for none.
        reuse: True to take existing variables of the scope.
    """

    def __init__(self, cell: Any, output_size: int, activation: Any = None, reuse: Any = None) -> None:
        super().__init__(cell, output_size, activation, reuse)

    @property
    def output_size(self) -> Any:
        """The size of the outputs."""
        return self._size

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        output, state = self._cell(inputs, state)
        return self._projected(output), state


class InputProjectionWrapper(_Projection):
    """A cell whose inputs are multiplied by a matrix.

    Args:
        cell: the cell.
        num_proj: the size of the inputs that it sees.
        activation: a function of them, None for none.
        input_size: without effect.
        reuse: True to take existing variables of the scope.
    """

    def __init__(self, cell: Any, num_proj: int, activation: Any = None, input_size: Any = None, reuse: Any = None) -> None:
        del input_size
        super().__init__(cell, num_proj, activation, reuse)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        return self._cell(self._projected(inputs), state)
