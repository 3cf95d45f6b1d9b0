"""Rows that are kept while a graph changes are those that a fresh look at it gives."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc
from tests.graphcore.difference import test_random_edits as edits
from tests.support.cells import cell_runner
from tests.widgets import test_call_properties as with_calls
from tests.widgets import test_scene_properties as with_scopes
from widgets.render.page_data import KeptRows, PageData, graph_data, graph_data_in_steps
from widgets.scene import SceneState


def written(graph: gc.Graph, kept: KeptRows) -> PageData:
    """The data of a graph from kept rows."""
    steps = graph_data_in_steps(graph, SceneState(), kept)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            data: PageData = end.value
            return data


def check(graph: gc.Graph, kept: KeptRows) -> None:
    now, anew = written(graph, kept), graph_data(graph, SceneState())
    for field in ("texts", "sources", "spaces", "head"):
        assert msgspec.to_builtins(getattr(now, field)) == msgspec.to_builtins(getattr(anew, field))


@settings(max_examples=60, deadline=None)
@given(with_scopes.graphs(), st.lists(edits.EDITS, max_size=3))
def test_random_edits_are_in_kept_rows(graph: gc.Graph, changes: list[list[edits.Edit]]) -> None:
    kept = KeptRows(graph)
    check(graph, kept)
    for each in changes:
        edits.apply(graph, each)
        check(graph, kept)


@settings(max_examples=15, deadline=None)
@given(with_calls.graphs(), edits.EDITS)
def test_random_edits_of_graphs_with_functions_are_in_kept_rows(graph: gc.Graph, changes: list[edits.Edit]) -> None:
    kept = KeptRows(graph)
    check(graph, kept)
    edits.apply(graph, changes)
    check(graph, kept)


CELLS = {
    "a": ("x = gc.placeholder(gc.float32, [None, {n}], name='x')\nw = gc.Variable(gc.zeros([{n}, 3]), name='w')", 3),
    "b": ("y = gc.{op}(x @ w, name='y')", 3),
    "c": ("loss = gc.reduce_sum(y)\n(gw,) = gc.gradients(loss, [w])\ntrain = w.assign_sub(gw)", 1),
    "d": ("gc.Placer(gc.get_default_graph(), gc.simulated_devices('1 cpu, {n} gpu')).run()", 2),
    "e": ("y.node.set_requested_device('/gpu:{n}')", 2),
    "f": ("@gc.function\ndef f(v):\n    return gc.{op}(v)", 3),
    "g": ("z = f(y)", 1),
    "h": ("r = gc.cond(gc.reduce_sum(y) > 0.0, lambda: y, lambda: -y)", 1),
    "i": ("s = gc.tanh(y, name='s')\nraise ValueError", 1),
    "j": ("s = gc.tanh(y, name='s')", 1),
    "k": ("q = gc.concat([x, x], axis=0)\np = gc.reshape(q, [-1, 2])\np + gc.placeholder(gc.float32, [None, {n}])", 2),
    "l": ("bad = gc.matmul(x, gc.zeros([{n}, 2]))", 3),
    "m": ("with gc.name_scope('part'):\n    t = gc.{op}(gc.identity(x, name='in')) + x", 3),
    "n": ("gc.get_default_graph().remove_node(y.node)", 1),
    "o": ("gc.get_default_graph().cells.delete('j')", 1),
}
OPS = ("tanh", "exp", "relu")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(CELLS)), st.integers(0, 2)), min_size=2, max_size=10))
def test_random_cells_are_in_kept_rows(choices: list[tuple[str, int]]) -> None:
    graph = gc.Graph()
    with graph.as_default():
        run, kept = cell_runner(graph), KeptRows(graph)
        for cell, number in [("a", 0), ("b", 0), *choices]:
            text, ways = CELLS[cell]
            run(cell, text.format(n=2 + number % ways, op=OPS[number % ways]))
            check(graph, kept)


@settings(max_examples=30, deadline=None)
@given(with_scopes.graphs(), edits.EDITS, edits.EDITS)
def test_changes_that_are_taken_back_are_in_kept_rows(graph: gc.Graph, first: list[edits.Edit], second: list[edits.Edit]) -> None:
    kept = KeptRows(graph)
    check(graph, kept)

    def edit_and_fail() -> None:
        with graph.transaction():
            edits.apply(graph, first)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        edit_and_fail()
    check(graph, kept)
    edits.apply(graph, second)
    check(graph, kept)
