"""Convolution by columns: sums over windows as products with little copying, for few channels.

Images are laid out as a matrix with the elements of image columns as rows, so that the windows at one output column depend on
consecutive rows: windows are copied along the other dimensions only, and each product is over a view. One product may compute
several neighbouring output columns, with the filter repeated along a diagonal: it multiplies by zeros too, but a product with very
few columns uses the processor badly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from graphcore.opset.numerics.windows import Geometry

ONE_THREAD: Final = 1 << 18
"""OpenBLAS computes products of at most so many multiplications in the calling thread."""
_PIECE: Final = 1 << 18
"""How many elements of the matrix are kept at a time (1 MB of float32), if that is one image or more."""
_FEW: Final = 8
"""A product that gives n columns takes about 1 + 8 / n times as long for each multiplication as one that gives very many."""
_MOST_AT_ONCE: Final = 8


def forward_by_columns(xp: Any, x: Any, w: Any, g: Geometry) -> Any:
    """x: [n, spatial..., c]  w: [window..., c, o] -> [n, places..., o]."""
    n, outputs = x.shape[0], w.shape[-1]
    # Infinities and NaN must not be multiplied by the zeros beside the diagonal.
    finite = bool(xp.isfinite(xp.vdot(x, x)))
    columns = Columns(g, w.shape[-2], outputs, one_by_one=not finite)
    factor = columns.empty_filter(xp, w.dtype)
    columns.along_diagonal(xp, factor)[...] = _columns_first(w)
    y = xp.empty((n, *g.places, outputs), x.dtype)
    for images in columns.images(n, x.shape[-2]):
        matrix = columns.matrix(xp, x[images])
        flat = y[images].reshape(matrix.shape[1], -1)
        for rows, out, some in columns.products(matrix.shape[1]):
            part = factor[: rows.stop - rows.start, : out.stop - out.start]
            xp.matmul(matrix[rows, some].T, part, out=flat[some, out])
    return y


def filter_gradient_by_columns(xp: Any, x: Any, dy: Any, g: Geometry) -> Any:
    """x: [n, spatial..., c]  dy: [n, places..., o] -> [window..., c, o]."""
    columns = Columns(g, x.shape[-1], dy.shape[-1])
    total = columns.empty_filter(xp, x.dtype)
    for images in columns.images(x.shape[0], x.shape[-2]):
        matrix = columns.matrix(xp, x[images])
        flat = dy[images].reshape(matrix.shape[1], -1)
        for rows, out, some in columns.products(matrix.shape[1]):
            part = total[: rows.stop - rows.start, : out.stop - out.start]
            part += xp.matmul(matrix[rows, some], flat[some, out])
    dw = columns.along_diagonal(xp, total).sum(0)
    return xp.ascontiguousarray(dw.transpose((*range(1, len(g.window)), 0, dw.ndim - 2, dw.ndim - 1)))


def input_gradient_by_columns(xp: Any, w: Any, dy: Any, g: Geometry, sizes: tuple[int, ...]) -> Any:
    """w: [window..., c, o]  dy: [n, places..., o] -> [n, sizes..., c], for a last stride of 1.

    Computes the gradient of the matrix one input column after the other, and adds up the copies of each element.
    """
    (n, *_, outputs), channels = dy.shape, w.shape[-2]
    columns = Columns(g, channels, outputs, one_by_one=True)
    factor = _columns_first(w)[::-1].transpose((*range(1, w.ndim - 1), 0, w.ndim - 1)).reshape(columns.size, -1)
    dx = xp.empty((n, *sizes, channels), dy.dtype)
    for images in columns.images(n, sizes[-1]):
        # Images last, so that sums are over long runs.
        flat = xp.ascontiguousarray(dy[images].transpose((-2, -1, *range(1, dy.ndim - 2), 0))).reshape(g.places[-1] * outputs, -1)
        matrix = xp.empty((sizes[-1], columns.size, flat.shape[1]), dy.dtype)
        for column, used, looking in columns.lookers(sizes[-1]):
            for some in columns.parts(flat.shape[1]):
                xp.matmul(factor[:, used], flat[looking, some], out=matrix[column, :, some])
        dx[images] = columns.summed(xp, matrix, sizes)
    return dx


class Columns:
    """The sizes of one convolution by columns.

    Attributes:
        size: the matrix rows of one input column: window elements along the other dimensions, times channels.
        at_once: the number of output columns in one product.
        width: the number of input columns that these depend on.
    """

    def __init__(self, g: Geometry, channels: int, outputs: int, *, one_by_one: bool = False) -> None:
        self.g = g
        self.channels = channels
        self.outputs = outputs
        self.slide = g.slides[-1]
        self.size = math.prod(g.window[:-1]) * channels
        most = 1 if one_by_one else max(1, min(_MOST_AT_ONCE, g.places[-1]))
        self.at_once = min(range(1, most + 1), key=lambda count: self._width(count) * (1 + _FEW / (count * outputs)))
        self.width = self._width(self.at_once)

    def _width(self, count: int) -> int:
        """The number of input columns that `count` output columns depend on."""
        return (count - 1) * self.slide.stride + self.slide.reach(self.g.window[-1])

    def images(self, n: int, width: int) -> Iterator[slice]:
        """Pieces of n images, `width` columns wide, with matrix and output in the cache."""
        step = max(1, _PIECE // max(1, math.prod(self.g.places[:-1]) * width * max(self.size, self.outputs)))
        for first in range(0, n, step):
            yield slice(first, min(n, first + step))

    def matrix(self, xp: Any, x: Any) -> Any:
        """Images as [padded columns * size, images * output rows]; x: [n, spatial..., c]."""
        g, spatial = self.g, x.shape[1:-1]
        *pads, (before, after) = g.pads
        sizes = [low + size + high for size, (low, high) in zip(spatial, pads, strict=False)]
        columns = xp.zeros((before + spatial[-1] + after, x.shape[-1], x.shape[0], *sizes), x.dtype)
        inner = [slice(low, low + size) for size, (low, _) in zip(spatial, pads, strict=False)]
        columns[(slice(before, before + spatial[-1]), slice(None), slice(None), *inner)] = x.transpose((-2, -1, *range(x.ndim - 2)))
        copied = xp.empty((len(columns), *g.window[:-1], *columns.shape[1:3], *g.places[:-1]), x.dtype)
        for element in np.ndindex(*g.window[:-1]):
            copied[(slice(None), *element)] = columns[(..., *self._taps(element))]
        return copied.reshape(len(columns) * self.size, -1)

    def products(self, length: int) -> Iterator[tuple[slice, slice, slice]]:
        """For each product, the rows of the matrix, the columns of the flat output, and the slice of columns.

        The slice selects from `length` columns of the one and rows of the other.
        """
        some = list(self.parts(length))
        for first in range(0, self.g.places[-1], self.at_once):
            count = min(self.at_once, self.g.places[-1] - first)
            start = first * self.slide.stride * self.size
            rows, out = slice(start, start + self._width(count) * self.size), slice(first * self.outputs, (first + count) * self.outputs)
            for part in some:
                yield rows, out, part

    def lookers(self, width: int) -> Iterator[tuple[int, slice, slice]]:
        """For each of `width` input columns, the matching columns of the flipped filter and output rows."""
        reach, before, o = self.slide.reach(self.g.window[-1]), self.g.pads[-1][0], self.outputs
        for column in range(width):
            first = column + before - reach + 1
            low = min(max(0, first), self.g.places[-1])
            high = max(low, min(self.g.places[-1], first + reach))
            yield column, slice((low - first) * o, (high - first) * o), slice(low * o, high * o)

    def parts(self, length: int) -> Iterator[slice]:
        """Equal parts of a length with products that stay in one thread."""
        most = max(1, ONE_THREAD // max(1, self.width * self.size * self.at_once * self.outputs))
        step = -(-length // -(-length // most))
        for first in range(0, length, step):
            yield slice(first, min(length, first + step))

    def summed(self, xp: Any, matrix: Any, sizes: tuple[int, ...]) -> Any:
        """The transpose of `matrix`, with images last: adds up copies, drops padding; [n, sizes..., c]."""
        g, (*others, width) = self.g, sizes
        copied = matrix.reshape((width, *g.window[:-1], self.channels, *g.places[:-1], -1))
        wide = [low + size + high for size, (low, high) in zip(others, g.pads, strict=False)]
        columns = xp.zeros((width, self.channels, *wide, copied.shape[-1]), matrix.dtype)
        for element in np.ndindex(*g.window[:-1]):
            columns[(slice(None), slice(None), *self._taps(element))] += copied[(slice(None), *element)]
        inner = columns[(slice(None), slice(None), *[slice(low, low + size) for size, (low, _) in zip(others, g.pads, strict=False)])]
        return inner.transpose((inner.ndim - 1, *range(2, inner.ndim - 1), 0, 1))

    def _taps(self, element: tuple[int, ...]) -> list[slice]:
        """The slices of this window element, in the dimensions other than the columns."""
        return [slide.tap(at, count) for slide, at, count in zip(self.g.slides, element, self.g.places, strict=False)]

    def empty_filter(self, xp: Any, dtype: Any) -> Any:
        """Zeros for the second factor of the products: [input columns * size, output columns * o]."""
        return xp.zeros((self.width * self.size, self.at_once * self.outputs), dtype)

    def along_diagonal(self, xp: Any, factor: Any) -> Any:
        """The filter's positions in the second factor: [output columns, window columns, rest..., c, o]."""
        shape = (self.width, *self.g.window[:-1], self.channels, self.at_once, self.outputs)
        whole = factor.reshape(shape)
        steps = whole.strides
        return xp.lib.stride_tricks.as_strided(
            whole,
            (self.at_once, self.g.window[-1], *shape[1:-2], self.outputs),
            (steps[0] * self.slide.stride + steps[-2], steps[0] * self.slide.dilation, *steps[1:-2], steps[-1]),
        )


def _columns_first(w: Any) -> Any:
    """A filter [window..., c, o] as [window columns, rest of the window..., c, o]."""
    return w.transpose((w.ndim - 3, *range(w.ndim - 3), w.ndim - 2, w.ndim - 1))
