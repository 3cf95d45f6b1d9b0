"""Depthwise convolution of arrays: without sums over channels, BLAS cannot help.

Products are made a piece of the output at a time, small enough for the cache. A filter element is repeated along a row of the output, so that
NumPy multiplies long runs even where there are few channels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from graphcore.opset.numerics.windows import Geometry, inside, padded, piece_size, pieces, row_range, views

_LONG_RUN: Final = 256
"""The fewest channels for which the filter is broadcast along a row and not repeated: the inner loop is long enough."""


def depthwise(xp: Any, x: Any, w: Any, g: Geometry) -> Any:
    """Convolve; x: [n, rows, columns, c]  w: [window rows, window columns, c] -> [n, places..., c]."""
    y = xp.zeros((x.shape[0], *g.places, x.shape[-1]), x.dtype)
    for seen, part, factor, product in _products(xp, _padded(xp, x, g), y, w, g):
        xp.multiply(seen, factor, product)
        xp.add(part, product, part)
    return y


def depthwise_input_gradient(xp: Any, w: Any, dy: Any, g: Geometry, sizes: tuple[int, ...]) -> Any:
    """The gradient of the input; w: [window..., c]  dy: [n, places..., c] -> [n, sizes..., c]."""
    pads, shape = ((0, 0), *g.pads, (0, 0)), (dy.shape[0], *sizes, dy.shape[-1])
    dx = xp.zeros([before + size + after for size, (before, after) in zip(shape, pads, strict=True)], dy.dtype)
    for seen, part, factor, product in _products(xp, dx, dy, w, g):
        xp.multiply(part, factor, product)
        xp.add(seen, product, seen)
    return dx[inside(shape, pads)]


def depthwise_filter_gradient(xp: Any, x: Any, dy: Any, g: Geometry) -> Any:
    """The gradient of the filter; x: [n, rows, columns, c]  dy: [n, places..., c] -> [window..., c]."""
    return xp.einsum("nhwijc,nhwc->ijc", views(xp, _padded(xp, x, g), g.window, g.slides, g.places), dy)


def _padded(xp: Any, x: Any, g: Geometry) -> Any:
    return padded(xp, x, ((0, 0), *g.pads, (0, 0)))


def _products(xp: Any, x: Any, y: Any, w: Any, g: Geometry) -> Iterator[tuple[Any, Any, Any, Any]]:
    """For each piece of y and filter element: the part of padded x, the piece, the element, a buffer."""
    down, along = g.slides
    columns = [along.tap(at, g.places[1]) for at in range(g.window[1])]
    factors = w[:, :, None] if w.shape[-1] >= _LONG_RUN else xp.repeat(w[:, :, None], g.places[1], 2)
    buffer = xp.empty(0, y.dtype)
    for images, rows in pieces(len(y), g.places[0], g.places[1] * y.shape[-1], piece_size(xp)):
        part = y[images, rows]
        if buffer.size < part.size:
            buffer = xp.empty(part.size, y.dtype)
        product = buffer[: part.size].reshape(part.shape)
        source = x[images, row_range(down, rows, g.window[0])]
        for i in range(g.window[0]):
            seen = source[:, down.tap(i, part.shape[1])]
            for j, column in enumerate(columns):
                yield seen[:, :, column], part, factors[i, j], product
