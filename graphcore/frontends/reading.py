"""Reading of source files within the limits of memory."""

from __future__ import annotations

import mmap
import os
import zlib
from typing import IO, TYPE_CHECKING, Final

from graphcore.errors import InvalidArgumentError, ResourceExhaustedError
from graphcore.support.files import file_errors, open_file
from graphcore.support.memory_limits import check_claim
from graphcore.support.reading_limits import reading_limits

if TYPE_CHECKING:
    from pathlib import Path

    from graphcore.frontends.frontend import Source

_CHUNK: Final = 1 << 20


def source_bytes(source: Source) -> bytes:
    """The bytes of a source file, gunzipped where it is gzipped.

    Raises:
        FailedPreconditionError: it cannot be read.
        InvalidArgumentError: it is damaged, or no file.
        ResourceExhaustedError: it does not fit into memory, or unpacks to more than the limit.
    """
    if source.path is None:
        raise InvalidArgumentError("Required a file, got an object")
    with open_file(source.path) as file, file_errors(source.path):
        check_claim(os.fstat(file.fileno()).st_size, f"the file '{source.path.name}'")
        if not source.is_gzipped:
            return file.read()
        return _gunzipped(file, source.path.name)


def _gunzipped(file: IO[bytes], name: str) -> bytes:
    """The unpacked bytes of an open gzipped file, up to the limit."""
    unpacker, parts, size = zlib.decompressobj(31), list[bytes](), 0
    while not unpacker.eof:
        packed = unpacker.unconsumed_tail or file.read(_CHUNK)
        if not packed:
            raise InvalidArgumentError(f"The gzipped file '{name}' is cut off")
        try:
            parts.append(unpacker.decompress(packed, _CHUNK))
        except zlib.error as error:
            raise InvalidArgumentError(f"The gzipped file '{name}' is damaged: {error}") from None
        size += len(parts[-1])
        if size > reading_limits.inflated_bytes:
            raise ResourceExhaustedError(
                f"'{name}' unpacks to more than {reading_limits.inflated_bytes:,} bytes, the limit for compressed files"
            )
    return b"".join(parts)


def unmapped(source: Source, data: mmap.mmap | bytes) -> Path | bytes:
    """The place from which `part_of` reads later: the file, or its bytes if it is gzipped. The map is closed.

    A map of a file that another program makes shorter ends the process that looks at it.
    """
    if isinstance(data, bytes) or source.path is None:
        return bytes(data)
    data.close()
    return source.path


def part_of(kept: Path | bytes, first: int, size: int) -> bytes:
    """Some bytes of a file; fewer if it has become shorter.

    Raises:
        GraphError: it cannot be read.
    """
    if isinstance(kept, bytes):
        return kept[first : first + size]
    with open_file(kept) as file, file_errors(kept):
        file.seek(first)
        return file.read(size)


def mapped_bytes(source: Source) -> mmap.mmap | bytes:
    """The bytes of a source file, mapped into memory: only what is looked at is read.

    Close the map when the file has been looked at; `unmapped` does.

    Raises:
        GraphError: as `source_bytes`.
    """
    if source.path is None or source.is_gzipped:
        return source_bytes(source)
    with open_file(source.path) as file, file_errors(source.path):
        if not os.fstat(file.fileno()).st_size:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
