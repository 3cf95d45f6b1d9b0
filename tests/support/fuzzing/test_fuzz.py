"""A short run of the fuzz target; `python -m tests.support.fuzzing.fuzz --runs 100000` is a long one."""

from __future__ import annotations

from tests.support.fuzzing import fuzz

SEED = 2026
RUNS = 2_000


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
