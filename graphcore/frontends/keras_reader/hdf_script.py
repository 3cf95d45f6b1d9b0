"""A script that lists the arrays of an HDF5 file, or writes the elements of one. It runs in a process of its own."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from contextlib import ExitStack
from importlib import import_module
from typing import Any, Final

_MAX_ARRAYS: Final = 200_000
_MAX_DEPTH: Final = 60


class Listing:
    """The arrays and texts of a file. Links to other places and to other files are not followed."""

    def __init__(self, h5py: Any, file: Any) -> None:
        self.texts: list[tuple[str, str, str]] = []
        self.arrays: list[tuple[str, str, tuple[int, ...], int, bool]] = []
        self._h5py = h5py
        self._seen: set[object] = set()
        self._keep_texts(file, "")
        self._walk(file, "", 0)

    def _walk(self, group: Any, prefix: str, depth: int) -> None:
        h5py = self._h5py
        key = h5py.h5o.get_info(group.id).addr
        if key in self._seen or depth > _MAX_DEPTH:
            return
        self._seen.add(key)
        if prefix == "model_weights/":
            self._keep_texts(group, "model_weights")
        for name in group:
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                continue
            item = group[name]
            if isinstance(item, h5py.Group):
                self._walk(item, f"{prefix}{name}/", depth + 1)
            elif isinstance(item, h5py.Dataset) and item.shape is not None:
                if len(self.arrays) >= _MAX_ARRAYS:
                    raise ValueError(f"it has more than {_MAX_ARRAYS:,} arrays")
                is_read = not item.is_virtual and not item.external and item.dtype.kind in "biufc"
                self.arrays.append((f"{prefix}{name}", str(item.dtype), tuple(map(int, item.shape)), int(item.nbytes), is_read))

    def _keep_texts(self, group: Any, name: str) -> None:
        for key in ("model_config", "keras_version", "backend", "layer_names"):
            if key in group.attrs:
                value = group.attrs[key]
                self.texts.append((name, key, value.decode(errors="replace") if isinstance(value, bytes) else str(value)))


def main() -> None:
    """List the arrays, or write the elements of one.

    Arguments are the path, the member of an archive ("" for the file itself, "-" for the input), and an array or none.
    """
    h5py = import_module("h5py")
    path, member, *where = sys.argv[1:]
    with ExitStack() as stack:
        place: Any = path
        if member == "-":
            place = io.BytesIO(sys.stdin.buffer.read())
        elif member:
            place = stack.enter_context(stack.enter_context(zipfile.ZipFile(path)).open(member))
        file = stack.enter_context(h5py.File(place, "r"))
        if where:
            sys.stdout.buffer.write(file[where[0]][()].tobytes())
        else:
            listing = Listing(h5py, file)
            sys.stdout.write(json.dumps({"texts": listing.texts, "arrays": listing.arrays}))


if __name__ == "__main__":
    main()
