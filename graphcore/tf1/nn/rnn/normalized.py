"""`tf.contrib.rnn`: an LSTM cell with layer normalization."""

from __future__ import annotations

from typing import Any

from graphcore.graph import Tensor
from graphcore.tf1 import nn
from graphcore.tf1.arrays.layout import concat
from graphcore.tf1.arrays.slices import split
from graphcore.tf1.initializers import Constant, Zeros
from graphcore.tf1.layers.arguments import as_activation
from graphcore.tf1.math.elementwise import matmul, sigmoid, tanh
from graphcore.tf1.nn.rnn.base import LSTMStateTuple, RNNCell
from graphcore.tf1.variable_scopes.getting import get_variable
from graphcore.tf1.variable_scopes.opening import variable_scope

LEAST_VARIANCE = 1e-12
"""The number added to variances of layers."""


class LayerNormBasicLSTMCell(RNNCell):
    """An LSTM cell that normalizes gates and memory over the units, with dropout of the candidate.

    Args:
        num_units: the number of units.
        forget_bias: is added to the forget gate.
        input_size: without effect.
        activation: a function.
        layer_norm: normalize; otherwise the gates have a bias.
        norm_gain, norm_shift: the initial scales and shifts of normalized values.
        dropout_keep_prob: the probability that an element of the candidate stays, a number or a scalar tensor.
        dropout_prob_seed: the seed of the choices.
        reuse: True to take existing variables of the scope.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: Any = None,
        activation: Any = tanh,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: Any = 1.0,
        dropout_prob_seed: int | None = None,
        reuse: Any = None,
    ) -> None:
        del input_size
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._activation = as_activation(activation)
        self._layer_norm = layer_norm
        self._norm = norm_gain, norm_shift
        self._keep_prob = dropout_keep_prob
        self._seed = dropout_prob_seed

    @property
    def state_size(self) -> Any:
        """The sizes of memory and output."""
        return LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> Any:
        """The number of units."""
        return self._num_units

    def call(self, inputs: Any, state: Any) -> Any:
        """One step. inputs: [batch, n] -> output: [batch, num_units], next state."""
        c, h = state
        both = concat([inputs, h], 1)
        dtype = both.dtype.base
        columns = 4 * self._num_units
        gates = matmul(both, get_variable("kernel", [both.shape.as_list()[1], columns], dtype))
        if not self._layer_norm:
            gates = nn.bias_add(gates, get_variable("bias", [columns], dtype, Zeros()))
        i, j, f, o = [
            self._normalized(gate, scope)
            for gate, scope in zip(split(gates, 4, 1), ("input", "transform", "forget", "output"), strict=True)
        ]
        candidate = self._activation(j)
        if not isinstance(self._keep_prob, int | float) or self._keep_prob < 1:
            candidate = nn.dropout(candidate, self._keep_prob, seed=self._seed)
        c = self._normalized(c * sigmoid(f + self._forget_bias) + sigmoid(i) * candidate, "state")
        h = self._activation(c) * sigmoid(o)
        return h, LSTMStateTuple(c, h)

    def _normalized(self, value: Any, scope: str) -> Tensor:
        if not self._layer_norm:
            unchanged: Tensor = value
            return unchanged
        size, dtype = value.shape.as_list()[-1:], value.dtype.base
        with variable_scope(scope):
            gamma, beta = [
                get_variable(name, size, dtype, Constant(start, dtype)) for name, start in zip(("gamma", "beta"), self._norm, strict=True)
            ]
        mean, variance = nn.moments(value, [1], keep_dims=True)
        return nn.batch_normalization(value, mean, variance, beta, gamma, LEAST_VARIANCE)
