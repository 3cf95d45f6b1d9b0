"""Files of records in TensorFlow's form (TFRecord): each with its length and checksums."""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any, Final

from graphcore.errors import InvalidArgumentError, NotFoundError, ResourceExhaustedError
from graphcore.support.crc32c import crc32c, masked
from graphcore.support.files import file_errors
from graphcore.support.reading_limits import reading_limits

_LENGTH: Final = struct.Struct("<Q")
_CHECKSUM: Final = struct.Struct("<I")
_HEAD: Final = _LENGTH.size + _CHECKSUM.size
_PART: Final = 1 << 18
COMPRESSIONS: Final = ("", "ZLIB", "GZIP")
"""The names of the ways in which a whole file is compressed; the first is none."""


def record_bytes(data: bytes) -> bytes:
    """A record as it is in a file."""
    length = _LENGTH.pack(len(data))
    return b"".join([length, _checksum(length), data, _checksum(data)])


def _checksum(data: bytes) -> bytes:
    return _CHECKSUM.pack(masked(crc32c(data)))


def read_records(path: str | os.PathLike[str], compression: str = "") -> Iterator[bytes]:
    """The records of a file, one after another.

    Args:
        path: the file.
        compression: one of `COMPRESSIONS`.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: a record is damaged or cut off.
        ResourceExhaustedError: a record is larger than `reading_limits` allow, or than memory.
    """
    with closing(opened(path, compression)) as file:
        place = 0
        while True:
            head = _taken(file, _HEAD, path, place)
            if not head:
                break
            length = head[: _LENGTH.size]
            if _checksum(length) != head[_LENGTH.size :]:
                raise InvalidArgumentError(f"corrupted record at {place} of '{os.fspath(path)}': the checksum of its length is wrong")
            (size,) = _LENGTH.unpack(length)
            data = _taken(file, size + _CHECKSUM.size, path, place)
            if len(data) <= size or _checksum(data[:size]) != data[size:]:
                raise InvalidArgumentError(f"corrupted record at {place} of '{os.fspath(path)}': the checksum of its data is wrong")
            yield data[:size]
            place += _HEAD + len(data)


def _taken(file: Any, size: int, path: str | os.PathLike[str], place: int) -> bytes:
    """The next bytes; none at the end of the file."""
    try:
        data = read_at_most(file, size, path)
    except DecompressionError as error:
        raise InvalidArgumentError(f"corrupted record at {place} of '{os.fspath(path)}': {error}") from None
    if data and len(data) < size:
        raise InvalidArgumentError(f"truncated record at {place} of '{os.fspath(path)}': {len(data)} of {size} bytes")
    return data


class DecompressionError(Exception):
    """The data of a compressed file are damaged."""


def read_at_most(file: Any, size: int | None, path: str | os.PathLike[str]) -> bytes:
    """The next bytes of a file of `opened`, up to `size`; memory is taken only for bytes that exist.

    Args:
        file: the file.
        size: the number of bytes; None for all.
        path: its name, for errors.

    Raises:
        ResourceExhaustedError: they are compressed and more than `reading_limits.inflated_bytes`, or do not fit into memory.
        FailedPreconditionError: the file cannot be read.
        DecompressionError: the compressed data are damaged.
    """
    with file_errors(path):
        return b"".join(_parts(file, size, path))


def _parts(file: Any, size: int | None, path: str | os.PathLike[str]) -> Iterator[bytes]:
    """The pieces of the next `size` bytes; see `read_at_most`."""
    count = 0
    while size is None or count < size:
        try:
            part = file.read(_PART if size is None else min(size - count, _PART))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DecompressionError(str(error)) from None
        if not part:
            return
        count += len(part)
        check_inflated(file, count, path)
        yield part


def check_inflated(file: Any, size: int, path: str | os.PathLike[str]) -> None:
    """Check the bytes of one piece of a file of `opened`.

    Raises:
        ResourceExhaustedError: they are compressed and more than `reading_limits.inflated_bytes`.
    """
    limit = reading_limits.inflated_bytes
    if size <= limit or not isinstance(file, gzip.GzipFile | _Inflating):
        return
    raise ResourceExhaustedError(f"Cannot read '{os.fspath(path)}': its compressed data have more than {limit} bytes in one piece").advise(
        "If you trust the file, raise the limit: `from graphcore.support.reading_limits import reading_limits; "
        f"reading_limits.inflated_bytes = {limit * 16}`.",
        required=f"at most {limit} bytes",
        came="more",
    )


def opened(path: str | os.PathLike[str], compression: str = "") -> Any:
    """A file for reading, decompressed.

    Raises:
        NotFoundError: there is no such file.
        FailedPreconditionError: it cannot be read.
        InvalidArgumentError: no such compression.
    """
    if compression not in COMPRESSIONS:
        raise InvalidArgumentError(f"Unsupported compression_type: {compression}. Required one of '', 'ZLIB', 'GZIP'")
    try:
        with file_errors(path):
            if compression == "GZIP":
                return gzip.open(path)
            file = Path(path).open("rb")  # noqa: SIM115 - closed by the caller
    except NotFoundError:
        raise NotFoundError(f"{os.fspath(path)}; No such file or directory") from None
    return _Inflating(file) if compression == "ZLIB" else file


class _Inflating:
    """A file of one zlib stream, for reading."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._inflate = zlib.decompressobj()
        self._held = b""

    def read(self, size: int = -1) -> bytes:
        """The next bytes of the data."""
        parts = [self._held]
        length = len(self._held)
        while (size < 0 or length < size) and (packed := self._inflate.unconsumed_tail or self._file.read(_PART)):
            parts.append(self._inflate.decompress(packed, _PART))
            length += len(parts[-1])
        whole = b"".join(parts)
        end = len(whole) if size < 0 else size
        self._held = whole[end:]
        return whole[:end]

    def close(self) -> None:
        """Close the file."""
        self._file.close()
