"""Sorted tables of keys and values, the file format of LevelDB and of the index of a checkpoint.

A file is a row of blocks: data blocks, an empty block for filters, an index of the data blocks by their last keys, and 48 bytes with the places
of the last two. A block holds entries, whose keys leave out what they share with the one before, and has a checksum.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from graphcore.checkpoints.varints import read_varint, varint
from graphcore.errors import InvalidArgumentError, ResourceExhaustedError, UnimplementedError
from graphcore.support.crc32c import crc32c, masked

_MAGIC: Final = 0xDB4775248B80FB57
_FOOTER: Final = 48
_TRAILER: Final = 5
_RESTART_INTERVAL: Final = 16
_BLOCK_BYTES: Final = 1 << 18
_NOT_COMPRESSED: Final = 0
_SNAPPY: Final = 1
_SHOWN: Final = 40
_EXPANSION: Final = 64
"""The most bytes of all keys of a block for each of its own. Every 16th key is written whole, so honest blocks stay below a quarter of it."""
_WORD: Final = struct.Struct("<I")


def read_table(data: bytes) -> dict[bytes, bytes]:
    """The entries of a table in their order.

    Raises:
        InvalidArgumentError: it is no such table, or damaged.
        UnimplementedError: it is compressed.
        ResourceExhaustedError: its keys, which leave out what they share with the one before, are much longer than the file.
    """
    if len(data) < _FOOTER or int.from_bytes(data[-8:], "little") != _MAGIC:
        raise InvalidArgumentError("it does not end as a sorted table does: it is another file, or cut off")
    footer = data[-_FOOTER:-8]
    _, position = _handle(footer, 0)
    index, _ = _handle(footer, position)
    entries: dict[bytes, bytes] = {}
    last, end = None, 0
    for _, value in _entries(_block(data, index)):
        place, _ = _handle(value, 0)
        if place[0] < end:
            raise InvalidArgumentError(f"its block at {place[0]} begins within another block")
        end = sum(place)
        for key, item in _entries(_block(data, place)):
            if last is not None and key <= last:
                raise InvalidArgumentError(f"its keys are not in order: {key[:_SHOWN]!r} after {last[:_SHOWN]!r}")
            entries[key] = item
            last = key
    return entries


def _handle(data: bytes, position: int) -> tuple[tuple[int, int], int]:
    offset, position = read_varint(data, position)
    size, position = read_varint(data, position)
    return (offset, size), position


def _block(data: bytes, place: tuple[int, int]) -> bytes:
    offset, size = place
    end = offset + size
    if end + _TRAILER > len(data) - _FOOTER:
        raise InvalidArgumentError(f"a block of {size} bytes at {offset} does not fit into its {len(data)} bytes")
    if masked(crc32c(memoryview(data)[offset : end + 1])) != _WORD.unpack_from(data, end + 1)[0]:
        raise InvalidArgumentError(f"the checksum of the {size} bytes at {offset} is wrong: the file is damaged")
    kind = data[end]
    if kind != _NOT_COMPRESSED:
        name = "Snappy" if kind == _SNAPPY else f"method {kind}"
        raise UnimplementedError(f"it is compressed ({name}), which checkpoints are not")
    return data[offset:end]


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    if len(block) < _WORD.size:
        raise InvalidArgumentError("a block is too short")
    end = len(block) - _WORD.size * (1 + _WORD.unpack_from(block, len(block) - _WORD.size)[0])
    if end < 0:
        raise InvalidArgumentError("a block has more restarts than bytes")
    position, key, expanded = 0, b"", 0
    while position < end:
        shared, position = read_varint(block, position)
        own, position = read_varint(block, position)
        size, position = read_varint(block, position)
        if shared > len(key) or position + own + size > end:
            raise InvalidArgumentError("an entry of a block is cut off")
        key = key[:shared] + block[position : position + own]
        position += own
        expanded += len(key)
        if expanded > _EXPANSION * len(block):
            raise ResourceExhaustedError(f"the keys of a block are more than {_EXPANSION} times as long as its {len(block)} bytes")
        yield key, block[position : position + size]
        position += size


class _Block:
    """A block that is being written."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.last = b""
        self._restarts: list[int] = []
        self._count = 0

    def add(self, key: bytes, value: bytes) -> None:
        """Add an entry with a larger key than those before."""
        shared = 0
        if self._count % _RESTART_INTERVAL:
            while shared < min(len(key), len(self.last)) and key[shared] == self.last[shared]:
                shared += 1
        else:
            self._restarts.append(len(self.data))
        self.data += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        self.last = key
        self._count += 1

    def finished(self) -> bytes:
        """The bytes of the block."""
        restarts = self._restarts or [0]
        return bytes(self.data) + b"".join(_WORD.pack(number) for number in (*restarts, len(restarts)))


def table_bytes(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A table of these entries, given in the order of their keys."""
    data, index, block = bytearray(), _Block(), _Block()

    def write(content: bytes) -> bytes:
        handle = varint(len(data)) + varint(len(content))
        framed = content + bytes([_NOT_COMPRESSED])
        data.extend(framed + _WORD.pack(masked(crc32c(framed))))
        return handle

    for key, value in entries:
        block.add(key, value)
        if len(block.data) >= _BLOCK_BYTES:
            index.add(block.last, write(block.finished()))
            block = _Block()
    if block.data:
        index.add(block.last, write(block.finished()))
    handles = write(_Block().finished()) + write(index.finished())
    return bytes(data) + handles.ljust(_FOOTER - 8, b"\0") + _MAGIC.to_bytes(8, "little")
