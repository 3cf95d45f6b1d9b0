"""The benchmark harness: what it measures, what it compares, what it prints."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tests.benchmarks.__main__ import difference
from tests.benchmarks.measure import all_rows, sample_work
from tests.benchmarks.report import Result, table
from tests.benchmarks.work import Budget, Row, Work


def row(*budgets: Budget) -> Row:
    return Row(order=1, title="a row", unit="us", budgets=budgets, ours=Work)


def result(*budgets: Budget) -> Result:
    return Result(row(*budgets), {"ours": [2e-6, 4e-6, 3e-6], "numpy": [1e-6, 2e-6, 2e-6]})


def test_every_row_has_a_title_of_its_own_a_budget_and_something_to_be_compared_with() -> None:
    rows = list(all_rows().values())
    assert len(rows) >= 10
    assert [entry.order for entry in rows] == sorted({entry.order for entry in rows})
    assert all(entry.budgets and (entry.has("numpy") or entry.has("tensorflow")) for entry in rows)


def test_a_ratio_is_the_median_of_the_rounds_ratios() -> None:
    assert result(Budget(1)).ratio("numpy") == pytest.approx(2.0)
    assert result(Budget(1)).median("ours") == pytest.approx(3.0)
    assert result(Budget(1)).ratio("tensorflow") is None


@pytest.mark.parametrize(
    ("budget", "verdict"),
    [
        (Budget(3.5), "ok"),
        (Budget(2.5), "over"),
        (Budget(2.1, "numpy"), "ok"),
        (Budget(1.9, "numpy"), "over"),
        (Budget(9, "tensorflow"), "not measured"),
    ],
)
def test_a_budget_is_kept_or_broken(budget: Budget, verdict: str) -> None:
    assert result(budget).verdict() == verdict


def test_the_table_shows_figures_ratios_budget_and_verdict_in_aligned_columns() -> None:
    printed = table([result(Budget(2.1, "numpy")), Result(row(Budget(5)), {}, "ours: NameError: y")]).splitlines()
    assert printed[2].split() == ["a", "row", "us", "3.00", "2.00", "-", "2.00", "-", "2.1", "x", "NumPy", "ok"]
    assert printed[3].endswith("5  ours: NameError: y")
    assert printed[2].index("2.1 x NumPy") + len("2.1 x NumPy") == printed[3].index("5  ours") + 1


def test_variants_that_compute_something_else_are_caught() -> None:
    ones, twos = [np.ones(3)], [np.full(3, 2.0)]
    assert difference(row(), {"ours": ones, "numpy": ones}) == ""
    assert difference(row(), {"ours": twos, "numpy": ones}) == "ours computes something else"
    assert difference(row(), {"ours": [np.ones((3, 1))], "tensorflow": ones}) == "ours computes something else"


def test_preparation_is_outside_the_clock() -> None:
    slow = Work(run=lambda made: made, prepare=lambda: time.sleep(0.02))
    assert sample_work(slow, 0.0) < 0.01


def test_short_work_is_timed_many_times_and_divided_by_what_it_makes() -> None:
    calls: list[int] = []
    figure = sample_work(Work(run=lambda: calls.append(1), per=1000), 0.01)
    assert len(calls) > 100
    assert figure < 1e-6
