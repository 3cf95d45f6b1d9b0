"""Sliding windows: data formats, paddings, and the number of positions of a window along a dimension."""

from __future__ import annotations

import msgspec

from graphcore.errors import InvalidArgumentError
from graphcore.inference.context import InferenceContext
from graphcore.inference.handles import DimensionHandle, ShapeHandle


class DataFormat(msgspec.Struct, frozen=True):
    """The positions of an array's batch, spatial and channel dimensions."""

    name: str
    spatial: tuple[int, ...]
    channel: int

    @property
    def rank(self) -> int:
        """The rank of an array in this format."""
        return len(self.spatial) + 2

    def assemble(self, batch: DimensionHandle, spatial: list[DimensionHandle], channel: DimensionHandle) -> ShapeHandle:
        """The shape of these dimensions."""
        return ShapeHandle((batch, *spatial, channel) if self.channel == self.rank - 1 else (batch, channel, *spatial))


_FORMATS = {
    "NHWC": DataFormat("NHWC", (1, 2), 3),
    "NCHW": DataFormat("NCHW", (2, 3), 1),
    "NDHWC": DataFormat("NDHWC", (1, 2, 3), 4),
    "NCDHW": DataFormat("NCDHW", (2, 3, 4), 1),
}


def data_format(c: InferenceContext, default: str) -> DataFormat:
    """The format named by attr `data_format`.

    Raises:
        InvalidArgumentError: there is no such format.
    """
    name = c.text_attr("data_format", default)
    if name not in _FORMATS:
        raise InvalidArgumentError(f"Invalid data format string: {name}", op=c.op, node=c.node_name, attr="data_format")
    return _FORMATS[name]


def sizes_attr(c: InferenceContext, attr: str, rank: int, *, what: str) -> tuple[int, ...]:
    """The value of attr `attr`, one number for each dimension.

    Raises:
        InvalidArgumentError: too many or too few; the message begins with `what`.
    """
    sizes = c.ints_attr(attr)
    if len(sizes) != rank:
        raise InvalidArgumentError(f"{what} attribute to contain {rank} values, but got: {len(sizes)}")
    return sizes


def explicit_paddings(c: InferenceContext, layout: DataFormat) -> tuple[tuple[int, int], ...]:
    """The padding before and after each dimension; zeros unless attr `padding` is EXPLICIT.

    Raises:
        InvalidArgumentError: paddings without EXPLICIT, too few, negative, or along batch or depth.
    """
    rank = layout.rank
    declared = "explicit_paddings" in c.attrs or c.op_def.find_attr("explicit_paddings") is not None
    listed = c.ints_attr("explicit_paddings") if declared else ()
    if c.text_attr("padding") != "EXPLICIT":
        if listed:
            raise InvalidArgumentError("explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT")
        return ((0, 0),) * rank
    if len(listed) != 2 * rank:
        raise InvalidArgumentError(f"explicit_paddings attribute must contain {2 * rank} values, but got: {len(listed)}")
    if any(size < 0 for size in listed):
        raise InvalidArgumentError("All elements of explicit_paddings must be nonnegative")
    pairs = tuple(zip(listed[::2], listed[1::2], strict=True))
    if any(pairs[0]) or any(pairs[layout.channel]):
        raise InvalidArgumentError("Nonzero explicit padding in the batch or depth dimensions is not supported")
    return pairs


class Window(msgspec.Struct, frozen=True):
    """A window along one dimension: its size, stride and dilation, and the padding of the input."""

    size: DimensionHandle
    stride: int
    dilation: int = 1
    padding: tuple[int, int] = (0, 0)


def windowed_output_size(c: InferenceContext, size: DimensionHandle, window: Window, padding: str) -> DimensionHandle:
    """The number of positions of a window along a dimension.

    Raises:
        InvalidArgumentError: stride or dilation below 1, or the window is larger than the input.
    """
    stride = window.stride
    if stride <= 0:
        raise InvalidArgumentError(f"Stride must be > 0, but got {stride}")
    if window.dilation < 1:
        raise InvalidArgumentError(f"Dilation rate must be >= 1, but got {window.dilation}")
    if padding == "SAME":
        return c.divide(c.add(size, stride - 1), stride, evenly_divisible=False)
    padded = c.add(size, sum(window.padding))
    extent = window.size
    if window.dilation > 1:
        extent = c.add(c.multiply(c.subtract(extent, 1), window.dilation), 1)
    return c.divide(c.add(c.subtract(padded, extent), stride), stride, evenly_divisible=False)
