"""NumPy's files of arrays. Pickled objects in them are never read."""

from __future__ import annotations

import io
import os
import tokenize
import warnings
import zipfile
import zlib
from functools import partial
from math import prod
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np

from graphcore.errors import InvalidArgumentError, ResourceExhaustedError
from graphcore.frontends.foreign import ForeignGraph, WeightRef
from graphcore.frontends.weights_reader.tree import checked_sizes, file_label, tensor_tree
from graphcore.support.files import file_errors, open_file
from graphcore.support.memory_limits import check_claim
from graphcore.support.reading_limits import reading_limits

if TYPE_CHECKING:
    from pathlib import Path

    from graphcore.attrs import Array
    from graphcore.frontends.frontend import Source

MAGIC: Final = b"\x93NUMPY"
ENDING: Final = ".npy"
_MAX_HEADER: Final = 1 << 16
_MAX_ARRAYS: Final = 100_000
_ERRORS: Final = (
    tokenize.TokenError,
    ValueError,
    TypeError,
    SyntaxError,
    KeyError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,
    RecursionError,
)


def read_arrays(source: Source) -> ForeignGraph:
    """Read the headers of arrays.

    Raises:
        GraphError: the file is damaged or exceeds a limit.
    """
    path = source.path
    assert path is not None  # files only are sniffed
    notes: list[str] = []
    if source.members:
        kind, weights = "NumPy arrays (.npz)", _of_archive(path, notes)
    else:
        with open_file(path) as file, file_errors(path):
            weight = _described(file, os.fstat(file.fileno()).st_size, f"'{path.name}'", partial(_load_file, path))
        kind, weights = "NumPy array (.npy)", {file_label(path): weight}
    if any(weight.load is None for weight in weights.values()):
        notes.append("Arrays of Python objects are pickled, and never read, since unpickling runs code.")
    return tensor_tree(kind, "numpy", weights, {}, notes, name=file_label(path))


def _of_archive(path: Path, notes: list[str]) -> dict[str, WeightRef]:
    weights: dict[str, WeightRef] = {}
    others = 0
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist()[:_MAX_ARRAYS]:
                if not info.filename.endswith(ENDING):
                    others += 1
                    continue
                with archive.open(info) as file:
                    what = f"'{info.filename[:200]}' of '{path.name}'"
                    name = info.filename.removesuffix(ENDING)
                    weights[name] = _described(file, info.file_size, what, partial(_load_member, path, info.filename))
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError) as error:
        raise InvalidArgumentError(f"'{path.name}' is a damaged archive of arrays: {str(error)[:200]}") from None
    if others:
        notes.append(f"{others:,} members of the archive are no arrays.")
    return weights


def _described(file: IO[bytes], whole: int, what: str, load: Any) -> WeightRef:
    """An array by its header.

    Raises:
        InvalidArgumentError: the header is damaged.
    """
    header, shape, dtype = _header(file, what)
    size = prod(shape) * dtype.itemsize
    if dtype.hasobject:
        return WeightRef("object", shape, whole - header, None)
    if size > whole - header:
        raise InvalidArgumentError(f"{what} claims {size:,} bytes of elements, and has {max(whole - header, 0):,}")
    word = dtype.name if dtype.names is None and dtype.kind not in "SUV" else str(dtype)
    return WeightRef(word[:200], shape, size, load)


def _header(file: IO[bytes], what: str) -> tuple[int, tuple[int, ...], np.dtype[Any]]:
    """The length of a header, and the shape and type that it gives."""
    data = file.read(_MAX_HEADER)
    head = io.BytesIO(data)
    try:
        with warnings.catch_warnings(action="ignore"):  # about headers of Python 2
            return _parsed(head, what)
    except (*_ERRORS, MemoryError, OverflowError) as error:
        raise InvalidArgumentError(f"{what} is no array that can be read: {str(error)[:200]}") from None


def _parsed(head: io.BytesIO, what: str) -> tuple[int, tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(head)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(head)
    elif version in {(2, 0), (3, 0)}:
        shape, _, dtype = np.lib.format.read_array_header_2_0(head)
    else:
        raise InvalidArgumentError(f"{what} has version {version} of NumPy's form; versions 1 to 3 are read")
    return head.tell(), checked_sizes(shape, what), dtype


def _load_file(path: Path) -> Array:
    with open_file(path) as file, file_errors(path):
        check_claim(os.fstat(file.fileno()).st_size, f"'{path.name}'")
        return _array(file, f"'{path.name}'")


def _load_member(path: Path, member: str) -> Array:
    with open_file(path) as opened, file_errors(path):
        try:
            with zipfile.ZipFile(opened) as archive:
                info = archive.getinfo(member)
                check_claim(info.file_size, f"'{member}'")
                if info.file_size > reading_limits.inflated_bytes and info.compress_type != zipfile.ZIP_STORED:
                    raise ResourceExhaustedError(
                        f"'{member}' unpacks to {info.file_size:,} bytes, and the limit for compressed files is {reading_limits.inflated_bytes:,}"
                    )
                with archive.open(info) as file:
                    return _array(file, f"'{member}' of '{path.name}'")
        except _ERRORS as error:
            raise InvalidArgumentError(f"'{member}' of '{path.name}' is damaged: {str(error)[:200]}") from None


def _array(file: IO[bytes], what: str) -> Array:
    try:
        with warnings.catch_warnings(action="ignore"):
            array: Array = np.lib.format.read_array(file, allow_pickle=False)
    except _ERRORS as error:
        raise InvalidArgumentError(f"{what} is damaged: {str(error)[:200]}") from None
    return array
