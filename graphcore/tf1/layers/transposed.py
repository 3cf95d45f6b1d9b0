"""`tf.layers`: transposed convolutions."""

from __future__ import annotations

from typing import Any

from graphcore.graph import Tensor
from graphcore.shapes import Shape, as_shape
from graphcore.tf1 import nn
from graphcore.tf1.arrays.layout import shape as shape_of
from graphcore.tf1.calls import apply_one
from graphcore.tf1.initializers import Zeros
from graphcore.tf1.layers.convolution import Conv


class ConvTranspose(Conv):
    """The transpose of a convolution: the gradient of one by its input.

    Args:
        filters, kernel_size, strides, padding, data_format, activation, use_bias: see `Conv`.
        kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer: see `Conv`.
        kernel_constraint, bias_constraint, trainable, name, kwargs: see `Conv`.

    Attributes:
        kernel: the weights, [*kernel_size, filters, channels].
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
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
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            data_format,
            1,
            activation,
            use_bias,
            kernel_initializer,
            bias_initializer,
            kernel_regularizer,
            bias_regularizer,
            activity_regularizer,
            kernel_constraint,
            bias_constraint,
            trainable,
            name,
            **kwargs,
        )

    def build(self, input_shape: Any) -> None:
        """Make kernel and bias."""
        channels = self._channels(input_shape)
        self.kernel = self._add_kernel("kernel", [*self.kernel_size, self.filters, channels])
        self._add_bias()

    def _convolve(self, inputs: Any) -> Tensor:
        sizes = shape_of(inputs)
        first = 2 if self._channels_first else 1
        spatial = [self._length(sizes[first + i], i) for i in range(self.rank)]
        wanted = [sizes[0], self.filters, *spatial] if self._channels_first else [sizes[0], *spatial, self.filters]
        form, strides = self._format, self._whole(self.strides)
        if self.rank == 2:
            outputs = nn.conv2d_transpose(inputs, self.kernel, wanted, strides, self.padding.upper(), form)
        else:
            attrs = {"strides": strides, "padding": self.padding.upper(), "data_format": form}
            packed = apply_one("Pack", [wanted], None)
            outputs = apply_one("Conv3DBackpropInputV2", [packed, self.kernel, inputs], "conv3d_transpose", attrs)
        outputs.set_shape(self.compute_output_shape(inputs.shape))
        return outputs

    def _length(self, length: Any, place: int) -> Any:
        """The length of the output in one dimension."""
        longer = length * self.strides[place]
        beyond = max(self.kernel_size[place] - self.strides[place], 0)
        return longer + beyond if self.padding == "valid" and beyond else longer

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """[b, *output size, filters] for [b, *size, channels]."""
        sizes = as_shape(input_shape).as_list()
        spatial = sizes[2:] if self._channels_first else sizes[1:-1]
        return self._shape_of_outputs(sizes[0], [None if size is None else self._length(size, i) for i, size in enumerate(spatial)])


class Conv2DTranspose(ConvTranspose):
    """A transposed convolution of images."""

    rank = 2


class Conv3DTranspose(ConvTranspose):
    """A transposed convolution of volumes."""

    rank = 3
