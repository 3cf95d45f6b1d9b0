"""Graphs for the tests of views."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator

import pytest

import graphcore as gc
from graphcore.source import CellRun, current_run

RunCell = Callable[[str, str], BaseException | None]


@pytest.fixture
def graph() -> Iterator[gc.Graph]:
    """An empty default graph."""
    gc.reset_default_graph()
    yield gc.get_default_graph()
    gc.reset_default_graph()


@pytest.fixture
def softmax_regression(graph: gc.Graph) -> gc.Graph:
    """The quick start's model with loss, gradients, update and initialisation."""
    x = gc.placeholder(gc.float32, [None, 64], name="x")
    labels = gc.placeholder(gc.float32, [None, 10], name="labels")
    w = gc.Variable(gc.zeros([64, 10]), name="W")
    b = gc.Variable(gc.zeros([10]), name="b")
    y = gc.softmax(x @ w + b, name="y")
    loss = gc.reduce_mean(-gc.reduce_sum(labels * gc.log(y), axis=[1]), name="loss")
    gw, gb = gc.gradients(loss, [w, b])
    gc.group(w.assign_sub(0.5 * gw), b.assign_sub(0.5 * gb), name="train")
    gc.initialize_all_variables()
    return graph


@pytest.fixture
def run_cell(graph: gc.Graph) -> RunCell:
    """Runs text as a notebook cell: `run_cell(cell_id, text)`; returns the exception it ended with."""
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
