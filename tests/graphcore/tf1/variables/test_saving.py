"""Saved variables are restored exactly, and a mismatch changes nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def two_variables() -> tuple[gc.Variable, gc.Variable]:
    with gc.name_scope("layer"):
        return gc.Variable([[1.0, 2.0], [3.0, 4.0]], name="W"), gc.Variable([7, 8], name="b")


def compressed(path: Path, values: dict[str, Any]) -> None:
    """A compressed file of NumPy."""
    np.savez_compressed(path, **values)


def test_restored_variables_have_the_values_that_were_saved(tmp_path: Path) -> None:
    weights, bias = two_variables()
    path = tmp_path / "model.npz"
    with gc.Session() as session:
        session.run(gc.initialize_all_variables())
        session.run([weights.assign_add([[1.0, 1.0], [1.0, 1.0]]), bias.assign([9, 9])])
        gc.save_variables(session, path)
    with gc.Session() as session:
        gc.restore_variables(session, path)
        assert session.run(weights).tolist() == [[2.0, 3.0], [4.0, 5.0]]
        assert session.run(bias).tolist() == [9, 9]
    assert sorted(np.load(path)) == ["layer/W", "layer/b"]
    assert [item.name for item in tmp_path.iterdir()] == ["model.npz"]


def test_every_array_type_survives(tmp_path: Path) -> None:
    kinds = [gc.float16, gc.bfloat16, gc.float64, gc.complex64, gc.uint8, gc.int64, gc.bool_]
    variables = [gc.Variable(gc.cast(gc.constant([0.0, 1.0]), dtype), name=dtype.text) for dtype in kinds]
    with gc.Session() as session:
        session.run(gc.initialize_all_variables())
        gc.save_variables(session, tmp_path / "all")
    with gc.Session() as session:
        gc.restore_variables(session, tmp_path / "all")
        for variable, dtype in zip(variables, kinds, strict=True):
            value = session.run(variable)
            assert value.dtype == dtype.as_numpy
            assert value.astype(np.complex128).tolist() == [0, 1]


def test_a_variable_may_have_any_name(tmp_path: Path) -> None:
    names = ["file", "allow_pickle", "args", "kwds", "arr_0", "a", "a.npy", "a/b", "Ab", "0"]
    variables = [gc.Variable(float(number), name=name) for number, name in enumerate(names)]
    assert [variable.op.name for variable in variables] == names
    path = tmp_path / "model.npz"
    with gc.Session() as session:
        session.run(gc.initialize_all_variables())
        gc.save_variables(session, path)
    with gc.Session() as session:
        gc.restore_variables(session, path)
        assert session.run(variables) == list(range(len(names)))
    assert np.load(path)["file"] == 0.0


def test_a_closed_session_neither_saves_nor_restores(tmp_path: Path) -> None:
    two_variables()
    session = gc.Session()
    session.run(gc.initialize_all_variables())
    gc.save_variables(session, tmp_path / "model.npz")
    session.close()
    for use in (gc.save_variables, gc.restore_variables):
        with pytest.raises(FailedPreconditionError, match="closed Session"):
            use(session, tmp_path / "model.npz")


def test_what_numpy_wrote_is_read(tmp_path: Path) -> None:
    weights, bias = two_variables()
    compressed(tmp_path / "model.npz", {"layer/W": np.ones((2, 2), np.float32), "layer/b": np.array([1, 2], np.int32)})
    with gc.Session() as session:
        gc.restore_variables(session, tmp_path / "model.npz")
        assert session.run(weights).tolist() == [[1, 1], [1, 1]]
        assert session.run(bias).tolist() == [1, 2]


def test_an_archive_with_a_flaw_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    weights, _bias = two_variables()
    path = tmp_path / "model.npz"
    with gc.Session() as session:
        session.run(gc.initialize_all_variables())
        compressed(path, {"layer/W": np.arange(4, dtype=np.float32).reshape(2, 2), "layer/b": np.array([1, 2], np.int32)})
        whole = path.read_bytes()
        for place in range(30, len(whole), 7):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
            try:
                gc.restore_variables(session, path)
            except (InvalidArgumentError, NotFoundError):
                assert session.run(weights).tolist() == [[1, 2], [3, 4]]
            else:
                session.run(gc.initialize_all_variables())


def test_a_variable_without_a_value_is_named_and_an_older_file_stays(tmp_path: Path) -> None:
    weights, _ = two_variables()
    path = tmp_path / "model.npz"
    path.write_bytes(b"older")
    with gc.Session() as session:
        session.run(weights.initializer)
        with pytest.raises(FailedPreconditionError, match="uninitialized value layer/b"):
            gc.save_variables(session, path)
    assert path.read_bytes() == b"older"
    assert [item.name for item in tmp_path.iterdir()] == ["model.npz"]


def saved(path: Path, **values: object) -> Path:
    np.savez(path, **{name.replace("__", "/"): np.asarray(value) for name, value in values.items()})  # type: ignore[arg-type]  # as in save_variables
    return path


W, B = np.ones((2, 2), np.float32), np.zeros(2, np.int32)
WRONG = [
    pytest.param({"layer__W": W}, NotFoundError, r"lacks the variables 'layer/b'; it holds 'layer/W'", id="missing"),
    pytest.param(
        {"layer__W": W, "layer__b": B, "c": B}, InvalidArgumentError, r"holds 'c', which the session's graph does not", id="unknown"
    ),
    pytest.param(
        {"layer__W": W, "layer__b": np.zeros(3, np.int32)}, InvalidArgumentError, r"'layer/b' has shape \[2\].*shape \[3\]", id="shape"
    ),
    pytest.param({"layer__W": W, "layer__b": np.zeros(2)}, InvalidArgumentError, r"'layer/b' is int32, the file holds float64", id="dtype"),
]


@pytest.mark.parametrize(("values", "kind", "text"), WRONG)
def test_a_file_that_does_not_fit_changes_nothing(tmp_path: Path, values: dict[str, object], kind: type[gc.GraphError], text: str) -> None:
    weights, bias = two_variables()
    path = saved(tmp_path / "other.npz", **values)
    with gc.Session() as session:
        session.run(gc.initialize_all_variables())
        with pytest.raises(kind, match=text):
            gc.restore_variables(session, path)
        assert session.run(weights).tolist() == [[1.0, 2.0], [3.0, 4.0]]
        assert session.run(bias).tolist() == [7, 8]


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut off"])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    two_variables()
    path = tmp_path / "model.npz"
    path.write_bytes(content)
    with gc.Session() as session, pytest.raises(InvalidArgumentError, match="is no file of variables"):
        gc.restore_variables(session, path)


def test_a_single_array_is_no_file_of_variables(tmp_path: Path) -> None:
    two_variables()
    np.save(tmp_path / "one.npy", W)
    with gc.Session() as session, pytest.raises(InvalidArgumentError, match="is no file of variables"):
        gc.restore_variables(session, tmp_path / "one.npy")


def test_a_file_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with gc.Session() as session, pytest.raises(NotFoundError, match="There is no file"):
        gc.restore_variables(session, tmp_path / "nowhere.npz")


def test_strings_and_empty_graphs_are_not_saved(tmp_path: Path) -> None:
    with gc.Session() as session, pytest.raises(FailedPreconditionError, match="no variable to save"):
        gc.save_variables(session, tmp_path / "x")
    text = gc.Variable(["a"], name="text")
    with gc.Session() as session:
        session.run(text.initializer)
        with pytest.raises(InvalidArgumentError, match="'text' holds strings"):
            gc.save_variables(session, tmp_path / "x")


def test_the_report_names_what_is_not_initialised_yet() -> None:
    weights, bias = two_variables()
    report = gc.report_uninitialized_variables()
    with gc.Session() as session:
        assert session.run(report).tolist() == [b"layer/W", b"layer/b"]
        session.run(weights.initializer)
        assert session.run(report).tolist() == [b"layer/b"]
        session.run(bias.initializer)
        assert session.run(report).tolist() == []


def test_the_report_of_no_variables_is_empty() -> None:
    with gc.Session() as session:
        assert session.run(gc.report_uninitialized_variables()).tolist() == []


def test_variables_of_imported_graphs_resources_and_shared_ones_are_saved_too(tmp_path: Path) -> None:
    with gc.Graph().as_default() as built:
        gc.Variable([1.0, 2.0], name="w")
        gc.Variable([3.0, 4.0], name="again", shared_name="w")
        handle = gc.ops.var_handle_op(dtype=gc.int32, shape=gc.Shape([2]), name="handle")
        gc.ops.assign_variable_op(handle, gc.constant([5, 6]), name="fill")
    path = tmp_path / "all.npz"
    with gc.Graph().as_default() as graph:
        gc.import_graph_def(built.as_graph_def(), prefix="")
    session = gc.Session(graph)
    session.run(["w/Assign", "fill"])
    gc.save_variables(session, path)
    assert sorted(np.load(path)) == ["handle", "w"]
    other = gc.Session(graph)
    gc.restore_variables(other, path)
    assert [value.tolist() for value in other.run(["w:0", "again:0"])] == [[1, 2], [1, 2]]
    assert {name: storage.read().tolist() for (_, name), storage in other.resources.variables.items()} == {"w": [1, 2], "handle": [5, 6]}


SAVING = """
import sys, numpy as np, graphcore as gc
w = gc.Variable([5.0, 6.0], name="w")
session = gc.Session()
session.run(w.initializer)
write = np.lib.format.write_array
def slowly(*arguments, **named):
    print("writing", flush=True)
    sys.stdin.readline()
    write(*arguments, **named)
