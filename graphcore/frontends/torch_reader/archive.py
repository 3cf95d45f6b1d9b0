"""Zip archives as PyTorch writes them: one folder of members, most of them stored as they are."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from graphcore.errors import GraphError, InvalidArgumentError, ResourceExhaustedError
from graphcore.frontends.frontend import Source
from graphcore.support.files import open_file
from graphcore.support.memory_limits import check_claim
from graphcore.support.reading_limits import reading_limits

_DAMAGED: Final = (
    *(zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OSError, EOFError, ValueError, struct.error),
    *(KeyError, IndexError, OverflowError),
)
_CHUNK: Final = 1 << 20


class Archive:
    """The members of an archive by their names without the folder around them all.

    Args:
        path: the file.
        inside: the member that is an archive itself and is meant, "" for the file.

    Attributes:
        path: the file.
        sizes: the members' sizes in bytes by name.

    Raises:
        GraphError: the file is damaged.
    """

    def __init__(self, path: Path, inside: str = "") -> None:
        self.path = path
        self._inside = inside
        with self._opened() as archive:
            infos = archive.infolist()
        root = common_folder([info.filename for info in infos])
        self._names = {info.filename[len(root) :]: info.filename for info in infos}
        self.sizes = {info.filename[len(root) :]: info.file_size for info in infos}
        self.is_big_endian = "byteorder" in self.sizes and self.read("byteorder").strip() == b"big"

    def __contains__(self, name: str) -> bool:
        """True iff there is a member of this name."""
        return name in self._names

    def read(self, name: str) -> bytes:
        """The bytes of a member.

        Raises:
            InvalidArgumentError: there is none of this name, or it is damaged.
            ResourceExhaustedError: it is larger than the limit of compressed data, or than the memory.
        """
        with self.opened(name) as file:
            return self._rest(file, name)

    def _rest(self, file: IO[bytes], name: str) -> bytes:
        """The bytes of an open member, up to the limit."""
        parts, size = [], 0
        while part := file.read(_CHUNK):
            size += len(part)
            if size > reading_limits.inflated_bytes:
                raise ResourceExhaustedError(
                    f"'{name}' in '{self.path.name}' unpacks to more than {reading_limits.inflated_bytes:,} bytes, the limit"
                )
            parts.append(part)
        return b"".join(parts)

    def stored_as(self, name: str) -> str:
        """The whole name of a member that is stored as it is, "" for one that is compressed."""
        with self._opened() as archive:
            whole = self._names[name]
            return whole if archive.getinfo(whole).compress_type == zipfile.ZIP_STORED else ""

    def part(self, name: str, offset: int, length: int) -> bytes:
        """Some bytes of a member, which must be there.

        Raises:
            GraphError: they are not, or do not fit into memory.
        """
        size = self.sizes.get(name, 0)
        if offset < 0 or length < 0 or offset + length > size:
            raise InvalidArgumentError(f"Required bytes {offset:,} to {offset + length:,} of '{name}', which has {size:,}")
        check_claim(length, f"'{name}' in '{self.path.name}'")
        with self.opened(name) as file:
            file.seek(offset)
            data = file.read(length)
        if len(data) != length:
            raise InvalidArgumentError(f"'{name}' in '{self.path.name}' is cut off: required {length:,} bytes, got {len(data):,}")
        return data

    @contextmanager
    def opened(self, name: str) -> Iterator[IO[bytes]]:
        """A member, open for reading.

        Raises:
            InvalidArgumentError: there is none of this name, or it is damaged.
        """
        whole = self._names.get(name)
        if whole is None:
            raise InvalidArgumentError(f"'{self.path.name}' has no member '{name}'")
        with self._opened() as archive, archive.open(whole) as file:
            yield file

    @contextmanager
    def _opened(self) -> Iterator[zipfile.ZipFile]:
        try:
            with open_file(self.path) as file, zipfile.ZipFile(file) as archive:
                if not self._inside:
                    yield archive
                    return
                with archive.open(self._inside) as member, zipfile.ZipFile(member) as inner:
                    yield inner
        except GraphError:
            raise
        except _DAMAGED as error:
            raise InvalidArgumentError(f"'{self.path.name}' is a damaged zip archive: {str(error)[:200]}") from None


def common_folder(names: list[str] | tuple[str, ...]) -> str:
    """The folder around all members with a slash, "" if there is none."""
    first = names[0].partition("/") if names else ("", "", "")
    root = first[0] + first[1]
    return root if first[1] and all(name.startswith(root) for name in names) else ""


def inner_names(source: Source) -> frozenset[str]:
    """The names of a source's members without the folder around them all."""
    root = common_folder(source.members)
    return frozenset([name[len(root) :] for name in source.members])
