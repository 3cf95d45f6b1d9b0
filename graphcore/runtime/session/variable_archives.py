"""Archives of arrays, as NumPy writes them (`.npz`). Names, types and shapes are read before any array is."""

from __future__ import annotations

import math
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from graphcore.attrs import Array
from graphcore.errors import GraphError, InvalidArgumentError, NotFoundError, ResourceExhaustedError
from graphcore.support.critical_section import critical_contextmanager, critical_section
from graphcore.support.files import open_file
from graphcore.support.memory_limits import check_claim
from graphcore.support.reading_limits import reading_limits

_SUFFIX: Final = ".npy"
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_MOST_DIMENSIONS: Final = 64
_FLAWS: Final = (
    *(OSError, EOFError, ValueError, TypeError, KeyError, SyntaxError, RuntimeError, OverflowError, MemoryError),
    *(tokenize.TokenError, struct.error, zipfile.BadZipFile, zlib.error, UserWarning),
)
"""The errors of reading an archive with a damaged directory, array header or array."""


class Archive:
    """An archive that is open for reading."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, size: int) -> None:
        self._path = path
        self._archive = archive
        self._size = size
        self._parts = {info.filename.removesuffix(_SUFFIX): info for info in archive.infolist()}
        if len(self._parts) != len(archive.infolist()):
            raise InvalidArgumentError(f"'{path}' holds two arrays of one name")

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def kind(self, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Shape and type of an array."""
        info = self._parts[name]
        with self._reading():
            if info.compress_type not in _METHODS or (info.compress_type == zipfile.ZIP_STORED and info.file_size > self._size):
                raise ValueError(f"'{name}' has an unknown compression, or more bytes than the file")
        with self._reading(), self._archive.open(info) as part:
            version = np.lib.format.read_magic(part)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(part)
            self._check_size(name, part.tell(), shape, dtype)
        return shape, dtype

    def _check_size(self, name: str, begin: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        held = self._parts[name].file_size - begin
        if any(size < 0 for size in shape) or len(shape) > _MOST_DIMENSIONS or math.prod(shape) * dtype.itemsize != held:
            raise ValueError(f"'{name}' has {held} bytes for shape {list(shape)} of {dtype}")
        check_claim(math.prod(max(size, 1) for size in shape) * dtype.itemsize, f"'{name}' in '{self._path}'")

    def array(self, name: str, *, is_expected: bool) -> Array:
        """An array.

        Args:
            name: its name.
            is_expected: True if the caller needs an array of this size; otherwise `reading_limits` limits the size of compressed data.

        Raises:
            InvalidArgumentError: it is damaged.
            ResourceExhaustedError: it is too large.
        """
        info, limit = self._parts[name], reading_limits.inflated_bytes
        if not is_expected and info.compress_type != zipfile.ZIP_STORED and info.file_size > limit:
            raise ResourceExhaustedError(
                f"Cannot read '{name}' in '{self._path}': required at most {limit} bytes of compressed data, got {info.file_size}; "
                "`graphcore.support.reading_limits` has the limit"
            )
        with self._reading(), self._archive.open(info) as part:
            array: Array = np.lib.format.read_array(part, allow_pickle=False)
        return array

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with _flaws(self._path):
            yield


@contextmanager
def opened_archive(path: Path) -> Iterator[Archive]:
    """An archive, open for reading in the block.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: it is no archive.
    """
    try:
        file = open_file(path)
    except NotFoundError:
        raise NotFoundError(f"There is no file '{path}' to restore variables from") from None
    with file:
        with _flaws(path):
            archive = zipfile.ZipFile(file)
        yield Archive(path, archive, os.fstat(file.fileno()).st_size)


@contextmanager
def _flaws(path: Path) -> Iterator[None]:
    try:
        yield
    except GraphError:
        raise
    except _FLAWS as error:
        raise InvalidArgumentError(f"'{path}' is no file of variables, which is a .npz archive: {error}") from None


def write_archive(file: IO[bytes], values: Mapping[str, Array]) -> None:
    """Write arrays like `np.savez`, which cannot store names such as `file` and `allow_pickle`."""
    with _writing(file) as archive:
        for name, value in values.items():
            with critical_section, archive.open(name + _SUFFIX, "w", force_zip64=True) as part:
                np.lib.format.write_array(part, value, allow_pickle=False)


@critical_contextmanager
def _writing(file: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    with zipfile.ZipFile(file, "w") as archive:
        yield archive
