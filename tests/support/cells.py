"""Code as notebook cells with labels and lines, so that nodes know their cell."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any, TypeVar

import graphcore as gc
from graphcore.source import CellRun, cell_runs, current_run

_T = TypeVar("_T")
RunCell = Callable[[str, str], BaseException | None]
"""Runs text as a cell with this id; returns the exception that it ended with."""


def cell_runner(graph: gc.Graph) -> RunCell:
    """Runs cells as a notebook does.

    A cell that runs again replaces its nodes, and one that fails is known as failed.
    """
    names: dict[str, object] = {"gc": gc}
    count = 0

    def run(cell: str, text: str) -> BaseException | None:
        nonlocal count
        count += 1
        file = f"<cell {count} of {id(names)}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        cell_run = CellRun(cell=cell, execution=count, label=f"In [{count}]", file=file)
        graph.begin_cell(cell_run)
        token = current_run.set(cell_run)
        error: BaseException | None = None
        try:
            exec(compile(text, file, "exec"), names)
        except Exception as raised:  # noqa: BLE001 - a cell may end with any exception; it is handed to the test
            error = raised
        finally:
            current_run.reset(token)
        graph.end_cell(cell_run, failed=error is not None, error=error)
        return error

    return run


def run_as_cell(code: Callable[[], _T], execution: int) -> _T:
    """Run `code` as a run of one cell of the default graph, which replaces the nodes of the last run."""
    graph, run = gc.get_default_graph(), CellRun(cell="a", execution=execution, label=f"In [{execution}]")
    token = current_run.set(run)
    graph.begin_cell(run)
    try:
        return code()
    finally:
        current_run.reset(token)
        graph.end_cell(run, failed=False)


def run_cells(*cells: str, graph: gc.Graph | None = None) -> gc.Graph:
    """Run the cells in order, `In [1]` first, with `gc` and the names of earlier cells.

    Raises:
        Exception: an error of a cell; `graph`, if given, has the nodes of the cells before it.
    """
    made = gc.Graph() if graph is None else graph
    names: dict[str, Any] = {"gc": gc}
    with made.as_default():
        for number, code in enumerate(cells, 1):
            run_cell(code, number, names)
    return made


def run_cell(code: str, number: int, names: dict[str, Any]) -> None:
    """Run one cell in the default graph."""
    file = f"<cell {number}>"
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    run = cell_runs[file] = CellRun(cell=f"cell-{number}", execution=number, label=f"In [{number}]", file=file)
    token = current_run.set(run)
    try:
        exec(compile(code, file, "exec"), names)
    finally:
        current_run.reset(token)
