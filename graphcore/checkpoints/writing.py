"""Writing checkpoints, each file atomically: the data first, then the index that names them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from graphcore.attrs import Array
from graphcore.checkpoints.bundles import (
    HEADER_KEY,
    Entry,
    data_path,
    entry_bytes,
    header_bytes,
    index_path,
    read_entry,
    strings_bytes,
)
from graphcore.checkpoints.slices import SliceSpec, slice_key
from graphcore.checkpoints.sorted_table import read_table, table_bytes
from graphcore.definitions.wire import schema
from graphcore.dtypes import DType, string
from graphcore.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, UnimplementedError
from graphcore.support.crc32c import crc32c, masked
from graphcore.support.replacing import replacing, write_file

_ONE_SHARD: Final = 1
Named = tuple[str, SliceSpec | None, DType, Array]
"""Name, part or None for the whole, type and elements."""


def write_checkpoint(prefix: str, tensors: Iterable[Named]) -> None:
    """Write a checkpoint. The folder must exist.

    Raises:
        InvalidArgumentError: a name twice, or parts that do not fit together.
        UnimplementedError: a tensor of handles.
        FailedPreconditionError: a file cannot be written.
    """
    entries: dict[bytes, Entry] = {}
    offset = 0
    with replacing(Path(data_path(prefix, 0, _ONE_SHARD))) as file:
        for name, spec, dtype, value in tensors:
            data, checksum = _encoded(name, dtype, value)
            file.write(data)
            key = name.encode() if spec is None else slice_key(name.encode(), spec.extents)
            if key in entries or not name:
                raise InvalidArgumentError(f"Cannot write checkpoint '{prefix}': tensor '{name}' is given twice, or has no name")
            entries[key] = Entry(dtype, value.shape, 0, offset, len(data), checksum)
            if spec is not None:
                _add_part(entries, name, spec, dtype, value)
            offset += len(data)
    _write_index(prefix, entries, _ONE_SHARD)


def _encoded(name: str, dtype: DType, value: Array) -> tuple[bytes | memoryview, int]:
    if dtype.as_numpy is None:
        raise UnimplementedError(f"Tensor '{name}' is of type {dtype.name}, which checkpoints do not hold here")
    if dtype is string:
        return strings_bytes(value.reshape(-1).tolist())
    data = np.ascontiguousarray(value).reshape(-1).view(np.uint8).data
    return data, masked(crc32c(data))


def _add_part(entries: dict[bytes, Entry], name: str, spec: SliceSpec, dtype: DType, value: Array) -> None:
    whole = entries.get(name.encode(), Entry(dtype, spec.full_shape, 0, 0, 0, 0))
    if whole.dtype is not dtype or whole.shape != spec.full_shape or value.shape != spec.shape():
        raise InvalidArgumentError(f"The parts of tensor '{name}' have different types or shapes")
    entries[name.encode()] = Entry(dtype, spec.full_shape, 0, 0, 0, 0, (*whole.slices, spec.extents))


def _write_index(prefix: str, entries: dict[bytes, Entry], shards: int) -> None:
    values = [(HEADER_KEY, header_bytes(shards)), *sorted((key, entry_bytes(entry)) for key, entry in entries.items())]
    write_file(Path(index_path(prefix)), table_bytes(values))


def merge_checkpoints(prefixes: Sequence[str], destination: str, *, delete_old_dirs: bool = True) -> None:
    """Make one checkpoint of several: their data files become its shards.

    Raises:
        NotFoundError: a file is missing.
        InvalidArgumentError: an index is damaged, or a name is in two.
        FailedPreconditionError: a file cannot be moved.
    """
    entries: dict[bytes, Entry] = {}
    moves: list[tuple[str, int]] = []
    for prefix in prefixes:
        try:
            values = read_table(Path(index_path(prefix)).read_bytes())
        except FileNotFoundError:
            raise NotFoundError(f"There is no checkpoint '{prefix}' to merge") from None
        header = schema.BundleHeader.FromString(values.pop(HEADER_KEY, b""))
        first = len(moves)
        moves += [(data_path(prefix, i, header.num_shards), first + i) for i in range(header.num_shards)]
        for key, value in values.items():
            entry = read_entry(value)
            known = entries.get(key)
            if known is not None and not (entry.slices and known.slices):
                raise InvalidArgumentError(f"Cannot merge checkpoints: '{key.decode(errors='replace')}' is in two of them")
            shift = 0 if entry.slices else first
            slices = (*known.slices, *entry.slices) if known is not None else entry.slices
            entries[key] = Entry(entry.dtype, entry.shape, entry.shard + shift, entry.offset, entry.size, entry.checksum, slices)
    try:
        for path, shard in moves:
            shutil.move(path, data_path(destination, shard, len(moves)))
        _write_index(destination, entries, len(moves))
        for prefix in prefixes:
            Path(index_path(prefix)).unlink(missing_ok=True)
            folder = Path(prefix).parent
            if delete_old_dirs and folder != Path(destination).parent and not any(folder.iterdir()):
                folder.rmdir()
    except OSError as error:
        raise FailedPreconditionError(f"Cannot merge checkpoints to '{destination}': {error}") from error
