"""Archives of variables (.npz)."""

from __future__ import annotations

import functools
import io
import random
import tempfile
import zipfile
from typing import Any, Final

import numpy as np

import graphcore as gc
from tests.support.fuzzing.target import Target, maybe_damaged

_SHAPES: Final = ((3,), (3,), (3,), (), (0,), (2**40,), (0, 2**62), (-1,), (1,) * 70, (10**5,))
_TYPES: Final = ("<f4", "<f4", "<f4", "|O", "<U5", "|V2", "<M8[s]", "xx", [("a", "<f4")], "<f4,<f4", "|S0", "<c16")
_NAMES: Final = ("w.npy", "w.npy", "free.npy", "half.npy", "other.npy", "w", "", "../w.npy", "w.npy/", "a" * 300)
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


def _array(rng: random.Random) -> bytes:
    file = io.BytesIO()
    shape: Any = rng.choice(_SHAPES)
    if rng.random() < 0.1:
        shape = rng.choice(("x", None, [3], (True,), ("3",), (2.5,), (3, -(2**70))))
    header = {"descr": rng.choice(_TYPES), "fortran_order": rng.choice((False, False, True, 1)), "shape": shape}
    if rng.random() < 0.05:
        header[rng.choice(("more", "descr", "shape"))] = "x" * rng.choice((1, 20_000))
    text = maybe_damaged(repr(header).encode(), rng, 0.1)
    version = rng.choice((b"\x01\x00", b"\x01\x00", b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x00"))
    size = len(text).to_bytes(2 if version[0] == 1 else 4, "little")
    count = (
        int(np.prod([min(max(int(each), 0), 100) for each in shape]))
        if isinstance(shape, tuple) and all(isinstance(each, int) for each in shape)
        else 3
    )
    file.write(b"\x93NUMPY" + version + size + text + bytes(4 * rng.choice((count,) * 20 + (0, 0, 10**5))))
    return file.getvalue()


def make(rng: random.Random) -> bytes:
    """An archive of arrays, some of them with claims that cannot be."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        known: set[str] = set()
        for name in rng.sample(_NAMES, rng.choice((1, 2, 3))) if rng.random() < 0.5 else ("w.npy", "free.npy", "half.npy"):
            if name in known:
                continue
            known.add(name)
            archive.writestr(zipfile.ZipInfo(name), _array(rng), rng.choice(_METHODS))
    return maybe_damaged(file.getvalue(), rng, 0.3)


@functools.cache
def _session() -> gc.Session:
    with gc.Graph().as_default() as graph:
        gc.Variable(np.zeros(3, np.float32), name="w")
        gc.Variable(gc.placeholder(gc.float32), validate_shape=False, name="free")
        gc.Variable(gc.cast(np.zeros(3, np.float32), gc.bfloat16), name="half")
        return gc.Session(graph)


def check(data: bytes) -> None:
    """Restore variables from the archive."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        gc.restore_variables(_session(), file.name)


ARCHIVES: Final = Target(make, check)
