"""The benchmark harness: measurement, comparison, table."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from tests.benchmarks import measure
from tests.benchmarks.__main__ import difference
from tests.benchmarks.measure import all_rows, sample_work
from tests.benchmarks.report import Result, table
from tests.benchmarks.views import ViewRow
from tests.benchmarks.views import table as views_table
from tests.benchmarks.work import Budget, Row, Work


def row(*budgets: Budget) -> Row:
    return Row(order=1, title="a row", unit="us", budgets=budgets, ours=Work)


def result(*budgets: Budget) -> Result:
    return Result(row(*budgets), {"ours": [2e-6, 4e-6, 3e-6], "numpy": [1e-6, 2e-6, 2e-6]})


def test_every_row_has_a_title_of_its_own_a_budget_and_something_to_be_compared_with() -> None:
    rows = list(all_rows().values())
    assert len(rows) >= 10
    assert [entry.order for entry in rows] == sorted({entry.order for entry in rows})
    assert all(
        entry.budgets and (entry.has("numpy") or entry.has("tensorflow") or entry.unit == "x") for entry in rows
    )  # "x" compares itself


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


class Clock:
    """A clock that advances only on request."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(measure, "time", SimpleNamespace(perf_counter=lambda: self.now))

    def takes(self, seconds: float) -> Callable[..., None]:
        """Work that takes so long on the clock."""

        def go_on(*_: object) -> None:
            self.now += seconds

        return go_on


def test_preparation_is_outside_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    assert sample_work(Work(run=clock.takes(3.0), prepare=clock.takes(20.0)), 0.0) == pytest.approx(3.0)


def test_short_work_is_timed_many_times_and_divided_by_what_it_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, calls = Clock(monkeypatch), list[int]()
    takes = clock.takes(1e-5)

    def run() -> None:
        calls.append(1)
        takes()

    assert sample_work(Work(run=run, per=1000), 0.01) == pytest.approx(1e-8)
    assert len(calls) > 100


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (ViewRow("a", "ms", 10, [9, 10, 30]), "ok"),
        (ViewRow("a", "ms", 9, [9, 10, 30]), "over"),
        (ViewRow("a", "frames/s", 50, [40, 60, 70], at_least=True), "ok"),
        (ViewRow("a", "frames/s", 50, [40, 49, 70], at_least=True), "over"),
        (ViewRow("a", "ms", 10, [9], [20, 101]), "blocked"),
    ],
)
def test_a_row_of_views_is_judged_by_its_median_and_by_its_longest_task(row: ViewRow, verdict: str) -> None:
    assert row.verdict() == verdict
    assert verdict in views_table([row]).splitlines()[1]
