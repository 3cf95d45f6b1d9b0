"""Arrays of HDF5 files, found without reading their elements."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.frontends.foreign import WeightRef
from graphcore.frontends.libraries import library
from graphcore.frontends.torch_reader.archive import Archive
from graphcore.support.memory_limits import check_claim

_MAX_ARRAYS: Final = 200_000
_MAX_DEPTH: Final = 60


class HdfWeights:
    """The arrays of a file by their paths.

    Args:
        path: the HDF5 file, or an archive with one.
        member: the member of the archive, "" for the file itself.

    Attributes:
        all: the arrays by path.

    Raises:
        GraphError: the file is damaged, or `h5py` is missing.
    """

    def __init__(self, path: Path, member: str = "") -> None:
        self._path = path
        self._member = member
        self._h5py = library("h5py", "keras", "a file of Keras with weights in HDF5")
        self._texts: dict[tuple[str, str], str] = {}
        self.all: dict[str, WeightRef] = {}
        with self._opened() as file:
            self._keep_texts(file, "")
            self._walk(file, "", 0, set())

    def text(self, name: str, group: str = "") -> str:
        """An attribute of the root or of the group `model_weights` as text, "" if there is none."""
        return self._texts.get((group, name), "")

    def below(self, path: str) -> dict[str, WeightRef]:
        """The arrays below a group, by their paths from there."""
        return {name[len(path) + 1 :]: weight for name, weight in self.all.items() if name.startswith(f"{path}/")}

    def within(self, prefix: str, group: str) -> dict[str, WeightRef]:
        """The arrays below any group of a name under a prefix, by their paths from that group."""
        found = {}
        for name, weight in self.all.items():
            before, separator, rest = name.partition(f"/{group}/")
            if separator and f"{before}/".startswith(prefix):
                found[rest] = weight
        return found

    def _walk(self, group: Any, prefix: str, depth: int, seen: set[object]) -> None:
        """Keep the arrays of a group. Links to other places and to other files are not followed."""
        h5py = self._h5py
        key = h5py.h5o.get_info(group.id).addr
        if key in seen or depth > _MAX_DEPTH:
            return
        seen.add(key)
        if prefix == "model_weights/":
            self._keep_texts(group, "model_weights")
        for name in group:
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                continue
            item = group[name]
            if isinstance(item, h5py.Group):
                self._walk(item, f"{prefix}{name}/", depth + 1, seen)
            elif isinstance(item, h5py.Dataset) and item.shape is not None:
                if len(self.all) >= _MAX_ARRAYS:
                    raise InvalidArgumentError(f"'{self._path.name}' has more than {_MAX_ARRAYS:,} arrays")
                is_inside = not item.is_virtual and not item.external
                where = f"{prefix}{name}"
                loading = partial(self._load, where) if is_inside and item.dtype.kind in "biufc" else None
                self.all[where] = WeightRef(str(item.dtype), tuple(map(int, item.shape)), int(item.nbytes), loading, where)

    def _keep_texts(self, group: Any, name: str) -> None:
        for key in ("model_config", "keras_version", "backend", "layer_names"):
            if key in group.attrs:
                value = group.attrs[key]
                text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
                self._texts[name, key] = text

    def _load(self, where: str) -> np.ndarray:
        with self._opened() as file:
            item = file[where]
            check_claim(int(item.nbytes), f"'{where}' in '{self._path.name}'")
            return np.asarray(item[()])

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        try:
            if not self._member:
                with self._h5py.File(self._path, "r") as file:
                    yield file
                return
            archive = Archive(self._path)
            with archive.opened(self._member) as member:
                # Members that are stored as they are can be read by parts.
                is_stored = getattr(member, "_compress_type", 0) == 0
                with self._h5py.File(member if is_stored else io.BytesIO(archive.read(self._member)), "r") as file:
                    yield file
        except GraphError:
            raise
        except Exception as error:  # noqa: BLE001 - h5py raises errors of many classes for damaged files
            raise InvalidArgumentError(f"'{self._path.name}' has damaged HDF5 data: {str(error)[:200]}") from None
