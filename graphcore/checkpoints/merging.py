"""Making one checkpoint of several. Until it is whole, they are."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from graphcore.checkpoints.bundles import Entry, data_path, index_path
from graphcore.checkpoints.reading import read_index
from graphcore.checkpoints.writing import complete, free_count
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.support.files import checked_path, file_errors, is_file
from graphcore.support.replacing import replacing


def merge_checkpoints(prefixes: Sequence[str], destination: str, *, delete_old_dirs: bool = True) -> None:
    """Make one checkpoint of several: their data files become its shards.

    Raises:
        NotFoundError: a file is missing.
        InvalidArgumentError: an index is damaged, or a name is in two.
        FailedPreconditionError: a file cannot be moved.
    """
    entries: dict[bytes, Entry] = {}
    sources: list[Path] = []
    for prefix in prefixes:
        shards, index = read_index(prefix)
        _add(entries, index, len(sources))
        for shard in range(shards):
            source = Path(data_path(prefix, shard, shards))
            if not is_file(source):
                raise NotFoundError(f"Cannot merge checkpoint '{prefix}': there is no file '{source}'")
            sources.append(source)
    place = checked_path(destination)
    shards = free_count(destination, len(sources))
    for shard, source in enumerate(sources):
        _link_or_copy(source, Path(data_path(destination, shard, shards)))
    complete(destination, entries, begun=len(sources), shards=shards)
    others = [prefix for prefix in prefixes if Path(prefix) != place]
    folders = {Path(prefix).parent for prefix in others} - {place.parent}
    with file_errors(destination, "remove the checkpoints that were merged to"):
        for path in [*sources, *(Path(index_path(prefix)) for prefix in others)]:
            path.unlink(missing_ok=True)
        _remove_empty(folders if delete_old_dirs else ())


def _remove_empty(folders: Iterable[Path]) -> None:
    for folder in folders:
        if not any(folder.iterdir()):
            folder.rmdir()


def _add(entries: dict[bytes, Entry], index: dict[bytes, Entry], first: int) -> None:
    """Add the entries of a checkpoint whose files get the numbers from `first` on."""
    for key, entry in index.items():
        earlier = entries.get(key)
        if earlier is not None and not (entry.slices and earlier.slices):
            raise InvalidArgumentError(f"Cannot merge checkpoints: '{key.decode(errors='replace')}' is in two of them")
        shift = 0 if entry.slices else first
        slices = (*earlier.slices, *entry.slices) if earlier is not None else entry.slices
        entries[key] = Entry(entry.dtype, entry.shape, entry.shard + shift, entry.offset, entry.size, entry.checksum, slices)


def _link_or_copy(source: Path, target: Path) -> None:
    with file_errors(target, "write"):
        target.unlink(missing_ok=True)
        try:
            target.hardlink_to(source)
        except (OSError, NotImplementedError):  # another file system, or one without links
            with source.open("rb") as data, replacing(target) as file:
                shutil.copyfileobj(data, file)
