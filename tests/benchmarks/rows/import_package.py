"""Importing the package: time, and memory of a process that does nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

from tests.benchmarks.work import Budget, Row, Work

# On Linux a child's ru_maxrss includes its parent's; its own high-water mark is in /proc.
PROGRAM = """
import time
begun = time.perf_counter()
import {library}
print(time.perf_counter() - begun)
try:
    with open("/proc/self/status") as status:
        print(next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM")))
except OSError:
    import resource
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def importing(library: str, line: int) -> Callable[[], Work]:
    """Import `library` in a new interpreter; `line` of its output is the figure.

    Measured as a user's second import: bytecode is compiled, regardless of this process's settings.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def figure() -> float:
        command = [sys.executable, "-c", PROGRAM.format(library=library)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        return float(done.stdout.split()[line])

    def work() -> Work:
        figure()
        return Work(figure=figure)

    return work


TIME = Row(
    order=1.0,
    title="import the package",
    unit="s",
    budgets=(Budget(0.25),),
    ours=importing("graphcore", 0),
    numpy=importing("numpy", 0),
    tensorflow=importing("tensorflow", 0),
)
MEMORY = Row(
    order=1.1,
    title="memory after the import",
    unit="MB",
    budgets=(Budget(80),),
    ours=importing("graphcore", 1),
    numpy=importing("numpy", 1),
    tensorflow=importing("tensorflow", 1),
)
