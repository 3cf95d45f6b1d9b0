"""Archives of variables that others wrote: names, types and sizes are looked at first."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import graphcore as gc
from graphcore.support.reading_limits import reading_limits


@pytest.fixture
def session() -> Iterator[gc.Session]:
    """A session with a variable `w` of three elements, and one of unknown shape, `free`."""
    with gc.Graph().as_default() as graph:
        gc.Variable(np.zeros(3, np.float32), name="w")
        gc.Variable(gc.placeholder(gc.float32), validate_shape=False, name="free")
        yield gc.Session(graph)


def archive(path: Path, method: int = zipfile.ZIP_DEFLATED, **arrays: bytes) -> Path:
    """An archive of these files."""
    with zipfile.ZipFile(path, "w", method) as made:
        for name, data in arrays.items():
            made.writestr(f"{name}.npy", data)
    return path


def array(shape: tuple[int, ...], data: bytes | None = None) -> bytes:
    """An array file, of zeros unless data are given."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return file.getvalue() + (bytes(4 * int(np.prod(shape))) if data is None else data)


def test_an_array_that_no_variable_takes_is_not_inflated(session: gc.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np.lib.format, "read_array", lambda *_args, **_named: pytest.fail("an array was read"))
    path = archive(tmp_path / "m.npz", w=array((3,)), free=array((2,)), bomb=array((3_000_000,)))
    assert path.stat().st_size < 200_000
    with pytest.raises(gc.errors.InvalidArgumentError, match="holds 'bomb', which the session's graph does not have"):
        gc.restore_variables(session, path)
    with pytest.raises(gc.errors.InvalidArgumentError, match=r"Variable 'w' has shape \[3\], the file holds shape \[3000000\]"):
        gc.restore_variables(session, archive(tmp_path / "n.npz", w=array((3_000_000,)), free=array((2,))))


def test_an_array_for_a_variable_of_unknown_shape_inflates_up_to_the_limit(session: gc.Session, tmp_path: Path) -> None:
    path = archive(tmp_path / "m.npz", w=array((3,)), free=array((1000,)))
    before, reading_limits.inflated_bytes = reading_limits.inflated_bytes, 1000
    try:
        with pytest.raises(gc.errors.ResourceExhaustedError, match="required at most 1000 bytes of compressed data, got 4128"):
            gc.restore_variables(session, path)
    finally:
        reading_limits.inflated_bytes = before
    gc.restore_variables(session, path)
    assert session.run("free:0").shape == (1000,)


@pytest.mark.parametrize(
    "data",
    [
        array((2**40, 2**20), b""),
        array((0, 2**62), b""),
        array((1,) * 70, bytes(4)),
        array((-1,), bytes(4)),
        array((3,), b""),
        array((2,), bytes(12)),
        b"\x93NUMPY\x03\x00\x10\x00\x00\x00{'descr':'<f4'}",
        b"\x93NUMPY\x01\x00\xff\x7f" + b"(" * 32767,
        b"no array",
    ],
)
def test_an_array_that_claims_something_else_than_it_holds_is_refused(data: bytes, session: gc.Session, tmp_path: Path) -> None:
    with pytest.raises(gc.GraphError) as refused:
        gc.restore_variables(session, archive(tmp_path / "m.npz", zipfile.ZIP_STORED, w=data, free=array((2,))))
    assert isinstance(refused.value, gc.errors.InvalidArgumentError | gc.errors.ResourceExhaustedError)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_that_numpy_does_not_write_is_refused(method: int, session: gc.Session, tmp_path: Path) -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match="unknown compression"):
        gc.restore_variables(session, archive(tmp_path / "m.npz", method, w=array((3,)), free=array((2,))))


def test_two_arrays_of_one_name_are_refused(session: gc.Session, tmp_path: Path) -> None:
    path = archive(tmp_path / "m.npz", w=array((3,)), free=array((2,)))
    with zipfile.ZipFile(path, "a") as made:
        made.writestr("w", array((3,)))
    with pytest.raises(gc.errors.InvalidArgumentError, match="two arrays of one name"):
        gc.restore_variables(session, path)
