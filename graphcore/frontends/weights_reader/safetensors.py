"""Safetensors files: a header of JSON, then the elements; and indices of several files."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.frontends.foreign import ForeignGraph, WeightRef
from graphcore.frontends.reading import source_bytes
from graphcore.frontends.weights_reader.tree import checked_sizes, elements_at, file_label, tensor_tree
from graphcore.support.files import file_bytes, file_errors, is_file, open_file

if TYPE_CHECKING:
    from pathlib import Path

    from graphcore.frontends.frontend import Source

_KIND: Final = "safetensors weights"
_LENGTH: Final = 8
_MAX_HEADER: Final = 100_000_000
"""The limit of the format itself."""
_MAX_FILES: Final = 10_000
_INDEX: Final = ".safetensors.index.json"
_METADATA: Final = "__metadata__"


def is_safetensors(source: Source) -> bool:
    """True iff the source is a safetensors file, an index of some, or a folder with an index."""
    if source.path is None or source.is_gzipped:
        return False
    head = source.head
    if not head:
        return source.path.is_dir() and _index_in(source.path) is not None
    if _is_index(head):
        return True
    return head[_LENGTH : _LENGTH + 1] == b"{" and 2 <= int.from_bytes(head[:_LENGTH], "little") <= _MAX_HEADER


def _is_index(head: bytes) -> bool:
    return head.lstrip()[:1] == b"{" and b'"weight_map"' in head


def _index_in(folder: Path) -> Path | None:
    """The index of the folder of a model; None if there is none."""
    try:
        return min((folder / name for name in os.listdir(folder) if name.endswith(_INDEX)), default=None)  # noqa: PTH208 - names only
    except OSError:
        return None


def read_safetensors(source: Source) -> ForeignGraph:
    """Read the tensors of a file, or of all files of an index. No elements are read.

    Raises:
        GraphError: a file is damaged or exceeds a limit, or the index names a file outside its folder.
    """
    path = source.path
    assert path is not None  # files and folders only are sniffed
    if path.is_dir():
        path = _index_in(path)
        assert path is not None  # as sniffed
        return _of_index(path, file_bytes(path))
    if _is_index(source.head):
        return _of_index(path, source_bytes(source))
    tensors, metadata = _header(path)
    return tensor_tree(_KIND, "safetensors", tensors, metadata, producer=metadata.get("format", ""), name=file_label(path))


def _of_index(path: Path, data: bytes) -> ForeignGraph:
    index = _json(data, path.name)
    places = index.get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(name, str) for name in places.values()):
        raise InvalidArgumentError(f"'{path.name}' has no 'weight_map' from tensors to files")
    files = sorted(set(places.values()))
    if len(files) > _MAX_FILES or any(name in {"", ".", ".."} or "/" in name or "\\" in name or "\0" in name for name in files):
        raise InvalidArgumentError(f"'{path.name}' names a file that is not in its own folder, or more than {_MAX_FILES:,} files")
    tensors: dict[str, WeightRef] = {}
    absent = []
    for name in files:
        if not is_file(path.parent / name):
            absent.append(name)
            continue
        weights, _ = _header(path.parent / name)
        tensors |= {key: weight for key, weight in weights.items() if places.get(key) == name}
    if absent and len(absent) == len(files):
        raise NotFoundError(f"'{path.name}' names {len(files):,} files, and none is beside it: {', '.join(absent[:3])}")
    lost = [key for key in places if key not in tensors]
    notes = [f"{len(absent)} of {len(files)} files are not beside the index: {', '.join(absent[:5])}."] if absent else []
    if lost:
        notes.append(f"{len(lost):,} tensors of the index are in none of the files that are there.")
    metadata = index.get("metadata")
    facts = {"files": f"{len(files):,}", **(_texts(metadata) if isinstance(metadata, dict) else {})}
    return tensor_tree(_KIND, "safetensors", tensors, facts, notes, name=file_label(path))


def _header(path: Path) -> tuple[dict[str, WeightRef], dict[str, str]]:
    """The tensors and the metadata of one file.

    Raises:
        InvalidArgumentError: the header is damaged.
    """
    with open_file(path) as file, file_errors(path):
        whole = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(_LENGTH), "little")
        if not 2 <= length <= min(_MAX_HEADER, whole - _LENGTH):
            raise InvalidArgumentError(f"'{path.name}' claims a header of {length:,} bytes, and has {whole:,} in all")
        header = _json(file.read(length), path.name)
    start = _LENGTH + length
    tensors: dict[str, WeightRef] = {}
    for name, entry in header.items():
        if name == _METADATA:
            continue
        what = f"Tensor '{name[:200]}' of '{path.name}'"
        offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
        sizes = entry.get("shape") if isinstance(entry, dict) else None
        if not isinstance(offsets, list) or not isinstance(sizes, list) or not isinstance(entry.get("dtype"), str):
            raise InvalidArgumentError(f"{what}: required dtype, shape and data_offsets, got {str(entry)[:200]}")
        places = checked_sizes(offsets, f"{what}, data_offsets:")
        if len(places) != 2 or not places[0] <= places[1] <= whole - start:
            raise InvalidArgumentError(f"{what} is at bytes {str(offsets)[:100]} of {whole - start:,}")
        dtype, shape = entry["dtype"][:50], checked_sizes(sizes, what)
        begin, size = start + places[0], places[1] - places[0]
        load = partial(elements_at, path, begin, size, what, dtype, shape)
        tensors[name] = WeightRef(dtype, shape, size, load, f"{path.name}, from byte {begin:,}")
    metadata = header.get(_METADATA)
    return tensors, _texts(metadata) if isinstance(metadata, dict) else {}


def _texts(values: dict[str, Any]) -> dict[str, str]:
    return {key: str(value) for key, value in values.items()}


def _json(data: bytes, name: str) -> dict[str, Any]:
    try:
        parsed = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"'{name}' is damaged: its JSON cannot be read: {str(error)[:200]}") from None
    if not isinstance(parsed, dict):
        raise InvalidArgumentError(f"'{name}' is damaged: required a JSON object, got {type(parsed).__name__}")
    return parsed
