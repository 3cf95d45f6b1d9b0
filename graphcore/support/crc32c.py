"""CRC-32C, the checksum of checkpoints and event files, in NumPy.

A checksum is linear in the bits: long data is cut into lanes, whose checksums are computed side by side and then joined.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np
import numpy.typing as npt

_POLYNOMIAL: Final = 0x82F63B78
_ALL: Final = 0xFFFFFFFF
_MASK_DELTA: Final = 0xA282EAD8
_LANE: Final = 256
"""The bytes of a lane of long data; lanes longer by a power of two are joined pairwise."""
_SHORT: Final = 1024
_PART: Final = 1 << 22
"""The bytes that are worked on at once."""

Words = npt.NDArray[np.uint32]


@functools.cache
def _byte_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


@functools.cache
def _word_tables() -> tuple[Words, Words]:
    """The effect of the low and of the high half of a word on a checksum, four bytes later."""
    table = np.array(_byte_table(), np.uint32)
    tables = []
    for place in (0, 1):
        values = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16 * place)
        for _ in range(4):
            values = values >> np.uint32(8) ^ table[values & np.uint32(0xFF)]
        tables.append(values)
    return tables[0], tables[1]


@functools.lru_cache(256)
def _shift_tables(length: int) -> Words:
    """The effect of each byte of a checksum after `length` bytes of zeros: [4, 256]."""
    if length == 1:
        table = np.array(_byte_table(), np.uint32)
        values = np.arange(256, dtype=np.uint32)[None, :] << (np.arange(4, dtype=np.uint32) * 8)[:, None]
        shifted: Words = values >> np.uint32(8) ^ table[values & np.uint32(0xFF)]
        return shifted
    half = _shift_tables(length // 2)
    twice = _shifted(half, half)
    return _shifted(_shift_tables(1), twice) if length % 2 else twice


def _shifted(tables: Words, values: Any) -> Words:
    parts: list[Words] = [tables[i][values >> np.uint32(8 * i) & np.uint32(0xFF)] for i in range(4)]
    return parts[0] ^ parts[1] ^ parts[2] ^ parts[3]


def _long(data: memoryview) -> int:
    """The bare checksum of lanes: one that starts at 0 and is not inverted."""
    low, high = _word_tables()
    lanes = np.frombuffer(data, "<u4").reshape(-1, _LANE // 4).T.copy()
    checksums = np.zeros(lanes.shape[1], np.uint32)
    for column in lanes:
        checksums ^= column
        checksums = low[checksums & np.uint32(0xFFFF)] ^ high[checksums >> np.uint32(16)]
    length = _LANE
    while checksums.size > 1:
        if checksums.size % 2:  # zeros in front change nothing
            checksums = np.concatenate([np.zeros(1, np.uint32), checksums])
        checksums = _shifted(_shift_tables(length), checksums[0::2]) ^ checksums[1::2]
        length *= 2
    return int(checksums[0])


def crc32c(data: bytes | bytearray | memoryview, before: int = 0) -> int:
    """The CRC-32C of `data`, continued from the checksum of what is `before` it."""
    view = memoryview(data).cast("B")
    state = before ^ _ALL
    start = 0
    while len(view) - start >= _SHORT:
        end = min(start + _PART, len(view))
        end -= (end - start) % _LANE
        state = int(_shifted(_shift_tables(end - start), np.uint32(state))) ^ _long(view[start:end])
        start = end
    table = _byte_table()
    for byte in view[start:]:
        state = state >> 8 ^ table[(state ^ byte) & 0xFF]
    return state ^ _ALL


def masked(checksum: int) -> int:
    """A checksum in the form in which files hold it, so that checksums of data with checksums stay good."""
    return ((checksum >> 15 | checksum << 17) + _MASK_DELTA) & _ALL


def unmasked(checksum: int) -> int:
    """The checksum of its form in files."""
    turned = (checksum - _MASK_DELTA) & _ALL
    return (turned >> 17 | turned << 15) & _ALL
