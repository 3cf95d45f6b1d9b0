"""Concurrent commands: no mixed or lost output, and Ctrl-C reaches them."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.support.tools import side_by_side

PROGRAM = side_by_side.__file__
# If a shell started the tests in the background, they and their subprocesses would ignore Ctrl-C.
STARTER = """import runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name='__main__')
"""
AWAIT = "import pathlib, sys, time\ndef wait(name):\n    while not pathlib.Path(name).exists(): time.sleep(0.01)\n"


def python(text: str) -> str:
    """A command that runs a Python text."""
    return shlex.join([sys.executable, "-c", AWAIT + text])


def run(*commands: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, PROGRAM, *commands], capture_output=True, text=True, check=False)


def test_they_run_at_once_and_what_they_say_stays_apart(tmp_path: Path) -> None:
    there, told = tmp_path / "there", tmp_path / "told"
    first = f"print('one', flush=True); wait({str(told)!r}); print('two')"
    second = f"print('three', flush=True); print('four', file=sys.stderr, flush=True); pathlib.Path({str(told)!r}).touch()"
    done = run(python(first), python(second + f"; wait({str(told)!r}); pathlib.Path({str(there)!r}).touch()"))
    assert done.stdout.split() == ["one", "two", "three", "four"]
    assert done.returncode == 0
    assert there.exists()


def test_one_that_fails_stops_no_other_and_is_told(tmp_path: Path) -> None:
    for codes in ((3, 0), (0, 3), (0, 0)):
        done = run(*(python(f"print({code}); sys.exit({code})") for code in codes))
        assert done.stdout.split() == [str(code) for code in codes]
        assert done.returncode == (1 if any(codes) else 0)


def test_a_command_that_is_not_there_ends_the_others(tmp_path: Path) -> None:
    done = run(python("time.sleep(600)"), str(tmp_path / "missing"))
    assert done.returncode != 0
    assert "missing" in done.stderr


def test_ctrl_c_reaches_all_of_them_and_all_say_how_far_they_came(tmp_path: Path) -> None:
    files = [tmp_path / "first", tmp_path / "second"]
    commands = []
    for file in files:
        text = f"try:\n    pathlib.Path({str(file)!r}).touch(); time.sleep(600)\nexcept KeyboardInterrupt:\n    print({file.name!r}); sys.exit(2)"
        commands.append(python(text))
    both = subprocess.Popen([sys.executable, "-c", STARTER, PROGRAM, *commands], stdout=subprocess.PIPE, text=True, start_new_session=True)
    while not all(file.exists() for file in files):
        assert both.poll() is None
        time.sleep(0.01)
    os.killpg(both.pid, signal.SIGINT)
    told, _ = both.communicate()
    assert told.split() == ["first", "second"]
    assert both.returncode == 1
