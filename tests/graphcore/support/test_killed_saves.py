"""Processes killed in the middle of a save: what was saved last, or is just being saved, can be read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.saving.kinds import KINDS

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
ROOT = Path(__file__).parents[3]


def check(kills: int, *kinds: str) -> None:
    command = [sys.executable, "-m", "tests.support.saving.kill", "--kills", str(kills), *kinds]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=1200)
    assert told.returncode == 0, told.stdout + told.stderr


def test_the_last_finished_save_can_be_read_after_a_kill() -> None:
    check(4, "SameName", "Variables", "Merged")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_last_finished_save_of_each_kind_can_be_read_after_each_of_many_kills(kind: str) -> None:
    check(25, kind)
