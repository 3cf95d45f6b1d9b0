"""`tf.layers`: batch normalization."""

from __future__ import annotations

from typing import Any

from graphcore.api.branches import cond
from graphcore.dtypes import float16, float32
from graphcore.errors import InvalidArgumentError, UnimplementedError
from graphcore.graph import Tensor
from graphcore.shapes import Shape, as_shape
from graphcore.tf1 import nn
from graphcore.tf1.arrays.layout import reshape
from graphcore.tf1.framework import convert_to_tensor, name_scope
from graphcore.tf1.initializers import Ones, Zeros
from graphcore.tf1.layers.base import InputSpec, Layer, last_size
from graphcore.tf1.layers.core import as_flag
from graphcore.tf1.math.elementwise import cast
from graphcore.tf1.train.moving import move


class BatchNormalization(Layer):
    """Subtracts the mean of a channel in the batch, divides by its deviation, scales and shifts.

    While training, moving averages of mean and variance are kept, by ops in the collection of update ops, which a training step has to run.
    Otherwise they take the place of mean and variance of the batch.

    Args:
        axis: the dimension of the channels, or a list with it.
        momentum: the weight of the former value in moving averages.
        epsilon: is added to variances.
        center: shift by a variable `beta`.
        scale: scale by a variable `gamma`.
        beta_initializer, gamma_initializer, moving_mean_initializer, moving_variance_initializer: initializers.
        beta_regularizer, gamma_regularizer: functions to a loss, None for none.
        beta_constraint, gamma_constraint: functions from the value after an optimizer's step to the value to keep.
        renorm: False.
        renorm_clipping, renorm_momentum: without effect without `renorm`.
        fused: one op for images; None for that where it can be.
        trainable, name, kwargs: see `Layer`.
        virtual_batch_size, adjustment: None.

    Raises:
        UnimplementedError: renorm, virtual batches or an adjustment are asked for.
    """

    def __init__(
        self,
        axis: Any = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = Zeros(),  # noqa: B008 - it has no state
        gamma_initializer: Any = Ones(),  # noqa: B008 - it has no state
        moving_mean_initializer: Any = Zeros(),  # noqa: B008 - it has no state
        moving_variance_initializer: Any = Ones(),  # noqa: B008 - it has no state
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        renorm: bool = False,
        renorm_clipping: Any = None,
        renorm_momentum: float = 0.99,
        fused: bool | None = None,
        trainable: bool = True,
        virtual_batch_size: int | None = None,
        adjustment: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        del renorm_clipping, renorm_momentum
        for what, setting in (("renorm", renorm), ("virtual_batch_size", virtual_batch_size), ("adjustment", adjustment)):
            if setting:
                raise UnimplementedError(
                    f"batch normalization: {what} is not available here; required {False if setting is True else None}"
                )
        super().__init__(trainable=trainable, name=name, **kwargs)
        self.axis = axis
        self.momentum, self.epsilon = momentum, epsilon
        self.center, self.scale = center, scale
        self.fused = fused
        self._settings = {
            "gamma": (gamma_initializer, gamma_regularizer, True, gamma_constraint),
            "beta": (beta_initializer, beta_regularizer, True, beta_constraint),
            "moving_mean": (moving_mean_initializer, None, False, None),
            "moving_variance": (moving_variance_initializer, None, False, None),
        }
        self.gamma: Any = None
        self.beta: Any = None
        self.moving_mean: Any = None
        self.moving_variance: Any = None
        self._axis = -1
        self._is_fused = False

    def build(self, input_shape: Any) -> None:
        """Make the variables."""
        rank = as_shape(input_shape).rank
        if rank is None:
            raise InvalidArgumentError(f"Input of the layer {self.name} has undefined rank")
        self._axis = self._channel_axis(rank)
        size = last_size(input_shape, "BatchNormalization", self._axis)
        self.input_spec = InputSpec(ndim=rank, axes={self._axis: size})
        can_be_fused = rank == 4 and self._axis in (1, 3)
        if self.fused and not can_be_fused:
            raise InvalidArgumentError(
                f"batch normalization of {self.name}: fused requires images of rank 4 with the channels in dimension 1 or 3; got rank {rank}, "
                f"dimension {self._axis}"
            )
        self._is_fused = can_be_fused and self.fused is not False
        dtype = float32 if self._dtype is float16 else self._dtype

        def add(name: str) -> Any:
            return self.add_weight(name, [size], dtype, *self._settings[name])

        wanted = {"gamma": self.scale, "beta": self.center}
        variables = {name: add(name) for name in self._parameters() if wanted[name]}
        self.gamma, self.beta = variables.get("gamma"), variables.get("beta")
        self.moving_mean, self.moving_variance = add("moving_mean"), add("moving_variance")
        self.built = True

    def _parameters(self) -> tuple[str, str]:
        """The names of the variables that scale and shift, in the order in which they are made."""
        return "gamma", "beta"

    def _channel_axis(self, rank: int) -> int:
        axes = [self.axis] if isinstance(self.axis, int) else list(self.axis)
        if len(axes) != 1 or not -rank <= axes[0] < rank:
            raise InvalidArgumentError(f"batch normalization: required one axis of {rank} dimensions, got {self.axis}")
        return int(axes[0]) % rank

    def call(self, inputs: Any, training: Any = False) -> Any:
        """The outputs, of the shape of the inputs; `training` is a bool or a tensor."""
        flag = as_flag(training)
        outputs, mean, variance = self._fused(inputs, flag) if self._is_fused else self._composed(inputs, flag)
        if flag is not False and self.trainable:
            kept = 1.0 - self.momentum
            decay = kept if flag is True else cond(flag, lambda: convert_to_tensor(kept), lambda: convert_to_tensor(0.0))
            self.add_update(_moving_average(self.moving_mean, mean, decay))
            self.add_update(_moving_average(self.moving_variance, variance, decay))
        outputs.set_shape(inputs.shape)
        return outputs

    def _fused(self, inputs: Tensor, flag: Any) -> Any:
        dtype = self.moving_mean.dtype
        size = self.moving_mean.shape
        gamma = Ones()(size, dtype) if self.gamma is None else self.gamma
        beta = Zeros()(size, dtype) if self.beta is None else self.beta
        form = "NCHW" if self._axis == 1 else "NHWC"

        def train() -> Any:
            return tuple(nn.fused_batch_norm(inputs, gamma, beta, epsilon=self.epsilon, data_format=form))

        def infer() -> Any:
            moments = self.moving_mean, self.moving_variance
            return tuple(nn.fused_batch_norm(inputs, gamma, beta, *moments, self.epsilon, form, is_training=False))

        return train() if flag is True else infer() if flag is False else cond(flag, train, infer)

    def _composed(self, inputs: Tensor, flag: Any) -> Any:
        dtype = self.moving_mean.dtype
        others = [i for i in range(inputs.shape.rank or 0) if i != self._axis]

        def train() -> Any:
            return tuple(nn.moments(cast(inputs, dtype), others))

        def infer() -> Any:
            return convert_to_tensor(self.moving_mean), convert_to_tensor(self.moving_variance)

        mean, variance = train() if flag is True else infer() if flag is False else cond(flag, train, infer)
        center, spread, beta, gamma = [self._spread(statistic, inputs) for statistic in (mean, variance, self.beta, self.gamma)]
        return nn.batch_normalization(inputs, center, spread, beta, gamma, self.epsilon), mean, variance

    def _spread(self, value: Any, inputs: Tensor) -> Any:
        """A value for each channel, in the dtype of the inputs and a shape that is broadcast to theirs."""
        if value is None:
            return None
        value = cast(convert_to_tensor(value), inputs.dtype.base)
        rank = inputs.shape.rank or 0
        if self._axis == rank - 1:
            return value
        return reshape(value, [-1 if i == self._axis else 1 for i in range(rank)])

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the inputs."""
        return as_shape(input_shape)


def _moving_average(variable: Any, value: Any, decay: Any) -> Any:
    """The op that moves a variable towards a value by the part `decay` of the distance."""
    with name_scope("AssignMovingAvg") as scope:
        part = cast(convert_to_tensor(decay, name="decay"), variable.dtype)
        return move(variable, cast(value, variable.dtype), part, scope)
