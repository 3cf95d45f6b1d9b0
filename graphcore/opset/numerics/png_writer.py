"""Images as PNG files, byte by byte those of TensorFlow.

The filters and the compression are those that libpng chooses.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, Final

import numpy as np

_COLOURS: Final = {1: 0, 2: 4, 3: 2, 4: 6}
"""PNG's type of colours by the number of channels."""
_PART: Final = 8192
"""The most bytes of image data in a chunk."""
_LARGEST_WINDOW: Final = 15
_DEFLATE: Final = 8
_MEMORY: Final = 9
_CHECK: Final = 31


def png_bytes(pixels: Any, level: int = -1) -> bytes:
    """An image as a PNG file.

    Args:
        pixels: uint8 or uint16 [height, width, channels]: grey, grey and alpha, red, green and blue, or these and alpha.
        level: zlib's level of compression, 0 to 9; -1 for its usual one.
    """
    height, width, channels = pixels.shape
    size = pixels.dtype.itemsize
    header = struct.pack(">IIBBBBB", width, height, 8 * size, _COLOURS[channels], 0, 0, 0)
    rows = np.ascontiguousarray(pixels, pixels.dtype.newbyteorder(">")).view(np.uint8).reshape(height, width * channels * size)
    data = _compressed(_filtered(rows, channels * size, width).tobytes(), level)
    parts = [data[start : start + _PART] for start in range(0, len(data), _PART)]
    chunks = [(b"IHDR", header), *[(b"IDAT", part) for part in parts], (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join([_chunk(kind, part) for kind, part in chunks])


def _filtered(rows: Any, step: int, width: int) -> Any:
    """Each row after the number of its filter.

    That is the filter with the least sum of differences, counted as signed bytes.
    """
    left, above, corner = np.zeros_like(rows), np.zeros_like(rows), np.zeros_like(rows)
    left[:, step:] = rows[:, :-step]
    above[1:] = rows[:-1]
    corner[1:, step:] = rows[:-1, :-step]
    one_row, one_column = len(rows) == 1, width == 1
    best = rows.copy()
    kinds = np.zeros(len(rows), np.uint8)
    least = _sums(rows)
    for kind in [kind for kind in (1, 2, 3, 4) if not (one_column and kind != 2) and not (one_row and kind != 1)]:
        difference = rows - _predicted(kind, left, above, corner)
        sums = _sums(difference)
        better = sums < least
        best[better], kinds[better], least = difference[better], kind, np.minimum(sums, least)
    return np.concatenate([kinds[:, None], best], 1)


def _predicted(kind: int, left: Any, above: Any, corner: Any) -> Any:
    if kind == 1:
        return left
    if kind == 2:
        return above
    return _mean(left, above) if kind == 3 else _paeth(left, above, corner)


def _sums(rows: Any) -> Any:
    return np.abs(rows.view(np.int8).astype(np.int16)).sum(1, dtype=np.int64)


def _mean(left: Any, above: Any) -> Any:
    return ((left.astype(np.uint16) + above) // 2).astype(np.uint8)


def _paeth(left: Any, above: Any, corner: Any) -> Any:
    """The neighbour that is nearest to left + above - corner."""
    a, b, c = (part.astype(np.int16) for part in (left, above, corner))
    by_left, by_above, by_corner = np.abs(b - c), np.abs(a - c), np.abs(a + b - 2 * c)
    return np.where((by_left <= by_above) & (by_left <= by_corner), left, np.where(by_above <= by_corner, above, corner))


def _compressed(data: bytes, level: int) -> bytes:
    """A zlib stream; its header asks for the smallest window that the data need."""
    compressor = zlib.compressobj(level, _DEFLATE, _LARGEST_WINDOW, _MEMORY, zlib.Z_FILTERED)
    stream = compressor.compress(data) + compressor.flush()
    bits = next((bits for bits in range(8, _LARGEST_WINDOW) if len(data) <= 1 << bits), _LARGEST_WINDOW)
    first, second = (bits - 8) << 4 | _DEFLATE, stream[1] & 0xE0
    second += -(first << 8 | second) % _CHECK
    return bytes([first, second]) + stream[2:]


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