np.lib.format.write_array = slowly
gc.save_variables(session, sys.argv[1])
"""
"""Another process that begins to save, and continues on request."""


def saving_elsewhere(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", SAVING, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(gc.__file__).parents[1],
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    return process


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="there is no lock there that tells the dead from the living")
def test_what_killed_saves_left_is_cleared_up_by_the_next_one_in_the_folder(tmp_path: Path) -> None:
    path, other = tmp_path / "model [1].npz", tmp_path / "model.npz"
    gc.Variable([1.0, 2.0], name="w")
    with gc.Session() as session:
        session.run(gc.initialize_all_variables())
        gc.save_variables(session, path)
        for killed in (other, path):
            with saving_elsewhere(killed) as process:
                process.send_signal(signal.SIGKILL)
            assert len(names_in(tmp_path)) == 2  # each call has removed the file of the one before
        (tmp_path / ".mine.part").touch()  # no temporary file of a save
        gc.save_variables(session, path)
        assert names_in(tmp_path) == [".mine.part", "model [1].npz"]
        gc.restore_variables(session, path)
        gc.save_variables(session, other)
    assert names_in(tmp_path) == [".mine.part", "model [1].npz", "model.npz"]


def test_what_another_process_or_thread_is_just_saving_is_left_to_it(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    w = gc.Variable([1.0, 2.0], name="w")
    session = gc.Session()
    session.run(w.initializer)
    with saving_elsewhere(path) as process:
        gc.save_variables(session, path)

        def save_often() -> None:
            for _ in range(10):
                gc.save_variables(session, path)

        threads = [threading.Thread(target=save_often) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(names_in(tmp_path)) == 2
        gc.restore_variables(session, path)
        assert session.run(w).tolist() == [1, 2]
        process.communicate("\n", timeout=60)
        assert process.returncode == 0
    assert names_in(tmp_path) == ["model.npz"]
    gc.restore_variables(session, path)
    assert session.run(w).tolist() == [5, 6]


def test_a_save_that_fails_leaves_nothing_behind_and_the_older_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.npz"
    w = gc.Variable([1.0, 2.0], name="w")
    session = gc.Session()
    session.run(w.initializer)
    gc.save_variables(session, path)
    session.run(w.assign([3.0, 4.0]))

    def fail(*_arguments: object, **_named: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(np.lib.format, "write_array", fail)
    with pytest.raises(FailedPreconditionError, match=r"Cannot write .*model\.npz.: no space left"):
        gc.save_variables(session, path)
    assert names_in(tmp_path) == ["model.npz"]
    gc.restore_variables(session, path)
    assert session.run(w).tolist() == [1, 2]
