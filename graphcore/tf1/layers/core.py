"""`tf.layers`: dense layers, dropout and flattening."""

from __future__ import annotations

import math
from typing import Any

from graphcore.api.branches import cond
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.graph.shapes.constant_values import constant_value
from graphcore.shapes import Shape, as_shape
from graphcore.tf1 import nn
from graphcore.tf1.arrays.layout import identity, reshape
from graphcore.tf1.arrays.layout import shape as shape_of
from graphcore.tf1.arrays.matrices import tensordot
from graphcore.tf1.initializers import Zeros
from graphcore.tf1.layers.arguments import as_activation
from graphcore.tf1.layers.base import InputSpec, Layer, last_size
from graphcore.tf1.math.elementwise import matmul


def as_flag(training: Any) -> Any:
    """True or False if `training` is known while the graph is built, else the tensor."""
    if not isinstance(training, Tensor):
        return bool(training)
    constant_flag = constant_value(training)
    return training if constant_flag is None else bool(constant_flag)


class Dense(Layer):
    """A product with a matrix, plus a bias, through an activation. x: [..., n] -> y: [..., units].

    Args:
        units: the number of outputs.
        activation: a function of the result, None for none.
        use_bias: add a bias.
        kernel_initializer, bias_initializer: initializers.
        kernel_regularizer, bias_regularizer, activity_regularizer: functions to a loss, None for none.
        kernel_constraint, bias_constraint: functions from the value after an optimizer's step to the value to keep.
        trainable, name, kwargs: see `Layer`.

    Attributes:
        kernel: the matrix, [n, units].
        bias: the bias, [units]; None without one.
    """

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = Zeros(),  # noqa: B008 - it has no state
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable=trainable, name=name, activity_regularizer=activity_regularizer, **kwargs)
        self.units = int(units)
        self.activation = as_activation(activation)
        self.use_bias = use_bias
        self.kernel_initializer, self.bias_initializer = kernel_initializer, bias_initializer
        self.kernel_regularizer, self.bias_regularizer = kernel_regularizer, bias_regularizer
        self.kernel_constraint, self.bias_constraint = kernel_constraint, bias_constraint
        self.kernel: Any = None
        self.bias: Any = None
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: Any) -> None:
        """Make kernel and bias."""
        size = last_size(input_shape, "Dense")
        self.input_spec = InputSpec(min_ndim=2, axes={-1: size})
        self.kernel = self.add_weight(
            "kernel", [size, self.units], None, self.kernel_initializer, self.kernel_regularizer, True, self.kernel_constraint
        )
        if self.use_bias:
            self.bias = self.add_weight(
                "bias", [self.units], None, self.bias_initializer, self.bias_regularizer, True, self.bias_constraint
            )
        self.built = True

    def call(self, inputs: Any) -> Any:
        """The outputs. inputs: [..., n] -> y: [..., units]."""
        rank = inputs.shape.rank
        if rank is not None and rank > 2:
            outputs = tensordot(inputs, self.kernel, [[rank - 1], [0]])
            outputs.set_shape(self.compute_output_shape(inputs.shape))
        else:
            outputs = matmul(inputs, self.kernel)
        if self.use_bias:
            outputs = nn.bias_add(outputs, self.bias)
        return outputs if self.activation is None else self.activation(outputs)

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """[..., units] for [..., n]."""
        return Shape([*as_shape(input_shape).as_list()[:-1], self.units])


class Dropout(Layer):
    """Sets a part of the elements to 0 at random while training, and scales the others.

    Args:
        rate: the probability that an element is set to 0.
        noise_shape: the shape of the choices, which is broadcast to that of the inputs.
        seed: the seed of the choices.
        name, kwargs: see `Layer`.
    """

    def __init__(self, rate: Any = 0.5, noise_shape: Any = None, seed: int | None = None, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def call(self, inputs: Any, training: Any = False) -> Any:
        """The outputs, of the shape of the inputs; `training` is a bool or a tensor."""
        flag = as_flag(training)
        if flag is False:
            return identity(inputs)
        if flag is True:
            return self._dropped(inputs)
        return cond(flag, lambda: self._dropped(inputs), lambda: identity(inputs))

    def _dropped(self, inputs: Any) -> Tensor:
        return nn.dropout(inputs, noise_shape=self.noise_shape, seed=self.seed, rate=self.rate)

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the inputs."""
        return as_shape(input_shape)


class Flatten(Layer):
    """Flattens all dimensions but the first. x: [b, ...] -> y: [b, n].

    Args:
        data_format: "channels_last", the order of dimensions; None for the same.
        name, kwargs: see `Layer`.
    """

    def __init__(self, data_format: str | None = None, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        if data_format not in (None, "channels_last"):
            raise InvalidArgumentError(f"Flatten: required channels_last as data_format, got {data_format!r}")
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs: Any) -> Any:
        """The rows. inputs: [b, ...] -> y: [b, n]."""
        outputs = reshape(inputs, [inputs.shape.as_list()[0] or shape_of(inputs)[0], -1])
        outputs.set_shape(self.compute_output_shape(inputs.shape))
        return outputs

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """[b, n] for [b, ...]."""
        batch, *rest = as_shape(input_shape).as_list()
        known_sizes = [size for size in rest if size is not None]
        return Shape([batch, math.prod(known_sizes) if len(known_sizes) == len(rest) else None])
