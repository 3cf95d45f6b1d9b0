"""The process that reads the inputs, within limits of time and memory. The number of the input is in a file, should the process be killed."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import IO, Final

from graphcore.errors import GraphError
from tests.support.fuzzing.target import UNEXPECTED, Target
from tests.support.fuzzing.targets.all_targets import TARGETS

SECONDS: Final = 5.0
"""The limit of an input, in seconds of processor time."""
MEMORY: Final = 2 << 30
"""The limit of all inputs together, in bytes beyond those of the imports."""
SHOWN: Final = 300


def limit_memory() -> None:
    """Limit the memory of this process, and how long it computes for one input."""
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def made(name: str, seed: int, number: int) -> bytes:
    """The input of a number; it depends on the target, the seed and the number alone."""
    return TARGETS[name].make(random.Random(f"{name} {seed} {number}"))


def fault_of(target: Target, data: bytes) -> str:
    """The fault in the answer to an input, "" if there is none. A warning is a fault too."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            target.check(data)
        except GraphError as error:
            return " ".join(error.message[:SHOWN].split()) if UNEXPECTED in error.message else ""
        except Exception as error:  # noqa: BLE001 - that any comes out is what is looked for
            trace = error.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            place = "" if trace is None else f" at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
            return f"{type(error).__name__}{place}: {' '.join(str(error)[:SHOWN].split())}"
    return ""


def run(name: str, seed: int, numbers: range, seconds: float, place: IO[bytes]) -> dict[str, object]:
    """Read inputs for some seconds of processor time.

    Returns the number of inputs, the faults by number, the seconds of the slowest, and the most memory in MiB, that of the imports included.
    """
    since = time.process_time()
    target, faults, slowest, count = TARGETS[name], {}, 0.0, 0
    for number in numbers:
        if time.process_time() - since >= seconds:
            break
        place.seek(0)
        place.write(b"%20d %10.3f" % (number, time.process_time() - since))
        place.flush()
        data = made(name, seed, number)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        begin = time.process_time()
        fault = fault_of(target, data)
        signal.setitimer(signal.ITIMER_PROF, 0)
        slowest = max(slowest, time.process_time() - begin)
        count += 1
        if fault:
            faults[number] = fault
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"count": count, "faults": faults, "slowest": slowest, "most": most}


def main() -> None:
    """Run with TARGET SEED FIRST LAST SECONDS PLACE as arguments; the report is a line of JSON."""
    name, seed, first, last, seconds, place = sys.argv[1:]
    made(name, int(seed), int(first))  # whatever the first input prepares does not count
    fault_of(TARGETS[name], b"")
    limit_memory()
    setattr(os, "fsync", lambda _: None)  # noqa: B010 - mypy knows its type; what is saved here need not outlast the machine
    with Path(place).open("r+b") as file:
        report = run(name, int(seed), range(int(first), int(last)), float(seconds), file)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
