"""Arrays of HDF5 files, found without reading their elements."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.apart import SECONDS, output_of
from graphcore.frontends.foreign import WeightRef
from graphcore.frontends.libraries import library
from graphcore.frontends.torch_reader.archive import Archive
from graphcore.support.memory_limits import check_claim

LEAST_SECONDS: Final = 10.0
"""The limit of time for a small file."""
_BYTES_A_SECOND: Final = 1 << 20
_SCRIPT: Final = Path(__file__).with_name("hdf_script.py")


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
        self._texts: dict[tuple[str, str], str] = {}
        self.all: dict[str, WeightRef] = {}
        listing = json.loads(self._output())
        for group, name, text in listing["texts"]:
            self._texts[group, name] = text
        for where, dtype, shape, size, is_read in listing["arrays"]:
            self.all[where] = WeightRef(dtype, tuple(shape), size, partial(self._load, where) if is_read else None, where)

    def text(self, name: str, group: str = "") -> str:
        """An attribute of the root or of the group `model_weights` as text, "" if there is none."""
        return self._texts.get((group, name), "")

    def below(self, path: str) -> dict[str, WeightRef]:
        """The arrays below a group, by their paths from there."""
        return {name[len(path) + 1 :]: weight for name, weight in self.all.items() if name.startswith(f"{path}/")}

    def within(self, prefix: str, group: str) -> dict[str, WeightRef]:
        """The arrays below any group of a name under a prefix, by their paths from that group."""
        weights = {}
        for name, weight in self.all.items():
            before, separator, rest = name.partition(f"/{group}/")
            if separator and f"{before}/".startswith(prefix):
                weights[rest] = weight
        return weights

    def _load(self, where: str) -> np.ndarray:
        weight = self.all[where]
        check_claim(weight.nbytes, f"'{where}' in '{self._path.name}'")
        data = self._output(where, memory=3 * weight.nbytes)
        if len(data) != weight.nbytes:
            raise InvalidArgumentError(f"'{self._path.name}' has changed: required {weight.nbytes:,} bytes of '{where}', got {len(data):,}")
        return np.frombuffer(data, np.dtype(weight.dtype)).reshape(weight.shape)

    def _output(self, *where: str, memory: int = 0) -> bytes:
        """The output of the script. Members that are stored as they are can be read by parts."""
        data, member = b"", self._member
        if member:
            archive = Archive(self._path)
            member = archive.stored_as(self._member)
            if not member:
                data, member = archive.read(self._member), "-"
        seconds = min(SECONDS, LEAST_SECONDS + self._path.stat().st_size / _BYTES_A_SECOND)
        what = f"The HDF5 data of '{self._path.name}'"
        try:
            return output_of(_SCRIPT, str(self._path), member, *where, what=what, data=data, seconds=seconds, memory=memory)
        except InvalidArgumentError:
            library("h5py", "keras", "a file of Keras with weights in HDF5")  # the reason may be that it is missing
            raise
