"""The interpreter of `make` and `.ci/run`: the first that runs, on PATH or kept by pyenv."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("find_python.sh")
REFUSES = "exit 127"
RUNS = f'exec {shlex.quote(sys.executable)} "$@"'


class Machine:
    """A folder as the only entry of PATH, and one with pyenv's interpreters."""

    def __init__(self, folder: Path) -> None:
        self.path, self.root = folder / "bin", folder / "pyenv"
        self.path.mkdir()

    def has(self, name: str, text: str) -> Path:
        """Put a program on PATH."""
        return self._write(self.path / name, text)

    def has_pyenv(self, version: str, text: str = RUNS) -> Path:
        """Put pyenv with an interpreter on PATH."""
        self.has("pyenv", f'[ "$*" = root ] && echo {shlex.quote(str(self.root))}')
        return self._write(self.root / "versions" / version / "bin" / "python3", text)

    def found(self, *versions: str) -> str:
        """The printed path; "" if there is none."""
        done = subprocess.run(
            ["/bin/sh", str(PROGRAM), *versions],
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": str(self.path), "HOME": os.environ.get("HOME", "/")},
        )
        assert (done.returncode == 0) == bool(done.stdout)
        assert done.stderr == ""
        return done.stdout.strip()

    def _write(self, file: Path, text: str) -> Path:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        file.chmod(0o755)
        return file


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_first_of_the_versions_that_is_there_is_taken(machine: Machine) -> None:
    second, third = machine.has("python3.12", RUNS), machine.has("python3.13", RUNS)
    assert machine.found("3.11", "3.12", "3.13") == str(second)
    assert machine.found("3.13", "3.12") == str(third)


def test_a_name_on_the_path_that_refuses_to_run_stands_for_the_interpreter_that_pyenv_keeps(machine: Machine) -> None:
    machine.has("python3.12", REFUSES)
    kept = machine.has_pyenv("3.12.1")
    assert machine.found("3.12", "3.13") == str(kept)


def test_what_pyenv_keeps_of_another_version_is_not_taken(machine: Machine) -> None:
    machine.has_pyenv("3.1.2")
    machine.has_pyenv("3.13.0")
    assert machine.found("3.11", "3.12") == ""


def test_where_none_runs_nothing_is_printed(machine: Machine) -> None:
    machine.has("python3.11", REFUSES)
    machine.has_pyenv("3.11.7", REFUSES)
    assert machine.found("3.11") == ""
