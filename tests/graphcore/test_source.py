"""Source locations in words."""

from __future__ import annotations

import linecache
from collections.abc import Iterator

import pytest

from graphcore.source import CellRun, SourceLocation, caller_location, cell_runs, current_run

RUN = CellRun(cell="abc", execution=5, label="In [5]", file="cell-five")


@pytest.fixture
def runs() -> Iterator[dict[str, CellRun]]:
    cell_runs.update({"cell-two": CellRun(cell="def", execution=2, label="In [2]", file="cell-two"), "cell-five": RUN})
    yield cell_runs
    for file in ("cell-two", "cell-five"):
        del cell_runs[file]


@pytest.mark.parametrize(
    ("location", "where"),
    [
        (SourceLocation("cell-five", 3, RUN), "cell In [5], line 3"),
        (SourceLocation("cell-two", 3, RUN), "cell In [2], line 3 (called in cell In [5])"),
        (SourceLocation("/home/me/train.py", 3, RUN), "train.py, line 3 (called in cell In [5])"),
        (SourceLocation("/home/me/train.py", 3), "train.py, line 3"),
        (SourceLocation("cell-two", 3), "cell In [2], line 3"),
        (SourceLocation("anything", 3, CellRun(cell="abc", execution=1, label="In [1]")), "cell In [1], line 3"),
    ],
    ids=["own-cell", "function-of-an-earlier-cell", "module", "script", "after-the-cell", "file-not-known"],
)
def test_a_line_is_found_in_the_cell_or_file_that_holds_it(runs: dict[str, CellRun], location: SourceLocation, where: str) -> None:
    assert location.where == where


def test_a_location_quotes_its_line() -> None:
    linecache.cache["cell-nine"] = (10, None, ["x = 1\n", "    y = 2\n"], "cell-nine")
    assert str(SourceLocation("cell-nine", 2)) == "cell-nine, line 2: y = 2"
    assert str(SourceLocation("cell-nine", 7)) == "cell-nine, line 7"


def test_the_location_of_a_caller_knows_the_running_cell() -> None:
    token = current_run.set(RUN)
    try:
        location = caller_location()
    finally:
        current_run.reset(token)
    assert location.run is RUN
    assert location.file == __file__
    assert "caller_location()" in location.text
