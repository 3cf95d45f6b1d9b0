"""Reading checkpoints.

Every byte that is used has a checksum, so that a damaged file is an error and never a wrong number.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from graphcore.attrs import Array
from graphcore.checkpoints.bundles import HEADER_KEY, Entry, data_path, index_path, part_spec, read_entry, read_header, read_strings
from graphcore.checkpoints.slices import SliceSpec, slice_key
from graphcore.checkpoints.sorted_table import read_table
from graphcore.dtypes import DType, string
from graphcore.errors import GraphError, InvalidArgumentError, NotFoundError, ResourceExhaustedError, UnimplementedError
from graphcore.support.crc32c import crc32c, masked
from graphcore.support.files import checked_path, file_bytes, file_errors, is_file, open_file
from graphcore.support.memory_limits import check_claim

_PART_MARK: Final = b"\0"
"""The keys of parts of tensors begin with it; no name does."""
_LISTED: Final = 10
_MOST_DIMENSIONS: Final = 64
"""NumPy's limit."""


def read_index(prefix: str) -> tuple[int, dict[bytes, Entry]]:
    """The number of files with elements of a checkpoint, and the entries of its index by key.

    Raises:
        NotFoundError: there is no such checkpoint.
        InvalidArgumentError: its index is damaged, or it is another kind of file.
        UnimplementedError: it is compressed, or has another order of bytes.
        ResourceExhaustedError: it expands to many times its size.
    """
    path = index_path(prefix)
    data = file_bytes(path)
    try:
        values = read_table(data)
        shards = read_header(values.pop(HEADER_KEY, b""))
        return shards, {key: read_entry(value) for key, value in values.items()}
    except GraphError as error:
        kind = type(error) if isinstance(error, UnimplementedError | ResourceExhaustedError) else InvalidArgumentError
        raise kind(f"'{path}' is no index of a checkpoint that can be read: {error.message}") from None


