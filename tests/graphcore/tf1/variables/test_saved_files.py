"""Saving over existing files follows links, keeps modes, writes to devices, and names failures."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import graphcore as gc
import widgets.files
from graphcore.errors import FailedPreconditionError

Save = Callable[[Path], object]


@pytest.fixture(scope="module")
def session() -> Iterator[gc.Session]:
    with gc.Graph().as_default():
        w = gc.Variable([1.0, 2.0], name="w")
        session = gc.Session()
        session.run(w.initializer, options=gc.RunOptions(trace=True))
        yield session


def saves(session: gc.Session) -> dict[str, Save]:
    """All functions that write a file, by a typical file name."""
    graph, trace = session.graph, session.trace
    assert trace is not None
    return {
        "variables.npz": lambda path: gc.save_variables(session, path),
        "trace.json": trace.save,
        **{f"graph{suffix}": lambda path: gc.save(graph, path) for suffix in (".pb", ".pbtxt", ".json")},
        **{f"view{suffix}": lambda path: widgets.files.save(graph, path) for suffix in widgets.files.SUFFIXES},
    }


NAMES = [
    *("variables.npz", "trace.json", "graph.pb", "graph.pbtxt", "graph.json"),
    *(f"view{suffix}" for suffix in widgets.files.SUFFIXES),
]


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def save(session: gc.Session, name: str) -> Save:
    return saves(session)[name]


def test_a_symbolic_link_stays_and_its_target_is_written(tmp_path: Path, name: str, save: Save) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "target", tmp_path / name
    target.write_bytes(b"older")
    link.symlink_to(Path("elsewhere") / "target")
    save(link)
    assert link.is_symlink()
    assert not target.is_symlink()
    assert target.stat().st_size > len(b"older")
    assert [path.name for path in target.parent.iterdir()] == ["target"]


def test_a_link_to_a_file_that_is_not_there_yet_makes_it(tmp_path: Path, name: str, save: Save) -> None:
    link = tmp_path / name
    link.symlink_to(tmp_path / "target")
    save(link)
    assert link.is_symlink()
    assert (tmp_path / "target").stat().st_size > 0


def test_a_link_to_itself_is_refused_and_stays(tmp_path: Path, name: str, save: Save) -> None:
    link = tmp_path / name
    link.symlink_to(link)
    with pytest.raises(FailedPreconditionError, match=f"Cannot write '{re.escape(str(link))}'"):
        save(link)
    assert link.is_symlink()


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_a_file_keeps_its_mode(tmp_path: Path, name: str, save: Save) -> None:
    path = tmp_path / name
    path.write_bytes(b"")
    path.chmod(0o640)
    save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.stat().st_size > 0


@pytest.mark.skipif(os.name != "posix", reason="pipes with names")
def test_a_pipe_is_written_into_and_stays(tmp_path: Path, name: str, save: Save) -> None:
    pipe, plain = tmp_path / name, tmp_path / f"plain-{name}"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    save(pipe)
    reader.join(60)
    assert pipe.is_fifo()
    save(plain)
    assert len(read[0]) > 0
    if name.startswith("variables"):  # an archive in a stream has its sizes after the data
        assert read[0].startswith(b"PK")
    else:
        assert read[0] == plain.read_bytes()


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no device that is always full")
def test_a_full_disk_is_an_error_of_ours_that_names_the_file_and_the_device_stays(tmp_path: Path, name: str, save: Save) -> None:
    path = tmp_path / name
    path.symlink_to("/dev/full")
    with pytest.raises(FailedPreconditionError, match=rf"Cannot write '{re.escape(str(path))}': No space left on device"):
        save(path)
    assert Path("/dev/full").is_char_device()


def test_a_missing_folder_is_an_error_of_ours_that_names_the_file(tmp_path: Path, name: str, save: Save) -> None:
    path = tmp_path / "missing" / name
    with pytest.raises(FailedPreconditionError, match=f"Cannot write '{re.escape(str(path))}': there is no folder '.*missing'"):
        save(path)


def test_a_folder_is_no_file_to_write(tmp_path: Path, name: str, save: Save) -> None:
    path = tmp_path / name
    path.mkdir()
    with pytest.raises(FailedPreconditionError, match="Cannot write"):
        save(path)
    assert list(tmp_path.iterdir()) == [path]


FULL = """
import resource, sys
sys.dont_write_bytecode = True  # the limit holds for compiled modules as well
import numpy as np, graphcore as gc
w = gc.Variable(np.zeros(100_000, np.float32), name="w")
session = gc.Session()
session.run(w.initializer)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
for save in (lambda: gc.save_variables(session, sys.argv[1]), lambda: gc.save(session.graph, sys.argv[1])):
    try:
        save()
    except gc.errors.FailedPreconditionError as error:
        print(error.message)
"""


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
def test_a_disk_that_fills_up_leaves_the_older_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(b"older")
    root = Path(gc.__file__).parents[1]
    told = subprocess.run([sys.executable, "-c", FULL, str(path)], cwd=root, capture_output=True, text=True, check=True)
    assert told.stdout.splitlines() == [f"Cannot write '{path}': File too large"] * 2
    assert told.stderr == ""
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"older"]


def test_a_saved_model_keeps_the_mode_of_its_file(tmp_path: Path, session: gc.Session) -> None:
    place = gc.save_saved_model(session.graph, tmp_path / "model") / "saved_model.pb"
    place.chmod(0o600)
    gc.save_saved_model(session.graph, tmp_path / "model")
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
