"""Sliding windows: their geometry in numbers, and views of arrays. For convolutions and pooling."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import numpy as np

from graphcore.attrs import Attrs
from graphcore.errors import InvalidArgumentError
from graphcore.kernel_context import KernelContext
from graphcore.opset.framework.kernels import invalid

Pad = tuple[int, int]

_SPATIAL: Final = {b"NHWC": (1, 2), b"NCHW": (2, 3), b"NDHWC": (1, 2, 3), b"NCDHW": (2, 3, 4)}

PIECE: Final = 1 << 16
"""The elements of an array that are handled at a time, so that they stay in the cache (256 kB of float32)."""
_DEVICE_PIECE: Final = 1 << 26
"""The same on a GPU, which is fast on large arrays only, so that a copy of windows leaves memory to others (256 MB of float32)."""


class Sliding(msgspec.Struct, frozen=True):
    """The sliding of windows along one dimension.

    Attributes:
        padding: SAME, VALID or EXPLICIT.
        explicit: the padding before and after, for EXPLICIT.
    """

    stride: int
    dilation: int
    padding: bytes
    explicit: Pad = (0, 0)

    def places(self, size: int, window: int) -> int:
        """The number of windows along a dimension of this size; at most 0 if none fits."""
        if self.padding == b"SAME":
            return -(-size // self.stride)
        return (size + sum(self.explicit) - self.reach(window)) // self.stride + 1

    def pads(self, size: int, window: int) -> Pad:
        """The padding before and after a dimension of this size."""
        if self.padding != b"SAME":
            return self.explicit
        needed = max(0, (self.places(size, window) - 1) * self.stride + self.reach(window) - size)
        return needed // 2, needed - needed // 2

    def reach(self, window: int) -> int:
        """The distance from the first to the last element of a window, inclusive."""
        return (window - 1) * self.dilation + 1

    def tap(self, index: int, places: int) -> slice:
        """Element `index` of every window, as a slice of the padded dimension."""
        first = index * self.dilation
        return slice(first, first + (places - 1) * self.stride + 1, self.stride)


class Geometry(msgspec.Struct, frozen=True):
    """One convolution's sizes: spatial input, filter window, places of the window, paddings."""

    slides: tuple[Sliding, ...]
    window: tuple[int, ...]
    places: tuple[int, ...]
    pads: tuple[Pad, ...]

    @property
    def is_pointwise(self) -> bool:
        """True if windows are single elements and all elements are windows."""
        return math.prod(self.window) == 1 and not any(map(sum, self.pads)) and all(slide.stride == 1 for slide in self.slides)


def is_channels_last(attrs: Attrs) -> bool:
    """True unless attr `data_format` puts the channels second."""
    return attrs.get("data_format", b"NHWC") in {b"NHWC", b"NDHWC"}


def sliding(k: KernelContext, strides: tuple[int, ...], axes: tuple[int, ...]) -> tuple[Sliding, ...]:
    """The sliding of windows along `axes`, from the node's attrs.

    Raises:
        InvalidArgumentError: a stride or dilation below 1, or too few of them.
    """
    padding = k.attr("padding")
    dilations = int_list(k, "dilations") or (1,) * len(strides)
    explicit = int_list(k, "explicit_paddings") if padding == b"EXPLICIT" else (0,) * (2 * len(strides))
    if len(dilations) != len(strides) or len(explicit) != 2 * len(strides) or min((*strides, *dilations)) < 1:
        raise invalid(k, f"strides {list(strides)}, dilations {list(dilations)} and paddings {list(explicit)} do not fit together")
    assert isinstance(padding, bytes)
    return tuple([Sliding(strides[at], dilations[at], padding, (explicit[2 * at], explicit[2 * at + 1])) for at in axes])


def spatial_axes(k: KernelContext, default: bytes) -> tuple[int, ...]:
    """The spatial dimensions of the node's data format.

    Raises:
        InvalidArgumentError: there is no such format.
    """
    name = k.attrs.get("data_format", default)
    if not isinstance(name, bytes) or name not in _SPATIAL:
        raise invalid(k, f"attr 'data_format' must be one of {', '.join(key.decode() for key in _SPATIAL)}, got {name!r}")
    return _SPATIAL[name]


def int_list(k: KernelContext, name: str) -> tuple[int, ...]:
    """The ints in attr `name`, () if there is no such attr.

    Raises:
        InvalidArgumentError: it is not a list.
    """
    value = k.attrs.get(name, ())
    if not isinstance(value, tuple):
        raise InvalidArgumentError(f"Attr '{name}' must be a list of ints, got {value!r}", op=k.op, node=k.node_name, attr=name)
    return value


def padded(xp: Any, x: Any, pads: tuple[Pad, ...], fill: Any = 0) -> Any:
    """The array with `fill` around it; itself without padding."""
    if not any(before or after for before, after in pads):
        return x
    sizes = [before + size + after for size, (before, after) in zip(x.shape, pads, strict=True)]
    result = xp.zeros(sizes, x.dtype) if fill == 0 else xp.full(sizes, fill, x.dtype)
    result[inside(x.shape, pads)] = x
    return result


def inside(shape: tuple[int, ...], pads: tuple[Pad, ...]) -> tuple[slice, ...]:
    """The slices of the array itself in its padded form."""
    return tuple([slice(before, before + size) for size, (before, _) in zip(shape, pads, strict=True)])


def views(xp: Any, x: Any, window: tuple[int, ...], slides: tuple[Sliding, ...], places: tuple[int, ...]) -> Any:
    """The windows of a padded channels-last array as a view: [batch, places..., window..., channels]."""
    steps = x.strides[1:-1]
    return xp.lib.stride_tricks.as_strided(
        x,
        (x.shape[0], *places, *window, x.shape[-1]),
        (
            x.strides[0],
            *[step * slide.stride for step, slide in zip(steps, slides, strict=True)],
            *[step * slide.dilation for step, slide in zip(steps, slides, strict=True)],
            x.strides[-1],
        ),
    )


def row_range(slide: Sliding, rows: slice, window: int) -> slice:
    """The padded input rows that these output rows depend on."""
    return slice(rows.start * slide.stride, (rows.stop - 1) * slide.stride + slide.reach(window))


def taps(g: Geometry, element: tuple[int, ...], rows: int) -> tuple[slice, ...]:
    """The elements of a padded input at window element `element`, for some rows of the output."""
    counts = (rows, *g.places[1:])
    return (slice(None), *[slide.tap(at, count) for slide, at, count in zip(g.slides, element, counts, strict=True)])


def piece_size(xp: Any) -> int:
    """The elements that are handled at a time by an array module."""
    return PIECE if xp is np else _DEVICE_PIECE


def pieces(n: int, rows: int, row_size: int, budget: int) -> Iterator[tuple[slice, slice]]:
    """Ranges of images and of their rows, of at most `budget` elements or one row."""
    at_once = max(1, budget // max(1, row_size))
    images = max(1, at_once // max(1, rows))
    step = min(rows, at_once)
    for image in range(0, n, images):
        for row in range(0, rows, max(1, step)):
            yield slice(image, min(n, image + images)), slice(row, min(rows, row + step))
