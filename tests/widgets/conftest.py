"""Graphs for the tests of views."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import graphcore as gc
from tests.support.cells import RunCell, cell_runner

__all__ = ["RunCell", "graph", "run_cell", "softmax_regression"]


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
    return cell_runner(graph)
