"""A process that gets SIGINT hundreds of times while it builds and runs stays consistent."""

from __future__ import annotations

import random
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

ROUNDS: Final = 120
LONGEST: Final = 0.01
"""Seconds until Ctrl-C is pressed, at most: it comes into the first work of a round as well as into later ones."""
SILENCE: Final = 3.0
"""Seconds after which it is pressed again."""
PATIENCE: Final = 20
"""So often in a row, before the process counts as one that hangs."""


def pressed(process: subprocess.Popen[str], chance: random.Random) -> str:
    """Press Ctrl-C whenever `process` reports work. Returns its last output."""
    assert process.stdout is not None
    unheard = 0
    line = ""
    while unheard < PATIENCE:
        if not select.select([process.stdout], [], [], SILENCE)[0]:
            unheard += 1
            if not line:
                continue  # it has not begun yet
        else:
            unheard = 0
            line = process.stdout.readline()
            if line != "begins\n":
                return line
            time.sleep(chance.uniform(0, LONGEST))
        process.send_signal(signal.SIGINT)
    process.kill()
    return "hangs"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_process_that_is_interrupted_again_and_again_goes_on_building_and_running(seed: int) -> None:
    command = [sys.executable, "-m", "tests.support.building_and_running", str(seed), str(ROUNDS)]
    root = Path(__file__).parents[3]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        last = pressed(process, random.Random(seed))
        _, errors = process.communicate()
    assert process.returncode == 0, f"{last}\n{errors}"
    assert last.startswith("ended")
    assert sum(map(int, re.findall(r": (\d+)", last))) > ROUNDS // 2  # it came during work