class CheckpointReader:
    """A checkpoint of TensorFlow's V2 format; `train.Saver` and TensorFlow write them.

    Args:
        prefix: the path of the checkpoint, without `.index`.

    Raises:
        NotFoundError: there is no such checkpoint.
        InvalidArgumentError: its index is damaged, or it is another kind of file.
    """

    def __init__(self, prefix: str | os.PathLike[str]) -> None:
        checked_path(prefix)
        self.prefix = os.fspath(prefix)
        try:
            self._shards, read = read_index(self.prefix)
        except NotFoundError:
            raise self._missing() from None
        try:
            self._parts = {key: entry for key, entry in read.items() if key.startswith(_PART_MARK)}
            self._entries = {key.decode(): entry for key, entry in read.items() if key not in self._parts}
        except UnicodeDecodeError as error:
            raise InvalidArgumentError(
                f"'{index_path(self.prefix)}' is no index of a checkpoint: a name in it is not UTF-8: {error}"
            ) from None

    def _missing(self) -> NotFoundError:
        if is_file(self.prefix):
            return NotFoundError(
                f"There is no checkpoint '{self.prefix}': there is no file '{index_path(self.prefix)}'. A checkpoint is named without "
                "'.index', '.meta' and '.data-...'; one in a single file has TensorFlow's V1 format, which is not read here"
            )
        return NotFoundError(f"There is no checkpoint '{self.prefix}': there is no file '{index_path(self.prefix)}'").advise(
            "Save one first, or correct the path: `gc.train.latest_checkpoint(folder)` gives the last one of a folder.",
            required="the path that `save` returned",
            came=f"'{self.prefix}'",
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def has_tensor(self, name: str) -> bool:
        """True if the checkpoint has a tensor of this name."""
        return name in self._entries

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """The shape of each tensor, by name."""
        return {name: list(entry.shape) for name, entry in self._entries.items()}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """The type of each tensor, by name."""
        return {name: entry.dtype for name, entry in self._entries.items()}

    def debug_string(self) -> bytes:
        """One line for each tensor: name, type and shape."""
        lines = [f"{name} ({entry.dtype.enum_name}) [{','.join(map(str, entry.shape))}]" for name, entry in sorted(self._entries.items())]
        return "".join(f"{line}\n" for line in lines).encode()

    def get_tensor(self, name: str) -> Array:
        """The tensor of this name; a tensor in several parts is put together.

        Raises:
            NotFoundError: there is none, or its file is missing.
            InvalidArgumentError: its file is damaged.
        """
        entry = self._entry(name)
        if not entry.slices:
            return self._read(name, entry)
        parts = [self._part(name, entry, extents) for extents in entry.slices]
        filled, count = sum(math.prod(part.shape) for _, part in parts), math.prod(entry.shape)
        if filled != count:
            raise InvalidArgumentError(f"Tensor '{name}' of checkpoint '{self.prefix}': its parts have {filled} of {count} elements")
        dtype = self._numpy(name, entry)
        self._check_shared(name, [part for _, part in parts])
        whole = np.empty(entry.shape, dtype)
        for spec, part in parts:
            whole[spec.index()] = self._read(name, part)
        return whole

    def get_part(self, name: str, wanted: SliceSpec | None) -> Array:
        """A part of a tensor; the whole for None.

        Raises:
            NotFoundError: there is no such tensor, or its file is missing.
            InvalidArgumentError: the whole has another shape, or a file is damaged.
        """
        entry = self._entry(name)
        if wanted is None:
            return self.get_tensor(name)
        if entry.shape != wanted.full_shape:
            raise InvalidArgumentError(
                f"Tensor '{name}' of checkpoint '{self.prefix}' has shape {list(entry.shape)}, required is a part of {list(wanted.full_shape)}"
            )
        if wanted.extents in entry.slices:
            return self._read(name, self._part(name, entry, wanted.extents)[1])
        part: Array = self.get_tensor(name)[wanted.index()]
        return part

    def _entry(self, name: str) -> Entry:
        entry = self._entries.get(name)
        if entry is None:
            names = sorted(self._entries)
            more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
            raise NotFoundError(
                f"Key {name} not found in checkpoint '{self.prefix}'; it has {', '.join(names[:_LISTED]) or 'no tensors'}{more}"
            ).advise(
                f"Give your variables the names of the model that was saved, or say which is which: `gc.train.Saver({{'{names[0]}': variable}})`."
                if names
                else "Restore another checkpoint: this one is empty.",
                required=f"'{name}' in the checkpoint",
                came=f"{', '.join(names[:_LISTED]) or 'no tensors'}{more}",
            )
        return entry

    def _part(self, name: str, entry: Entry, extents: tuple[tuple[int, int], ...]) -> tuple[SliceSpec, Entry]:
        try:
            spec = part_spec(entry, extents)
        except InvalidArgumentError as error:
            raise self._damaged(name, error.message) from None
        part = self._parts.get(slice_key(name.encode(), extents))
        if part is None or part.dtype is not entry.dtype or part.shape != spec.shape():
            raise self._damaged(name, f"the part {list(extents)} is missing, or has another type or shape")
        return spec, part

    def _check_shared(self, name: str, parts: Sequence[Entry]) -> None:
        """Check that parts have bytes of their own, so that small files make no large tensors."""
        end = (0, 0)
        for begin, size in sorted(((part.shard, part.offset), part.size) for part in parts):
            if begin < end:
                raise self._damaged(name, f"two of its parts share the bytes at {begin[1]}")
            end = (begin[0], begin[1] + size)

    def _numpy(self, name: str, entry: Entry) -> np.dtype[Any]:
        """The NumPy type of a tensor that an array can hold."""
        dtype = entry.dtype.as_numpy
        if dtype is None:
            raise UnimplementedError(f"Tensor '{name}' of checkpoint '{self.prefix}' is of type {entry.dtype.text}, which is not read")
        if len(entry.shape) > _MOST_DIMENSIONS:
            raise UnimplementedError(
                f"Tensor '{name}' of checkpoint '{self.prefix}' has {len(entry.shape)} dimensions; required at most {_MOST_DIMENSIONS}"
            )
        size = math.prod(max(extent, 1) for extent in entry.shape) * dtype.itemsize  # NumPy counts empty arrays so
        check_claim(size, f"tensor '{name}' of checkpoint '{self.prefix}'")
        return dtype

    def _damaged(self, name: str, text: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"Tensor '{name}' of checkpoint '{self.prefix}' is damaged: {text}")

    def _read(self, name: str, entry: Entry) -> Array:
        dtype, count = self._numpy(name, entry), math.prod(entry.shape)
        if entry.dtype is not string and entry.size != count * dtype.itemsize:
            raise self._damaged(name, f"{entry.size} bytes for shape {list(entry.shape)} of {entry.dtype.text}")
        data = self._bytes(name, entry)
        if entry.dtype is string:
            try:
                array, checksum = read_strings(data, count)
            except InvalidArgumentError as error:
                raise self._damaged(name, error.message) from None
        else:
            array, checksum = np.frombuffer(data, dtype), masked(crc32c(data))
        if checksum != entry.checksum:
            raise self._damaged(name, f"the checksum of its {entry.size} bytes is wrong")
        return array.reshape(entry.shape)

    def _bytes(self, name: str, entry: Entry) -> bytes:
        path = data_path(self.prefix, entry.shard, self._shards)
        try:
            with open_file(path) as file, file_errors(path):
                if os.fstat(file.fileno()).st_size < entry.offset + entry.size:
                    raise self._damaged(name, f"'{path}' ends before its {entry.size} bytes at {entry.offset}")
                file.seek(entry.offset)
                return file.read(entry.size)
        except NotFoundError:
            raise NotFoundError(f"Tensor '{name}' of checkpoint '{self.prefix}': there is no file '{path}'") from None
