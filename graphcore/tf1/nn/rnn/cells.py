"""`tf.nn.rnn_cell`: recurrent cells."""

from __future__ import annotations

from typing import Any

from graphcore.errors import InvalidArgumentError, UnimplementedError
from graphcore.graph import Tensor
from graphcore.tf1 import nn
from graphcore.tf1.arrays.layout import concat
from graphcore.tf1.arrays.slices import split
from graphcore.tf1.initializers import Constant, Zeros
from graphcore.tf1.layers.arguments import as_activation, as_initializer
from graphcore.tf1.layers.base import InputSpec, last_size
from graphcore.tf1.math.clipping import clip_by_value
from graphcore.tf1.math.elementwise import matmul, sigmoid, tanh
from graphcore.tf1.nn.rnn.base import LayerRNNCell, LSTMStateTuple


class _Units(LayerRNNCell):
    """A cell with a number of units and an activation, tanh by default."""

    def __init__(self, num_units: int, activation: Any, reuse: Any, name: str | None, dtype: object, **kwargs: Any) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        self.input_spec = InputSpec(ndim=2)
        self._num_units = num_units
        self._activation = as_activation(activation) if activation else tanh

    @property
    def state_size(self) -> Any:
        """The number of units."""
        return self._num_units

    @property
    def output_size(self) -> Any:
        """The number of units."""
        return self._num_units

    def _add_linear(self, name: str, rows: int, columns: int, initializer: Any = None, bias_initializer: Any = None) -> tuple[Any, Any]:
        """Kernel and bias called `name/kernel` and `name/bias`."""
        kernel = self.add_variable(f"{name}kernel", [rows, columns], initializer=initializer)
        return kernel, self.add_variable(f"{name}bias", [columns], initializer=bias_initializer or Zeros())


def _linear(values: list[Any], kernel: Any, bias: Any) -> Tensor:
    return nn.bias_add(matmul(concat(values, 1), kernel), bias)


