"""Files of Keras and of XLA: archives, HDF5, MLIR as text, and HLO modules, with damage."""

from __future__ import annotations

import copy
import functools
import io
import json
import random
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Final

from tests.support.fuzzing.opening import open_as_a_viewer
from tests.support.fuzzing.target import Target, maybe_damaged

_FILES: Final = Path(__file__).parents[3] / "data" / "frontends"
_NAMES: Final = ("shared.keras", "shared.keras", "shared.h5", "softmax.mlir", "loops.mlirbc", "loops_portable.mlirbc", "softmax.hlo.txt")
_VALUES: Final[tuple[Any, ...]] = (None, True, -1, 0, 2**63, 1.5, "", "x", [], [None], {}, [["a", 0, 0]], [None, 3], "a/b")


@functools.cache
def _data(name: str) -> bytes:
    return (_FILES / name).read_bytes()


def _archive(rng: random.Random) -> bytes:
    """An archive whose config has other values at some places, or damaged text."""
    with zipfile.ZipFile(_FILES / "shared.keras") as archive:
        root = json.loads(archive.read("config.json"))
    for _ in range(rng.choice((1, 2, 5))):
        place: Any = root
        for _ in range(rng.randrange(2, 12)):
            keys = list(place) if isinstance(place, dict) else list(range(len(place))) if isinstance(place, list) else []
            if not keys:
                break
            key = rng.choice(keys)
            if not isinstance(place[key], dict | list) or rng.random() < 0.15:
                place[key] = copy.deepcopy(rng.choice(_VALUES))
                break
            place = place[key]
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("metadata.json", "{}")
        archive.writestr("config.json", maybe_damaged(json.dumps(root).encode(), rng, 0.2))
    return stream.getvalue()


def _made(rng: random.Random) -> bytes:
    name = rng.choice(_NAMES)
    return _archive(rng) if name.endswith(".keras") and rng.random() < 0.8 else maybe_damaged(_data(name), rng, 0.95)


def _check(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        path.write_bytes(data)
        open_as_a_viewer(path, 2)


LAYER_FILES: Final = Target(_made, _check)
