"""Convolution of arrays: the sums shared by convolution ops, gradients and data formats.

All arrays are channels-last with any number of spatial dimensions. Windows are copied in pieces that fit into the cache and multiplied with
the filter by BLAS. Where less is copied so, windows of one row are multiplied with all rows of the filter, and the products added at the
rows where they belong. A gradient with respect to the input is a convolution with the mirrored filter, or one product for each filter
element, added at its position. A convolution of single elements, without windows, is one product.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from graphcore.kernel_context import KernelContext
from graphcore.opset.framework.kernels import invalid, narrow, unimplemented
from graphcore.opset.numerics.windows import (
    Geometry,
    inside,
    int_list,
    is_channels_last,
    padded,
    piece_size,
    pieces,
    row_range,
    sliding,
    spatial_axes,
    taps,
    views,
)

_FEWEST_PLACES: Final = 64
"""The fewest windows in a piece; with fewer, reading the filter takes longer than multiplying."""
_SHORT_RUN: Final = 12
"""The most consecutive elements of windows that are copied by filter element; longer runs are copied along a row."""
_SPLIT_COST: Final = 1.5
"""The cost of an element that is added at one of several rows, or copied for them, relative to one of a window that is copied."""


class Convolution:
    """The common part of a convolution node's kernels: data format, strides, paddings, compute type."""

    def __init__(self, k: KernelContext, default_format: bytes = b"NHWC") -> None:
        axes = spatial_axes(k, default_format)
        self.k = k
        self.xp = k.xp
        self.slides = sliding(k, int_list(k, "strides"), axes)
        for name in ("strides", "dilations"):
            sizes = int_list(k, name)
            if any(size != 1 for at, size in enumerate(sizes) if at not in axes):
                raise unimplemented(k, f"required {name} of 1 along batch and channels, got {list(sizes)}")
        self.channels_last = is_channels_last(k.attrs)
        self.dtype = k.dtype("T")
        self.wide = np.dtype(np.float32) if narrow(self.dtype) else self.dtype

    def channels_last_array(self, x: Any) -> Any:
        """The array as [batch, spatial..., channels] in the compute type, contiguous."""
        if not self.channels_last:
            x = x.transpose((0, *range(2, x.ndim), 1))
        return self.xp.ascontiguousarray(x, self.wide)

    def filter_array(self, w: Any) -> Any:
        """The filter in the compute type, contiguous."""
        return self.xp.ascontiguousarray(w, self.wide)

    def check_filter(self, w: Any) -> None:
        """Check that the filter of a convolution is not empty.

        Raises:
            InvalidArgumentError: a dimension is 0.
        """
        if not w.size:
            raise invalid(self.k, f"the filter has no elements: every dimension must be at least 1, got shape {list(w.shape)}")

    def check_places(self, dy: Any, g: Geometry) -> None:
        """Refuse a gradient of the output, channels last, that is not as large as the output.

        Raises:
            InvalidArgumentError: its spatial sizes differ.
        """
        if dy.shape[1:-1] != g.places:
            text = f"the gradient of the output must have the spatial sizes {list(g.places)}, got {list(dy.shape[1:-1])}"
            raise invalid(self.k, text)

    def result(self, y: Any) -> Any:
        """A channels-last array in the node's format and type."""
        if not self.channels_last:
            y = y.transpose((0, y.ndim - 1, *range(1, y.ndim - 1)))
        return y.astype(self.dtype, copy=False)

    def channels_last_sizes(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """The sizes of an array of the node's format as [batch, spatial..., channels]."""
        return sizes if self.channels_last else (sizes[0], *sizes[2:], sizes[1])

    def geometry(self, sizes: tuple[int, ...], window: tuple[int, ...]) -> Geometry:
        """The geometry for spatial sizes and a filter window.

        Raises:
            InvalidArgumentError: the window does not fit.
        """
        places = tuple([slide.places(size, width) for slide, size, width in zip(self.slides, sizes, window, strict=True)])
        if min(places) < 0:
            raise invalid(
                self.k, f"a window of {list(window)} does not fit into an input of {list(sizes)}: computed output size would be negative"
            )
        pads = tuple([slide.pads(size, width) for slide, size, width in zip(self.slides, sizes, window, strict=True)])
        return Geometry(self.slides, window, places, pads)


def window_rows(xp: Any, x: Any, g: Geometry) -> Iterator[tuple[tuple[slice, slice], Any]]:
    """The windows of an input as rows of matrices: [places in the piece, window elements * channels].

    Each matrix comes with its images and output rows, and is overwritten by the next.
    """
    window = (*g.window, x.shape[-1])
    width, last = math.prod(window), len(window)
    by_element = math.prod(window[-2:]) <= _SHORT_RUN
    windows = views(xp, padded(xp, x, ((0, 0), *g.pads, (0, 0))), g.window, g.slides, g.places)
    buffer = xp.empty(0, x.dtype)
    for piece in pieces(x.shape[0], g.places[0], math.prod(g.places[1:]) * width, max(piece_size(xp), _FEWEST_PLACES * width)):
        part = windows[piece]
        if buffer.size < part.size:
            buffer = xp.empty(part.size, x.dtype)
        if by_element:
            part = part.transpose((*range(part.ndim - last, part.ndim), *range(part.ndim - last)))
        space = buffer[: part.size]
        space.reshape(part.shape)[...] = part
        yield piece, space.reshape(width, -1).T if by_element else space.reshape(-1, width)


def forward(xp: Any, x: Any, w: Any, g: Geometry) -> Any:
    """Convolve; x: [n, spatial..., c]  w: [window..., c, o] -> [n, places..., o]."""
    channels, outputs = w.shape[-2:]
    flat = w.reshape(math.prod(w.shape[:-1]), outputs)
    if g.is_pointwise:
        return xp.dot(x.reshape(-1, channels), flat).reshape((*x.shape[:-1], outputs))
    if _is_split(xp, g, x.shape[1], channels, outputs):
        return _forward_by_rows(xp, x, w, g)
    y = xp.empty((x.shape[0], *g.places, outputs), x.dtype)
    if not y.size or not flat.size:
        y[...] = 0
        return y
    for piece, matrix in window_rows(xp, x, g):
        xp.dot(matrix, flat, y[piece].reshape(-1, outputs))
    return y


def _is_split(xp: Any, g: Geometry, rows: int, channels: int, outputs: int) -> bool:
    """True on a CPU if windows of one row, and sums over the filter's rows, copy less.

    Args:
        xp: the array module.
        g: the geometry of the whole windows.
        rows: the number of rows of the input.
        channels, outputs: the sizes of the last dimensions of input and output.
    """
    return xp is np and g.slides[0].stride == 1 and rows <= g.places[0] and _whole(g) * channels > _split_cost(g, channels, outputs)


def _whole(g: Geometry) -> int:
    return math.prod(g.window)


def _split_cost(g: Geometry, channels: int, outputs: int) -> float:
    """The elements copied and added for each place with windows of one row."""
    return _SPLIT_COST * (math.prod(g.window[1:]) * channels + g.window[0] * outputs)


def _of_one_row(g: Geometry, rows: int) -> Geometry:
    """The geometry of the same windows, cut to one row, at all rows of the input."""
    return Geometry(g.slides, (1, *g.window[1:]), (rows, *g.places[1:]), ((0, 0), *g.pads[1:]))


def _shifted(g: Geometry, rows: slice, element: int) -> tuple[slice, slice]:
    """The output rows that input rows contribute to by one row of the filter, and which of `rows` do."""
    shift = g.pads[0][0] - element * g.slides[0].dilation
    first = max(rows.start + shift, 0)
    end = max(first, min(rows.stop + shift, g.places[0]))
    return slice(first, end), slice(first - shift - rows.start, end - shift - rows.start)


def _forward_by_rows(xp: Any, x: Any, w: Any, g: Geometry) -> Any:
    height, outputs = g.window[0], w.shape[-1]
    factor = xp.ascontiguousarray(w.reshape(height, -1, outputs).swapaxes(0, 1)).reshape(-1, height * outputs)
    y = xp.zeros((x.shape[0], *g.places, outputs), x.dtype)
    for (images, rows), matrix in window_rows(xp, x, _of_one_row(g, x.shape[1])):
        product = xp.dot(matrix, factor).reshape((-1, rows.stop - rows.start, *g.places[1:], height, outputs))
        for element in range(height):
            into, of = _shifted(g, rows, element)
            y[images, into] += product[:, of, ..., element, :]
    return y


def input_gradient(xp: Any, w: Any, dy: Any, g: Geometry, sizes: tuple[int, ...]) -> Any:
    """The gradient of the input; w: [window..., c, o]  dy: [n, places..., o] -> [n, sizes..., c]."""
    channels, outputs = w.shape[-2:]
    if g.is_pointwise:
        return xp.dot(dy.reshape(-1, outputs), w.reshape(channels, outputs).T).reshape((*dy.shape[:-1], channels))
    pads = ((0, 0), *g.pads, (0, 0))
    shape = (dy.shape[0], *sizes, channels)
    dx = xp.zeros([before + size + after for size, (before, after) in zip(shape, pads, strict=True)], dy.dtype)
    if not dy.size or not dx.size or not w.size:
        return dx[inside(shape, pads)]
    mirrored = _mirrored(xp, g, sizes)
    if mirrored is not None and (xp is not np or 2 * _whole(g) * channels > min(_whole(g) * outputs, _split_cost(g, outputs, channels))):
        flipped = w[(slice(None, None, -1),) * len(g.window)].swapaxes(-1, -2)
        return forward(xp, dy, xp.ascontiguousarray(flipped), mirrored)
    factors = [xp.ascontiguousarray(part.T) for part in w.reshape(-1, channels, outputs)]
    for images, rows in pieces(dy.shape[0], g.places[0], math.prod(g.places[1:]) * channels, piece_size(xp)):
        part = dy[images, rows]
        matrix = part.reshape(-1, outputs)
        product = xp.empty((matrix.shape[0], channels), dy.dtype)
        target = dx[images, row_range(g.slides[0], rows, g.window[0])]
        for element, factor in zip(np.ndindex(*g.window), factors, strict=True):
            xp.dot(matrix, factor, product)
            target[taps(g, element, part.shape[1])] += product.reshape((*part.shape[:-1], channels))
    return dx[inside(shape, pads)]


def _mirrored(xp: Any, g: Geometry, sizes: tuple[int, ...]) -> Geometry | None:
    """The convolution of the output's gradient with the mirrored filter.

    None if windows skip elements, or if the result is larger than the output, on the CPU.
    """
    reaches = [slide.reach(width) - 1 for slide, width in zip(g.slides, g.window, strict=True)]
    pads = tuple([(reach - before, reach - after) for reach, (before, after) in zip(reaches, g.pads, strict=True)])
    if any(slide.stride > 1 for slide in g.slides) or min(map(min, pads)) < 0 or (xp is np and math.prod(sizes) > math.prod(g.places)):
        return None
    return Geometry(g.slides, g.window, sizes, pads)


def filter_gradient(xp: Any, x: Any, dy: Any, g: Geometry) -> Any:
    """The gradient of the filter; x: [n, spatial..., c]  dy: [n, places..., o] -> [window..., c, o]."""
    channels, outputs = x.shape[-1], dy.shape[-1]
    if g.is_pointwise:
        return xp.dot(x.reshape(-1, channels).T, dy.reshape(-1, outputs)).reshape((*g.window, channels, outputs))
    dw = xp.zeros((math.prod(g.window) * channels, outputs), x.dtype)
    if x.size and dy.size and dw.size:
        if _is_split(xp, g, x.shape[1], channels, outputs):
            return _filter_gradient_by_rows(xp, x, dy, g)
        for piece, matrix in window_rows(xp, x, g):
            dw += xp.dot(matrix.T, dy[piece].reshape(-1, outputs))
    return dw.reshape((*g.window, channels, outputs))


def _filter_gradient_by_rows(xp: Any, x: Any, dy: Any, g: Geometry) -> Any:
    height, channels, outputs = g.window[0], x.shape[-1], dy.shape[-1]
    dw = xp.zeros((math.prod(g.window[1:]) * channels, height * outputs), x.dtype)
    for (images, rows), matrix in window_rows(xp, x, _of_one_row(g, x.shape[1])):
        part = dy[images]
        shifted = xp.zeros((part.shape[0], rows.stop - rows.start, *g.places[1:], height, outputs), dy.dtype)
        for element in range(height):
            into, of = _shifted(g, rows, element)
            shifted[:, of, ..., element, :] = part[:, into]
        dw += xp.dot(matrix.T, shifted.reshape(-1, height * outputs))
    return xp.ascontiguousarray(dw.reshape(-1, height, outputs).swapaxes(0, 1)).reshape((*g.window, channels, outputs))


def grouped(xp: Any, function: Any, groups: int, arrays: tuple[tuple[Any, int], ...], axis: int) -> Any:
    """Apply `function` to each group of channels.

    Every array is split along its own axis, and the results are joined along `axis`.
    """
    if groups == 1:
        return function(*[array for array, _ in arrays])
    parts = itertools.zip_longest(*[xp.split(array, groups, at) for array, at in arrays])
    return xp.concatenate([function(*map(xp.ascontiguousarray, part)) for part in parts], axis)