class BasicRNNCell(_Units):
    """`output = next state = activation(W * input + U * state + b)`.

    Args:
        num_units: the number of units.
        activation: a function, tanh by default.
        reuse: True to take existing variables of the scope.
        name, dtype, kwargs: see `gc.layers.Layer`.
    """

    def __init__(
        self, num_units: int, activation: Any = None, reuse: Any = None, name: str | None = None, dtype: object = None, **kwargs: Any
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, **kwargs)

    def build(self, inputs_shape: Any) -> None:
        """Make kernel and bias."""
        self._kernel, self._bias = self._add_linear("", last_size(inputs_shape, "BasicRNNCell") + self._num_units, self._num_units)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step. inputs: [batch, n], state: [batch, num_units] -> output, next state: [batch, num_units]."""
        output = self._activation(_linear([inputs, state], self._kernel, self._bias))
        return output, output


class GRUCell(_Units):
    """A gated recurrent unit.

    Args:
        num_units: the number of units.
        activation: the function of the candidate, tanh by default.
        reuse: True to take existing variables of the scope.
        kernel_initializer: the initializer of both kernels.
        bias_initializer: the initializer of both biases; by default those of the gates begin as 1, the others as 0.
        name, dtype, kwargs: see `gc.layers.Layer`.
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: object = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, **kwargs)
        self._kernel_initializer = as_initializer(kernel_initializer)
        self._bias_initializer = as_initializer(bias_initializer)

    def build(self, inputs_shape: Any) -> None:
        """Make kernels and biases."""
        rows = last_size(inputs_shape, "GRUCell") + self._num_units
        initializer, bias = self._kernel_initializer, self._bias_initializer
        self._gates = self._add_linear("gates/", rows, 2 * self._num_units, initializer, bias or Constant(1.0, self.dtype or "float32"))
        self._candidate = self._add_linear("candidate/", rows, self._num_units, initializer, bias)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step. inputs: [batch, n], state: [batch, num_units] -> output, next state: [batch, num_units]."""
        r, u = split(sigmoid(_linear([inputs, state], *self._gates)), 2, 1)
        c = self._activation(_linear([inputs, r * state], *self._candidate))
        new = u * state + (1 - u) * c
        return new, new


class BasicLSTMCell(_Units):
    """An LSTM cell without peepholes.

    Args:
        num_units: the number of units.
        forget_bias: is added to the forget gate.
        state_is_tuple: the state is an `LSTMStateTuple`; otherwise [batch, 2 * num_units].
        activation: a function, tanh by default.
        reuse: True to take existing variables of the scope.
        name, dtype, kwargs: see `gc.layers.Layer`.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: object = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, **kwargs)
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple

    @property
    def state_size(self) -> Any:
        """The sizes of memory and output."""
        return LSTMStateTuple(self._num_units, self._num_units) if self._state_is_tuple else 2 * self._num_units

    def build(self, inputs_shape: Any) -> None:
        """Make kernel and bias."""
        self._kernel, self._bias = self._add_linear("", last_size(inputs_shape, "BasicLSTMCell") + self._num_units, 4 * self._num_units)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step. inputs: [batch, n] -> output: [batch, num_units], next state."""
        c, h = state if self._state_is_tuple else split(state, 2, 1)
        i, j, f, o = split(_linear([inputs, h], self._kernel, self._bias), 4, 1)
        new_c = c * sigmoid(f + self._forget_bias) + sigmoid(i) * self._activation(j)
        new_h = self._activation(new_c) * sigmoid(o)
        return new_h, LSTMStateTuple(new_c, new_h) if self._state_is_tuple else concat([new_c, new_h], 1)


class LSTMCell(_Units):
    """An LSTM cell, with peepholes, clipping and a projection of the output on request.

    Args:
        num_units: the number of units.
        use_peepholes: let the gates see the memory.
        cell_clip: the largest absolute value of the memory, None for any.
        initializer: the initializer of the weights.
        num_proj: the size of the projected output, None for no projection.
        proj_clip: the largest absolute value of the projected output, None for any.
        num_unit_shards, num_proj_shards: None or 1.
        forget_bias: is added to the forget gate.
        state_is_tuple: the state is an `LSTMStateTuple`; otherwise both parts side by side.
        activation: a function, tanh by default.
        reuse: True to take existing variables of the scope.
        name, dtype, kwargs: see `gc.layers.Layer`.

    Raises:
        UnimplementedError: weights are to be divided into several variables.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int | None = None,
        num_proj_shards: int | None = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: object = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, **kwargs)
        if (num_unit_shards or 1) > 1 or (num_proj_shards or 1) > 1:
            raise UnimplementedError("LSTMCell: shards divide variables among servers, of which there are none here; required None")
        self._use_peepholes = use_peepholes
        self._cell_clip = cell_clip
        self._initializer = as_initializer(initializer)
        self._num_proj = num_proj
        self._proj_clip = proj_clip
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._peepholes: list[Any] = [None] * 3

    @property
    def state_size(self) -> Any:
        """The sizes of memory and output."""
        sizes = LSTMStateTuple(self._num_units, self.output_size)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        """The size of the output, after the projection."""
        return self._num_proj or self._num_units

    def build(self, inputs_shape: Any) -> None:
        """Make the variables."""
        rows = last_size(inputs_shape, "LSTMCell") + self.output_size
        self._kernel, self._bias = self._add_linear("", rows, 4 * self._num_units, self._initializer)
        if self._use_peepholes:
            self._peepholes = [
                self.add_variable(f"w_{gate}_diag", [self._num_units], initializer=self._initializer) for gate in ("f", "i", "o")
            ]
        if self._num_proj is not None:
            shape = [self._num_units, self._num_proj]
            self._projection = self.add_variable("projection/kernel", shape, initializer=self._initializer)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step. inputs: [batch, n] -> output: [batch, size], next state."""
        c, h = state if self._state_is_tuple else split(state, [self._num_units, self.output_size], 1)
        i, j, f, o = split(_linear([inputs, h], self._kernel, self._bias), 4, 1)
        w_f, w_i, w_o = self._peepholes
        f = f + self._forget_bias
        if self._use_peepholes:
            f, i = f + w_f * c, i + w_i * c
        c = sigmoid(f) * c + sigmoid(i) * self._activation(j)
        if self._cell_clip is not None:
            c = clip_by_value(c, -self._cell_clip, self._cell_clip)
        h = sigmoid(o + w_o * c if self._use_peepholes else o) * self._activation(c)
        if self._num_proj is not None:
            h = matmul(h, self._projection)
            if self._proj_clip is not None:
                h = clip_by_value(h, -self._proj_clip, self._proj_clip)
        return h, LSTMStateTuple(c, h) if self._state_is_tuple else concat([c, h], 1)


def require_cell(cell: Any, what: str) -> None:
    """Require a recurrent cell.

    Raises:
        InvalidArgumentError: something else.
    """
    if not all(hasattr(cell, name) for name in ("output_size", "state_size", "zero_state")) or not callable(cell):
        raise InvalidArgumentError(f"{what}: required an RNNCell, got {cell!r}")
