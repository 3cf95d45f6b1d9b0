"""Short runs of the fuzz targets; `make fuzz ARGS="--seconds 600"` is a long one."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.support.fuzzing import fuzz
from tests.support.fuzzing.__main__ import CORPUS, ROOT
from tests.support.fuzzing.__main__ import fuzz as fuzz_target
from tests.support.fuzzing.child import fault_of, made
from tests.support.fuzzing.targets.all_targets import TARGETS

SEED = 2026
RUNS = 2_000
FEW = 40


def test_damaged_input_ends_in_a_value_or_a_graph_error() -> None:
    report = fuzz.run(SEED, range(RUNS))
    assert not report.failures, "\n".join(map(str, report.failures[:5]))
    assert report.taken.total() + report.refused.total() == RUNS
    for reader in ("graph", "nodes", "function", "signature", "value", "ops", "specs"):
        assert report.refused[reader], f"nothing wrong was given to the reader of {reader}"
    assert report.taken["graph"] > RUNS // 20


def test_a_run_can_be_repeated_by_its_number() -> None:
    assert fuzz.make_input(SEED, 7) == fuzz.make_input(SEED, 7)
    assert fuzz.make_input(SEED, 7) != fuzz.make_input(SEED, 8)


@pytest.mark.parametrize("name", TARGETS)
def test_inputs_that_once_failed_and_some_more_end_in_a_value_or_a_graph_error(name: str) -> None:
    data = [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))] + [made(name, SEED, number) for number in range(FEW)]
    faults = [fault for each in data if (fault := fault_of(TARGETS[name], each))]
    assert not faults


def test_a_run_in_a_process_of_its_own_counts_its_inputs() -> None:
    report = fuzz_target("states", SEED, 0, 30, 60.0)
    assert (report.count, report.faults) == (30 + len(list((CORPUS / "states").glob("*"))), {})


LIMITED = """
import signal
from tests.support.fuzzing import child
child.limit_memory()
try:
    bytearray(3 << 30)
except MemoryError:
    print("refused", flush=True)
signal.setitimer(signal.ITIMER_PROF, 0.2)
while True:
    pass
"""


def test_an_input_that_takes_too_much_memory_or_time_ends() -> None:
    told = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=False, timeout=300, cwd=ROOT)
    assert (told.stdout, told.returncode) == ("refused\n", -signal.SIGPROF)
