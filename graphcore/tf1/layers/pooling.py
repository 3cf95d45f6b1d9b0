"""`tf.layers`: pooling."""

from __future__ import annotations

from typing import Any, ClassVar

from graphcore.shapes import Shape, as_shape
from graphcore.tf1.arrays.layout import expand_dims, squeeze
from graphcore.tf1.calls import apply_one
from graphcore.tf1.layers.arguments import as_padding, as_sizes, format_of, is_channels_first, output_length
from graphcore.tf1.layers.base import InputSpec, Layer


class Pooling(Layer):
    """The base class of pooling: the largest or mean value of each window.

    Args:
        pool_size: the size of the window in each dimension of an image, or one for all.
        strides: the steps of the window; its size if None.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first".
        name, kwargs: see `Layer`.
    """

    _op: ClassVar[str] = ""
    _rank: ClassVar[int] = 0

    def __init__(
        self,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.pool_size = as_sizes(pool_size, self._rank, "pool_size")
        self.strides = as_sizes(pool_size if strides is None else strides, self._rank, "strides")
        self.padding = as_padding(padding)
        self.data_format = data_format
        self._channels_first = is_channels_first(data_format)
        self.input_spec = InputSpec(ndim=self._rank + 2)

    def call(self, inputs: Any) -> Any:
        """The outputs. inputs: [b, *size, c] -> y: [b, *output size, c]."""
        rank = max(self._rank, 2)
        axis = 3 if self._channels_first else 2  # the second dimension of a sequence seen as an image
        images = expand_dims(inputs, axis) if self._rank == 1 else inputs
        attrs = {
            "ksize": self._whole(self.pool_size),
            "strides": self._whole(self.strides),
            "padding": self.padding.upper(),
            "data_format": format_of(self._channels_first, rank),
        }
        outputs = apply_one(self._op, [images], None, attrs)
        return squeeze(outputs, [axis]) if self._rank == 1 else outputs

    def _whole(self, numbers: tuple[int, ...]) -> list[int]:
        """Numbers for all dimensions of an image, with 1 for batch and channels."""
        spatial = (*numbers, 1) if self._rank == 1 else numbers
        return [1, 1, *spatial] if self._channels_first else [1, *spatial, 1]

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """[b, *output size, c] for [b, *size, c]."""
        sizes = as_shape(input_shape).as_list()
        spatial = sizes[2:] if self._channels_first else sizes[1:-1]
        settings = zip(spatial, self.pool_size, self.strides, strict=True)
        after = [output_length(length, window, self.padding, stride) for length, window, stride in settings]
        return Shape([*sizes[:2], *after] if self._channels_first else [sizes[0], *after, sizes[-1]])


class MaxPooling1D(Pooling):
    """The largest value of each window of sequences. x: [b, n, c] -> y: [b, m, c]."""

    _op = "MaxPool"
    _rank = 1


class MaxPooling2D(Pooling):
    """The largest value of each window of images. x: [b, h, w, c] -> y: [b, rows, columns, c]."""

    _op = "MaxPool"
    _rank = 2


class MaxPooling3D(Pooling):
    """The largest value of each window of volumes. x: [b, d, h, w, c] -> y: [b, ..., c]."""

    _op = "MaxPool3D"
    _rank = 3


class AveragePooling1D(Pooling):
    """The mean of each window of sequences. x: [b, n, c] -> y: [b, m, c]."""

    _op = "AvgPool"
    _rank = 1


class AveragePooling2D(Pooling):
    """The mean of each window of images. x: [b, h, w, c] -> y: [b, rows, columns, c]."""

    _op = "AvgPool"
    _rank = 2


class AveragePooling3D(Pooling):
    """The mean of each window of volumes. x: [b, d, h, w, c] -> y: [b, ..., c]."""

    _op = "AvgPool3D"
    _rank = 3
