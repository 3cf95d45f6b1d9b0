"""Writing checkpoints. At every moment there is a whole one, even if the process ends then.

The index names the files with elements by their number. Elements are written to files that the present index does not name, then the index is
replaced, which is atomic, and then the files of the index before are removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np

from graphcore.attrs import Array
from graphcore.checkpoints.bundles import HEADER_KEY, Entry, data_files, data_path, entry_bytes, header_bytes, index_path, strings_bytes
from graphcore.checkpoints.reading import read_index
from graphcore.checkpoints.slices import SliceSpec, slice_key
from graphcore.checkpoints.sorted_table import table_bytes
from graphcore.dtypes import DType, string
from graphcore.errors import InvalidArgumentError, NotFoundError, ResourceExhaustedError, UnimplementedError
from graphcore.support.crc32c import crc32c, masked
from graphcore.support.files import checked_path, file_errors
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
    checked_path(prefix)
    shards = free_count(prefix, _ONE_SHARD)
    usual = Path(data_path(prefix, 0, _ONE_SHARD))
    with replacing(Path(data_path(prefix, 0, shards)), like=usual) as file:
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
    complete(prefix, entries, begun=1, shards=shards)
    if shards != _ONE_SHARD and _links(Path(data_path(prefix, 0, shards)), usual):
        complete(prefix, entries, begun=1, shards=_ONE_SHARD)


def _links(data: Path, usual: Path) -> bool:
    """Give the file with elements the usual name too, which programs may expect. False on a file system without links."""
    try:
        usual.unlink(missing_ok=True)
        usual.hardlink_to(data)
    except (OSError, NotImplementedError):
        return False
    return True


def free_count(prefix: str, wanted: int) -> int:
    """A number of files whose names the present index does not use: the wanted one, or the next."""
    try:
        used, _ = read_index(prefix)
    except (NotFoundError, InvalidArgumentError, UnimplementedError, ResourceExhaustedError):
        return wanted  # there is no checkpoint to keep
    return wanted if used != wanted else wanted + 1


def complete(prefix: str, entries: dict[bytes, Entry], *, begun: int, shards: int) -> None:
    """Complete a checkpoint whose elements are written.

    Empty files make up the number of files. Then the index is replaced, and files that it does not name are removed.

    Args:
        prefix: the path of the checkpoint.
        entries: of the index, by key.
        begun: the number of files that are written.
        shards: the number of files.

    Raises:
        FailedPreconditionError: a file cannot be written or removed.
    """
    for shard in range(begun, shards):
        write_file(Path(data_path(prefix, shard, shards)), b"")
    _write_index(prefix, entries, shards)
    named = {Path(data_path(prefix, shard, shards)) for shard in range(shards)}
    with file_errors(prefix, "remove the files of the checkpoint before at"):
        for path in sorted(set(data_files(prefix)) - named):
            path.unlink(missing_ok=True)


def _write_index(prefix: str, entries: dict[bytes, Entry], shards: int) -> None:
    values = [(HEADER_KEY, header_bytes(shards)), *sorted((key, entry_bytes(entry)) for key, entry in entries.items())]
    write_file(Path(index_path(prefix)), table_bytes(values))


def _encoded(name: str, dtype: DType, value: Array) -> tuple[bytes | memoryview, int]:
    if dtype.as_numpy is None:
        raise UnimplementedError(f"Tensor '{name}' is of type {dtype.text}, which checkpoints do not hold here")
    if dtype is string:
        return strings_bytes(value.reshape(-1).tolist())
    data = np.ascontiguousarray(value).reshape(-1).view(np.uint8).data
    return data, masked(crc32c(data))


def _add_part(entries: dict[bytes, Entry], name: str, spec: SliceSpec, dtype: DType, value: Array) -> None:
    whole = entries.get(name.encode(), Entry(dtype, spec.full_shape, 0, 0, 0, 0))
    if whole.dtype is not dtype or whole.shape != spec.full_shape or value.shape != spec.shape():
        raise InvalidArgumentError(f"The parts of tensor '{name}' have different types or shapes")
    entries[name.encode()] = Entry(dtype, spec.full_shape, 0, 0, 0, 0, (*whole.slices, spec.extents))
