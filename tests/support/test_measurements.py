"""Workers omit unneeded reports; every failure, before, in or after the test, is still reported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = """
import pytest

@pytest.fixture
def broken():
    raise ValueError("broken before")

@pytest.fixture
def breaking():
    print("said before")
    yield
    raise ValueError("broken after")

def test_good(): pass
def test_bad(): assert 1 == 2
def test_never_begun(broken): pass
def test_ill_ended(breaking): pass
@pytest.mark.skip(reason="not today")
def test_left_out(): pass
@pytest.mark.xfail(reason="known")
def test_known(): assert 3 == 4
def test_told(record_property): record_property("length", "7 m")
"""


def test_what_becomes_of_a_test_is_told(tmp_path: Path) -> None:
    file = tmp_path / "test_all_ways.py"
    file.write_text(TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "1",
        "-ra",
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(file),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    for told in (
        "1 failed, 3 passed, 1 skipped, 1 xfailed, 2 errors",
        "broken before",
        "broken after",
        "said before",
        "not today",
        "length: 7 m",
    ):
        assert told in done.stdout, done.stdout + done.stderr
