"""The files of a checkpoint: their names, the entries of the index, and the bytes of strings."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from google.protobuf.message import DecodeError

from graphcore.attrs import Array
from graphcore.checkpoints.slices import SliceSpec
from graphcore.checkpoints.varints import read_varint, varint
from graphcore.definitions.wire import schema
from graphcore.definitions.wire.tensors import read_shape, write_shape
from graphcore.dtypes import DType, dtype_from_wire
from graphcore.errors import InvalidArgumentError, UnimplementedError
from graphcore.shapes import Shape
from graphcore.support.crc32c import crc32c, masked

HEADER_KEY: Final = b""
_FULL: Final = -1
_LITTLE: Final = 0
_WORD: Final = struct.Struct("<I")
_LONG: Final = struct.Struct("<Q")
_LARGEST_WORD: Final = 0xFFFFFFFF


class Entry(msgspec.Struct, frozen=True):
    """The place of a tensor in the files of a checkpoint.

    Attributes:
        shard: the number of its file.
        offset, size: its bytes in the file.
        checksum: of these, in the form of files.
        slices: the extents of its parts, each with an entry of its own, for a tensor in parts.
    """

    dtype: DType
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    checksum: int
    slices: tuple[tuple[tuple[int, int], ...], ...] = ()


def data_path(prefix: str, shard: int, count: int) -> str:
    """The name of a file with elements."""
    return f"{prefix}.data-{shard:05d}-of-{count:05d}"


def index_path(prefix: str) -> str:
    """The name of the file with the index."""
    return f"{prefix}.index"


def data_files(prefix: str) -> list[Path]:
    """The files with elements in the folder, those of earlier saves included."""
    folder, name = os.path.split(prefix)
    pattern = re.compile(rf"{re.escape(name)}\.data-\d{{5,}}-of-\d{{5,}}", re.ASCII)
    return sorted(path for path in Path(folder).iterdir() if pattern.fullmatch(path.name))


def read_header(data: bytes) -> int:
    """The number of files with elements, from the header of an index.

    Raises:
        InvalidArgumentError: it is no header.
        UnimplementedError: the elements have another order of bytes.
    """
    header = schema.BundleHeader()
    try:
        header.ParseFromString(data)
    except DecodeError:
        raise InvalidArgumentError("its header cannot be read") from None
    if header.num_shards <= 0 or not data:
        raise InvalidArgumentError("it has no header of a checkpoint")
    if header.endianness != _LITTLE:
        raise UnimplementedError("its numbers have their large end first")
    shards: int = header.num_shards
    return shards


def read_entry(data: bytes) -> Entry:
    """The entry in the value of an index.

    Raises:
        InvalidArgumentError: it is none.
    """
    message = schema.BundleEntry()
    try:
        message.ParseFromString(data)
    except DecodeError:
        raise InvalidArgumentError("an entry cannot be read") from None
    dims = read_shape(message.shape).dims
    if dims is None or None in dims or message.size < 0 or message.offset < 0:
        raise InvalidArgumentError("an entry has no full shape, or a negative place")
    slices = tuple(
        tuple((extent.start, extent.length if extent.HasField("length") else _FULL) for extent in part.extent) for part in message.slices
    )
    sizes = tuple(size for size in dims if size is not None)
    return Entry(dtype_from_wire(message.dtype), sizes, message.shard_id, message.offset, message.size, message.crc32c, slices)


def entry_bytes(entry: Entry) -> bytes:
    """An entry as the value of an index."""
    message = schema.BundleEntry(
        dtype=entry.dtype.number, shard_id=entry.shard, offset=entry.offset, size=entry.size, crc32c=entry.checksum
    )
    write_shape(Shape(entry.shape), message.shape)
    for extents in entry.slices:
        part = message.slices.add()
        for start, length in extents:
            extent = part.extent.add(start=start)
            if length != _FULL:
                extent.length = length
    data: bytes = message.SerializeToString(deterministic=True)
    return data


def header_bytes(shards: int) -> bytes:
    """The header of an index."""
    message = schema.BundleHeader(num_shards=shards)
    message.version.producer = 1
    data: bytes = message.SerializeToString(deterministic=True)
    return data


def strings_bytes(strings: Iterable[bytes]) -> tuple[bytes, int]:
    """The bytes of an array of strings in a file, and their checksum.

    These are the lengths, a checksum of them, and the strings. Checksums are of the lengths as whole words.
    """
    strings = list(strings)
    lengths = b"".join(varint(len(text)) for text in strings)
    words = b"".join((_WORD if len(text) <= _LARGEST_WORD else _LONG).pack(len(text)) for text in strings)
    of_lengths = crc32c(words)
    joined = _WORD.pack(masked(of_lengths)) + b"".join(strings)
    return lengths + joined, masked(crc32c(joined, of_lengths))


def read_strings(data: bytes, count: int) -> tuple[Array, int]:
    """The strings in bytes of a file, and the checksum of these.

    Raises:
        InvalidArgumentError: they are no `count` strings.
    """
    if count > len(data):
        raise InvalidArgumentError(f"{count} strings in {len(data)} bytes")
    position, lengths = 0, []
    for _ in range(count):
        length, position = read_varint(data, position)
        lengths.append(length)
    if len(data) != position + _WORD.size + sum(lengths):
        raise InvalidArgumentError(f"{len(data)} bytes for {count} strings of together {sum(lengths)}")
    of_lengths = crc32c(b"".join((_WORD if length <= _LARGEST_WORD else _LONG).pack(length) for length in lengths))
    strings: np.ndarray[Any, Any] = np.empty(count, object)
    checksum = masked(crc32c(memoryview(data)[position:], of_lengths))
    position += _WORD.size
    for i, length in enumerate(lengths):
        strings[i] = data[position : position + length]
        position += length
    return strings, checksum


def part_spec(entry: Entry, extents: tuple[tuple[int, int], ...]) -> SliceSpec:
    """One of the parts of a tensor.

    Raises:
        InvalidArgumentError: it does not fit into the tensor.
    """
    sizes = entry.shape
    wrong = len(extents) != len(sizes)
    if wrong or any(start < 0 or (length != _FULL and start + length > size) for (start, length), size in zip(extents, sizes, strict=True)):
        raise InvalidArgumentError(f"a part {list(extents)} of a tensor of shape {list(sizes)}")
    return SliceSpec(sizes, extents)
