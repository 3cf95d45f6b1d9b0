"""`tf.layers`: convolutions."""

from __future__ import annotations

from typing import Any, ClassVar

from graphcore.graph import Tensor
from graphcore.shapes import Shape, as_shape
from graphcore.tf1 import nn
from graphcore.tf1.arrays.layout import expand_dims, squeeze
from graphcore.tf1.arrays.slices import pad
from graphcore.tf1.initializers import Zeros
from graphcore.tf1.layers.arguments import as_activation, as_padding, as_sizes, format_of, is_channels_first, output_length
from graphcore.tf1.layers.base import InputSpec, Layer, last_size


class Conv(Layer):
    """The base class of convolutions.

    Args:
        filters: the number of outputs of each pixel.
        kernel_size, strides, dilation_rate: an int for each of these dimensions, or one for all.
        padding: "valid" or "same"; "causal" for sequences.
        data_format: "channels_last" or "channels_first".
        activation: a function of the result, None for none.
        use_bias: add a bias.
        kernel_initializer, bias_initializer: initializers.
        kernel_regularizer, bias_regularizer, activity_regularizer: functions to a loss, None for none.
        kernel_constraint, bias_constraint: functions from the value after an optimizer's step to the value to keep.
        trainable, name, kwargs: see `Layer`.

    Attributes:
        kernel: the weights, [*kernel_size, channels, filters].
        bias: the bias, [filters]; None without one.
        rank: the number of dimensions of an image.
    """

    rank: ClassVar[int] = 0

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
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
        self.filters = filters
        self.kernel_size = as_sizes(kernel_size, self.rank, "kernel_size")
        self.strides = as_sizes(strides, self.rank, "strides")
        self.padding = as_padding(padding, causal=self.rank == 1)
        self.data_format = data_format
        self.dilation_rate = as_sizes(dilation_rate, self.rank, "dilation_rate")
        self.activation = as_activation(activation)
        self.use_bias = use_bias
        self.kernel_initializer, self.bias_initializer = kernel_initializer, bias_initializer
        self.kernel_regularizer, self.bias_regularizer = kernel_regularizer, bias_regularizer
        self.kernel_constraint, self.bias_constraint = kernel_constraint, bias_constraint
        self.kernel: Any = None
        self.bias: Any = None
        self.input_spec = InputSpec(ndim=self.rank + 2)
        self._channels_first = is_channels_first(data_format)
        self._format = format_of(self._channels_first, self.rank)

    def build(self, input_shape: Any) -> None:
        """Make kernel and bias."""
        channels = self._channels(input_shape)
        self.kernel = self._add_kernel("kernel", [*self.kernel_size, channels, self.filters])
        self._add_bias()

    def _channels(self, input_shape: Any) -> int:
        axis = 1 if self._channels_first else -1
        channels = last_size(input_shape, type(self).__name__, axis)
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={axis: channels})
        return channels

    def _add_kernel(self, name: str, shape: Any) -> Any:
        return self.add_weight(name, shape, None, self.kernel_initializer, self.kernel_regularizer, True, self.kernel_constraint)

    def _add_bias(self) -> None:
        if self.use_bias:
            self.bias = self.add_weight(
                "bias", [self.filters], None, self.bias_initializer, self.bias_regularizer, True, self.bias_constraint
            )
        self.built = True

    def call(self, inputs: Any) -> Any:
        """The outputs. inputs: [b, *size, channels] -> y: [b, *output size, filters]."""
        return self._finish(self._convolve(inputs))

    def _convolve(self, inputs: Any) -> Tensor:
        strides, rates = self._whole(self.strides), self._whole(self.dilation_rate)
        padding = self.padding.upper()
        if self.rank == 1:
            if self.padding == "causal":
                inputs, padding = self._padded_before(inputs), "VALID"
            return nn.conv1d(inputs, self.kernel, self.strides[0], padding, data_format=self._format, dilations=self.dilation_rate[0])
        if self.rank == 2:
            return nn.conv2d(inputs, self.kernel, strides, padding, data_format=self._format, dilations=rates)
        return nn.conv3d(inputs, self.kernel, strides, padding, data_format=self._format, dilations=rates)

    def _padded_before(self, inputs: Any) -> Tensor:
        before = [self.dilation_rate[0] * (self.kernel_size[0] - 1), 0]
        return pad(inputs, [[0, 0], [0, 0], before] if self._channels_first else [[0, 0], before, [0, 0]])

    def _whole(self, numbers: tuple[int, ...]) -> list[int]:
        """Numbers for all dimensions, with 1 for batch and channels."""
        return [1, 1, *numbers] if self._channels_first else [1, *numbers, 1]

    def _finish(self, outputs: Tensor) -> Any:
        """Bias and activation."""
        if self.use_bias:
            outputs = nn.bias_add(outputs, self.bias, data_format=self._format)
        return outputs if self.activation is None else self.activation(outputs)

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """[b, *output size, filters] for [b, *size, channels]."""
        sizes = as_shape(input_shape).as_list()
        spatial = sizes[2:] if self._channels_first else sizes[1:-1]
        padding = "same" if self.padding == "causal" else self.padding
        settings = zip(spatial, self.kernel_size, self.strides, self.dilation_rate, strict=True)
        after = [output_length(length, window, padding, stride, rate) for length, window, stride, rate in settings]
        return self._shape_of_outputs(sizes[0], after)

    def _shape_of_outputs(self, batch: int | None, spatial: list[int | None]) -> Shape:
        return Shape([batch, self.filters, *spatial] if self._channels_first else [batch, *spatial, self.filters])


