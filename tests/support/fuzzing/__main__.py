"""Fuzz all readers, shape functions and views: only GraphErrors are allowed, in 5 s and 2 GiB.

    make fuzz                                          10 s for each target
    make fuzz ARGS="--seconds 600 checkpoints shapes"  as long as one likes
    make fuzz ARGS="--runs 20000"                      as many for each target
    make fuzz ARGS="--only 4711 --seed 1 checkpoints"  one input again, with its traceback
    make fuzz ARGS="--file artefacts/fuzz/checkpoints-1-4711 checkpoints"

An input depends on the target, the seed and its number alone. Inputs that fail are kept in `artefacts/fuzz`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Final

from graphcore.errors import GraphError
from tests.support.fuzzing.child import SECONDS, fault_of, made
from tests.support.fuzzing.targets.all_targets import TARGETS

ROOT: Final = Path(__file__).parents[3]
KEPT: Final = ROOT / "artefacts" / "fuzz"
CORPUS: Final = ROOT / "tests" / "data" / "fuzz"
WAIT: Final = 300.0
"""The seconds after which an input that does not end, but does not compute either, is stopped; the machine may be busy."""


_IN_THIS_PROCESS: Final = Lock()
"""Held while inputs are read here, whose processor time is limited for the whole process; the targets' own processes run side by side."""


class Report:
    """The inputs and faults of a target."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.slowest = 0.0
        self.most = 0
        self.faults: dict[str, str] = {}

    def __str__(self) -> str:
        return (
            f"{self.name:12} {self.count:9} inputs, {len(self.faults):4} faults, slowest {self.slowest:.2f} s, most memory {self.most} MiB"
        )


def fuzz(name: str, seed: int, first: int, runs: int, seconds: float) -> Report:
    """Fuzz a target. A process that dies, hangs or takes too much is a fault of its input; the next one goes on behind it."""
    report, last = Report(name), first + runs
    with _IN_THIS_PROCESS:
        for path in sorted((CORPUS / name).glob("*")):
            report.count += 1
            if fault := fault_of(TARGETS[name], path.read_bytes()):
                report.faults[str(path)] = fault
    while first < last and seconds > 0:
        with tempfile.NamedTemporaryFile() as place:
            command = [sys.executable, "-m", "tests.support.fuzzing.child", name, *map(str, (seed, first, last, seconds)), place.name]
            child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            out, errors = _watched(child, Path(place.name))
            if child.returncode == 0:
                told = json.loads(out.splitlines()[-1])
                report.count += told["count"]
                report.slowest = max(report.slowest, told["slowest"])
                report.most = max(report.most, told["most"])
                report.faults |= told["faults"]
                break
            reached, _, used = Path(place.name).read_text().strip().partition(" ")
            number, seconds = int(reached or first), seconds - float(used or 0) - SECONDS
            report.count += number + 1 - first
            report.faults[str(number)] = (
                f"the process ended with {child.returncode} (-27: more than {SECONDS:.0f} s): {errors.strip()[-300:]}"
            )
            first = number + 1
    for which, fault in report.faults.items():
        _keep(name, seed, which, fault)
    return report


def _watched(child: subprocess.Popen[str], place: Path) -> tuple[str, str]:
    """Wait for a process, and stop it when an input takes too long."""
    seen, since = b"", time.monotonic()
    while True:
        try:
            return child.communicate(timeout=1)
        except subprocess.TimeoutExpired:
            now = place.read_bytes()
            if now != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > WAIT:
                child.kill()


def _keep(name: str, seed: int, number: str, fault: str) -> None:
    if not number.isdigit():
        print(f"  {number}: {fault}")
        return
    KEPT.mkdir(parents=True, exist_ok=True)
    path = KEPT / f"{name}-{seed}-{number}"
    path.write_bytes(made(name, seed, int(number)))
    print(f'  {fault}\n    again: make fuzz ARGS="--only {number} --seed {seed} {name}"; kept as {path.relative_to(ROOT)}')


def again(name: str, data: bytes) -> None:
    """Read one input, and show how it ends."""
    print(f"{name}: {data[:2000]!r}")
    try:
        TARGETS[name].check(data)
    except GraphError:
        traceback.print_exc()


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="make fuzz", description="Feed damaged and hostile input to everything that reads.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=float, help="of processor time, for each target; 10 by default, without limit with --runs")
    parser.add_argument("--runs", type=int, help="the most inputs of each target")
    parser.add_argument("--seed", type=int, help="the time by default, so that each run sees others")
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--only", type=int, help="read one input, and show its traceback")
    parser.add_argument("--file", type=Path, help="read this input, and show its traceback")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.targets if name not in TARGETS]
    if unknown:
        parser.error(f"there is no target {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    seed = int(time.time()) if arguments.seed is None else arguments.seed
    names = arguments.targets or list(TARGETS)
    if arguments.only is not None or arguments.file is not None:
        for name in names:
            again(name, made(name, seed, arguments.only) if arguments.file is None else arguments.file.read_bytes())
        return
    print(f"seed {seed}")
    runs = 1 << 40 if arguments.runs is None else arguments.runs
    seconds = (10.0 if arguments.runs is None else math.inf) if arguments.seconds is None else arguments.seconds
    reports = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for report in pool.map(fuzz, names, *map(itertools.repeat, (seed, arguments.first, runs, seconds))):
            reports.append(report)
            print(report, flush=True)
    faults = sum(len(report.faults) for report in reports)
    print(f"{sum(report.count for report in reports)} inputs, {faults} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
