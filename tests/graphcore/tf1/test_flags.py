"""Options of programs, their start, files and messages."""

from __future__ import annotations

import builtins
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import graphcore as gc


@pytest.fixture(autouse=True)
def no_flags(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "argv", ["program.py"])
    yield
    gc.flags.FLAGS._clear()


def define_all() -> None:
    gc.flags.DEFINE_string("data", "here", "where the data is")
    gc.flags.DEFINE_integer("steps", 10, "how many steps")
    gc.flags.DEFINE_float("rate", 0.5, "the learning rate")
    gc.flags.DEFINE_boolean("fast", False, "be fast")
    gc.flags.DEFINE_multi_integer("layer", [1], "units of a layer")


def test_flags_have_their_defaults_and_take_the_command_line() -> None:
    define_all()
    flags = gc.app.flags.FLAGS
    assert (flags.data, flags.steps, flags.rate, flags.fast, flags.layer) == ("here", 10, 0.5, False, [1])
    rest = flags(["p", "--data=there", "--steps", "3", "file", "-fast", "--rate=1e-3", "--layer=2", "--layer=3", "--", "--steps=9"])
    assert (flags.data, flags.steps, flags.rate, flags.fast, flags.layer) == ("there", 3, 0.001, True, [2, 3])
    assert rest == ["p", "file", "--steps=9"]
    flags(["p", "--nofast"])
    assert flags.fast is False


def test_a_flag_is_assigned_and_defined_again() -> None:
    define_all()
    gc.flags.FLAGS.steps = 4
    assert gc.flags.FLAGS.steps == 4
    gc.flags.DEFINE_integer("width", 2)
    gc.flags.DEFINE_integer("width", 3)
    assert gc.flags.FLAGS.width == 3


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        ("--steps=many", "flag --steps=many"),
        ("--fast=perhaps", "Non-boolean"),
        ("--steps", "Missing value"),
        ("--nothing", "Unknown .* 'nothing'"),
    ],
)
def test_what_does_not_fit_a_flag_is_refused(argument: str, text: str) -> None:
    define_all()
    with pytest.raises(gc.errors.InvalidArgumentError, match=text):
        gc.flags.FLAGS(["p", argument])


def test_a_missing_flag_says_which_there_are() -> None:
    define_all()
    with pytest.raises(AttributeError, match="no flag 'step'; defined are: data, steps"):
        _ = gc.flags.FLAGS.step
    gc.flags.DEFINE_string("must", None)
    gc.flags.mark_flag_as_required("must")
    with pytest.raises(gc.errors.InvalidArgumentError, match="must have a value"):
        gc.flags.FLAGS(["p"])


def test_run_passes_what_is_left_and_ends_with_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    define_all()
    seen: list[list[str]] = []
    monkeypatch.setattr(sys, "argv", ["p", "--steps=5", "other", "--unknown=1"])
    with pytest.raises(SystemExit) as ended:
        gc.app.run(main=seen.append)
    assert ended.value.code is None
    assert seen == [["p", "other", "--unknown=1"]]
    assert gc.flags.FLAGS.steps == 5


def test_run_in_a_notebook_reads_no_command_line_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    define_all()
    seen: list[list[str]] = []
    monkeypatch.setattr(builtins, "get_ipython", lambda: None, raising=False)
    monkeypatch.setattr(sys, "argv", ["/lib/ipykernel_launcher.py", "-f", "kernel.json"])
    gc.app.run(main=seen.append)
    assert seen == [["/lib/ipykernel_launcher.py"]]


def test_files_have_tensorflows_functions(tmp_path: Path) -> None:
    folder = str(tmp_path / "a" / "b")
    gc.gfile.MakeDirs(folder)
    gc.gfile.MakeDirs(folder)
    name = f"{folder}/text"
    with gc.gfile.GFile(name, "w") as file:
        file.write("one\ntwo\n")
    assert gc.gfile.FastGFile(name, "rb").read() == b"one\ntwo\n"
    assert list(gc.gfile.Open(name)) == ["one\n", "two\n"]
    assert gc.gfile.GFile(name).size() == 8
    gc.gfile.Copy(name, f"{name}2")
    with pytest.raises(gc.errors.AlreadyExistsError, match="overwrite"):
        gc.gfile.Copy(name, f"{name}2")
    gc.gfile.Rename(f"{name}2", f"{name}3")
    assert gc.gfile.ListDirectory(folder) == ["text", "text3"]
    assert gc.gfile.Glob(f"{folder}/*3") == [f"{name}3"]
    gc.gfile.Remove(name)
    assert not gc.gfile.Exists(name)
    with pytest.raises(gc.errors.NotFoundError, match="No such file"):
        gc.gfile.GFile(name).read()
    gc.gfile.DeleteRecursively(str(tmp_path / "a"))
    assert not gc.gfile.IsDirectory(folder)


def test_messages_go_through_pythons_logging(caplog: pytest.LogCaptureFixture) -> None:
    gc.logging.set_verbosity(gc.logging.INFO)
    logging.getLogger("graphcore").propagate = True
    with caplog.at_level(gc.logging.INFO, logger="graphcore"):
        gc.logging.info("step %d", 3)
        gc.logging.debug("hidden")
        for _ in range(4):
            gc.logging.log_first_n(gc.logging.WARN, "twice", 2)
    assert [record.getMessage() for record in caplog.records] == ["step 3", "twice", "twice"]
