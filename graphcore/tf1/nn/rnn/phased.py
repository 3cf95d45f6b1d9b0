"""The cell with a gate that opens and closes in time."""

from __future__ import annotations

import math
from typing import Any

from graphcore.dtypes import float32
from graphcore.graph import Tensor
from graphcore.tf1.arrays.layout import concat, stop_gradient
from graphcore.tf1.arrays.slices import split
from graphcore.tf1.framework import convert_to_tensor
from graphcore.tf1.initializers import Constant, Zeros
from graphcore.tf1.math.elementwise import cast, exp, matmul, mod, sigmoid, tanh, where
from graphcore.tf1.nn import bias_add
from graphcore.tf1.nn.rnn.base import LSTMStateTuple, RNNCell
from graphcore.tf1.random import random_uniform
from graphcore.tf1.variable_scopes.getting import get_variable
from graphcore.tf1.variable_scopes.opening import variable_scope


class PhasedLSTMCell(RNNCell):
    """An LSTM whose units change only in a part of a period of their own (Neil et al., 2016). Its inputs are pairs of times and values.

    Args:
        num_units: the number of units.
        use_peepholes: let the gates see the memory.
        leak: the part of changes that passes outside of the open part.
        ratio_on: the open part of a period, at first.
        trainable_ratio_on: train it.
        period_init_min, period_init_max: the limits of the periods, at first.
        reuse: True to take existing variables.
        name: the name of the layer.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        leak: float = 0.001,
        ratio_on: float = 0.1,
        trainable_ratio_on: bool = True,
        period_init_min: float = 1.0,
        period_init_max: float = 1000.0,
        reuse: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(_reuse=reuse, name=name)
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._leak = leak
        self._ratio_on, self._trainable_ratio_on = ratio_on, trainable_ratio_on
        self._periods = period_init_min, period_init_max

    @property
    def state_size(self) -> LSTMStateTuple:
        """The number of units, for both parts."""
        return LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        """The number of units."""
        return self._num_units

    def call(self, inputs: Any, state: Any) -> Any:
        """One step. inputs: times [batch, 1] and values [batch, n], state: c and h, [batch, units] each -> h, state."""
        c, h = state
        time, x = inputs
        with variable_scope("mask_gates"):
            gates = sigmoid(_linear([x, h, c] if self._use_peepholes else [x, h], 2 * self._num_units))
        input_gate, forget_gate = split(gates, 2, 1)
        with variable_scope("new_input"):
            new_input = tanh(_linear([x, h], self._num_units))
        new_c = c * forget_gate + input_gate * new_input
        with variable_scope("output_gate"):
            output_gate = sigmoid(_linear([x, h, new_c] if self._use_peepholes else [x, h], self._num_units))
        new_h = tanh(new_c) * output_gate
        k = self._openness(convert_to_tensor(time))
        new_c, new_h = k * new_c + (1.0 - k) * c, k * new_h + (1.0 - k) * h
        return new_h, LSTMStateTuple(new_c, new_h)

    def _openness(self, time: Tensor) -> Tensor:
        """The openness of the gate of each unit. -> [batch, units]"""
        least, most = self._periods
        shape = [self._num_units]

        def periods(sizes: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
            del partition_info
            return exp(random_uniform(sizes, math.log(least), math.log(most), dtype or float32))

        period = get_variable("period", shape, initializer=periods)
        phase = get_variable("phase", initializer=lambda: random_uniform(shape) * period.initial_value)
        ratio = get_variable("ratio_on", shape, initializer=Constant(self._ratio_on), trainable=self._trainable_ratio_on)
        whole = cast(period.as_tensor(), time.dtype)
        shifted = time - cast(phase.as_tensor(), time.dtype)
        cycle = cast((stop_gradient(mod(shifted, whole) - shifted) + shifted) / whole, float32)
        rising = 2.0 * cycle / ratio
        opened = where(cycle < ratio, 2.0 - rising, self._leak * cycle)
        return where(cycle < 0.5 * ratio, rising, opened)


def _linear(values: list[Any], size: int) -> Tensor:
    """A linear function of values side by side, with variables `kernel` and `bias` of the scope."""
    joined = concat(values, 1)
    width = joined.shape.as_list()[1]
    kernel = get_variable("kernel", [width, size], joined.dtype.base)
    bias = get_variable("bias", [size], joined.dtype.base, initializer=Zeros())
    return bias_add(matmul(joined, kernel), bias)