class Conv1D(Conv):
    """A convolution of sequences. x: [b, n, c] -> y: [b, m, filters]."""

    rank = 1


class Conv2D(Conv):
    """A convolution of images. x: [b, h, w, c] -> y: [b, rows, columns, filters]."""

    rank = 2


class Conv3D(Conv):
    """A convolution of volumes. x: [b, d, h, w, c] -> y: [b, ..., filters]."""

    rank = 3


class SeparableConv(Conv):
    """A convolution of each channel by itself, then one by one pixel of all channels.

    Args:
        filters, kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias: see `Conv`.
        depth_multiplier: the number of outputs of each channel's convolution.
        depthwise_initializer, pointwise_initializer, bias_initializer: initializers.
        depthwise_regularizer, pointwise_regularizer, bias_regularizer, activity_regularizer: functions to a loss, None for none.
        depthwise_constraint, pointwise_constraint, bias_constraint: see `Conv`.
        trainable, name, kwargs: see `Layer`.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = None,
        pointwise_initializer: Any = None,
        bias_initializer: Any = Zeros(),  # noqa: B008 - it has no state
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            data_format,
            dilation_rate,
            activation,
            use_bias,
            None,
            bias_initializer,
            None,
            bias_regularizer,
            activity_regularizer,
            None,
            bias_constraint,
            trainable,
            name,
            **kwargs,
        )
        self.depth_multiplier = depth_multiplier
        self._depthwise = depthwise_initializer, depthwise_regularizer, True, depthwise_constraint
        self._pointwise = pointwise_initializer, pointwise_regularizer, True, pointwise_constraint
        self.depthwise_kernel: Any = None
        self.pointwise_kernel: Any = None

    def build(self, input_shape: Any) -> None:
        """Make both kernels and the bias."""
        channels = self._channels(input_shape)
        shape = [*self.kernel_size, channels, self.depth_multiplier]
        self.depthwise_kernel = self.add_weight("depthwise_kernel", shape, None, *self._depthwise)
        shape = [*[1] * self.rank, channels * self.depth_multiplier, self.filters]
        self.pointwise_kernel = self.add_weight("pointwise_kernel", shape, None, *self._pointwise)
        self._add_bias()

    def _convolve(self, inputs: Any) -> Tensor:
        padding = self.padding.upper()
        if self.padding == "causal":
            inputs, padding = self._padded_before(inputs), "VALID"
        if self.rank == 2:
            return self._separable(inputs, self.depthwise_kernel, self.pointwise_kernel, self.strides, self.dilation_rate, padding)
        axis = 2 if self._channels_first else 1
        kernels = expand_dims(self.depthwise_kernel, 0), expand_dims(self.pointwise_kernel, 0)
        outputs = self._separable(expand_dims(inputs, axis), *kernels, self.strides * 2, (1, *self.dilation_rate), padding)
        return squeeze(outputs, [axis])

    def _separable(self, images: Any, depthwise: Any, pointwise: Any, strides: Any, rates: Any, padding: str) -> Tensor:
        form = format_of(self._channels_first, 2)
        return nn.separable_conv2d(images, depthwise, pointwise, self._whole(strides), padding, data_format=form, dilations=list(rates))


class SeparableConv1D(SeparableConv):
    """A separable convolution of sequences."""

    rank = 1


class SeparableConv2D(SeparableConv):
    """A separable convolution of images."""

    rank = 2
