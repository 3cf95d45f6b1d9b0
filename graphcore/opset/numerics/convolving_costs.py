"""Cost estimates of convolutions: piece sizes, and the choice between windows and columns.

The choice compares estimates in microseconds, fitted to some 800 convolutions of all sizes on one core of a server (float32, OpenBLAS).
With it they took 2 % longer than with the best choice, with windows always 19 %, with columns always 50 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from graphcore.opset.numerics.convolving_columns import ONE_THREAD, Columns
from graphcore.opset.numerics.windows import Geometry

_PIECE: Final = 1 << 20
"""How many elements of copied windows are kept at a time (4 MB of float32)."""
_ROWS_PIECE: Final = 1 << 17
"""How many elements of a gradient's product are kept at a time."""
_THIN: Final = 512
"""A product whose second operand has at most so many elements gains nothing from a second thread: threads wait for each other too long."""
_SMALL_FACTOR: Final = 4096
_SMALL_PRODUCT: Final = 1 << 24
"""Nor does one of at most so many multiplications, if the second operand is small enough for the pieces not to become too short."""
_SHORT_RUN: Final = 12
"""Below this many consecutive elements, windows are copied element by element of the filter: runs along a row are longer then."""
_FEW: Final = 8
"""A product with n rows or columns, n small, takes about 1 + 8 / n times as long for each multiplication."""
_REMEMBERED: Final = 512


def by_element(g: Geometry, channels: int) -> bool:
    """True if windows should be copied element by element of the filter."""
    return g.window[-1] * channels <= _SHORT_RUN


def window_pieces(g: Geometry, n: int, channels: int, outputs: int) -> list[tuple[slice, slice]]:
    """Ranges of images and output rows with windows copied in one piece."""
    window, row = math.prod(g.window) * channels, math.prod(g.places[1:])
    return list(pieces(n, g.places[0], row * window, _budget(_PIECE, n * g.places[0] * row, window * outputs, window)))


def gradient_pieces(g: Geometry, n: int, channels: int, outputs: int) -> list[tuple[slice, slice]]:
    """Ranges of images and output rows with gradients taken to the input in one piece."""
    row = math.prod(g.places[1:])
    return list(pieces(n, g.places[0], row * channels, _budget(_ROWS_PIECE, n * g.places[0] * row, outputs * channels, channels)))


def pieces(n: int, rows: int, row_size: int, budget: int) -> Iterator[tuple[slice, slice]]:
    """Ranges of images and rows with at most `budget` elements, or one row."""
    at_once = max(1, budget // max(1, row_size))
    images = max(1, at_once // max(1, rows))
    step = min(rows, at_once)
    for image in range(0, n, images):
        for row in range(0, rows, max(1, step)):
            yield slice(image, min(n, image + images)), slice(row, min(rows, row + step))


def _budget(usual: int, rows: int, size: int, kept: int) -> int:
    """The elements of a product in one piece; fewer for thin or small ones, to stay in one thread.

    Args:
        usual: the usual number.
        rows: the number of rows.
        size: the elements of the second operand.
        kept: the elements kept for each row.
    """
    small = size <= _SMALL_FACTOR and rows * size <= _SMALL_PRODUCT
    return min(usual, max(1, ONE_THREAD // max(1, size)) * kept) if small or size <= _THIN else usual


@lru_cache(_REMEMBERED)
def columns_pay(g: Geometry, n: int, channels: int, outputs: int) -> bool:
    """True if the output for n images, and the gradient by the filter, should be computed by columns."""
    if g.slides[-1].dilation > 1:  # zeros between the elements times infinite values would show
        return False
    rows, window = n * math.prod(g.places), math.prod(g.window) * channels
    pieces = len(window_pieces(g, n, channels, outputs))
    copying = 5.8e-3 * rows * math.prod(g.window[:-1])
    if by_element(g, channels):
        copying = window * (0.66 * pieces + 5e-3 * rows / g.places[-1] + 5e-4 * rows)
    threads = 1 if rows / pieces * window * outputs <= ONE_THREAD else 2
    windows = 12 + copying + 2e-5 * _product(rows, window, outputs, rows / pieces) / threads
    return _by_columns(g, n, channels, outputs) < windows


@lru_cache(_REMEMBERED)
def input_columns_pay(g: Geometry, n: int, channels: int, outputs: int) -> bool:
    """True if the gradient by n images should be computed by columns."""
    if g.slides[-1].stride > 1 or g.slides[-1].dilation > 1:
        return False
    rows, window = n * math.prod(g.places), math.prod(g.window)
    pieces = len(gradient_pieces(g, n, channels, outputs))
    multiplications = rows * window * channels * outputs * (1 + _FEW / channels) * (1 + _FEW / outputs)
    elements = 11 + window * (4.5 * pieces + 8.2e-3 * rows / g.places[-1] + 2.8e-4 * rows * channels) + 1.3e-5 * multiplications
    return _input_by_columns(g, n, channels, outputs) < elements


def _by_columns(g: Geometry, n: int, channels: int, outputs: int) -> float:
    columns = Columns(g, channels, outputs)
    length, width, height = _sizes(g, n)
    depth = columns.width * columns.size
    pieces = sum(1 for _ in columns.images(n, width))
    parts = sum(1 for _ in columns.parts(math.ceil(length / pieces)))
    blocks = math.ceil(g.places[-1] / columns.at_once)
    multiplying = blocks * _product(length, depth, columns.at_once * outputs, length / pieces / parts)
    copying = 1e-3 * n * height * width * channels + 5.6e-4 * length * width * columns.size
    return 25 * pieces + 2.3 * pieces * parts * blocks + copying + 6.3e-6 * multiplying


def _input_by_columns(g: Geometry, n: int, channels: int, outputs: int) -> float:
    columns = Columns(g, channels, outputs, one_by_one=True)
    length, width, height = _sizes(g, n)
    pieces = sum(1 for _ in columns.images(n, width))
    parts = sum(1 for _ in columns.parts(math.ceil(length / pieces)))
    multiplying = width * _product(length, columns.width * outputs, columns.size, length / pieces / parts)
    transposed = n * height * width * channels + n * math.prod(g.places) * outputs
    copying = 8.3e-4 * transposed + 1.3e-2 * width * columns.size * pieces + 5.9e-4 * length * width * columns.size
    return 20 * pieces + 3.4 * pieces * parts * width + copying + 6.7e-6 * multiplying


def _sizes(g: Geometry, n: int) -> tuple[int, int, int]:
    """The output rows of all images, and the padded width and height (all other dimensions) of one."""
    *others, width = [
        (count - 1) * slide.stride + slide.reach(size) for count, slide, size in zip(g.places, g.slides, g.window, strict=True)
    ]
    return n * math.prod(g.places[:-1]), width, math.prod(others)


def _product(rows: int, depth: int, columns: int, rows_at_once: float) -> float:
    """The multiplications of a product, weighted by the efficiency for few columns and rows."""
    return rows * depth * columns * (1 + _FEW / columns) * (1 + 20 / max(1, rows_at_once))
