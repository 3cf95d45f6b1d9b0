"""A graph returns to snapshots, as often as one likes, and goes on from there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import graphcore as gc
from graphcore.errors import FailedPreconditionError
from graphcore.graph.snapshot import Snapshot
from tests.graphcore.graph.example_graphs import everything, ranks_fit, registry
from tests.graphcore.graph.random_edits import Edit, edits, picture, run_all

_COUNTERS = 4


def state_of(graph: gc.Graph) -> list[object]:
    """The complete state, but for counters."""
    return [part for place, part in enumerate(everything(graph)) if place != _COUNTERS]


@given(edits(), edits(), edits())
def test_a_graph_returns_to_a_snapshot_and_goes_on_from_it(before: list[Edit], within: list[Edit], after: list[Edit]) -> None:
    graph, plain = gc.Graph(registry()), gc.Graph(registry())
    for each in (graph, plain):
        run_all(each, before)
    seen, known = picture(graph), state_of(graph)
    start = Snapshot(graph)
    run_all(graph, within)
    later_picture, later = picture(graph), state_of(graph)
    end = Snapshot(graph)
    for _ in range(2):
        start.restore()
        assert (picture(graph), state_of(graph)) == (seen, known)
        end.restore()
        assert (picture(graph), state_of(graph)) == (later_picture, later)
    start.restore()
    run_all(graph, after)
    run_all(plain, after)
    assert picture(graph) == picture(plain)
    assert ranks_fit(graph)


def test_tensors_that_are_held_stay_valid_and_run() -> None:
    with gc.Graph().as_default() as graph:
        x = gc.constant(3.0, name="x")
        y = gc.square(x, name="y")
        (dx,) = gc.gradients(y, [x])
        snapshot = Snapshot(graph)
        graph.set_attr(x.node, "value", np.float32(5.0))
        graph.remove_node(y.node)
        gc.negative(x, name="y")
        snapshot.restore()
        with gc.Session() as session:
            assert session.run([y, dx]) == [9.0, 6.0]
        graph.set_attr(x.node, "value", np.float32(4.0))
        with gc.Session() as session:
            assert session.run([y, dx]) == [16.0, 8.0]


def test_an_open_session_follows() -> None:
    with gc.Graph().as_default() as graph, gc.Session() as session:
        y = gc.square(gc.constant(3.0, name="x"), name="y")
        snapshot = Snapshot(graph)
        assert session.run(y) == 9.0
        graph.set_attr(graph.get_operation_by_name("x"), "value", np.float32(5.0))
        assert session.run(y) == 25.0
        snapshot.restore()
        assert session.run(y) == 9.0


def test_subscribers_learn_of_each_node_that_changes() -> None:
    with gc.Graph().as_default() as graph:
        gc.constant(1.0, name="kept")
        gc.constant(1.0, name="changed")
        gone = gc.constant(1.0, name="gone")
        snapshot = Snapshot(graph)
        graph.set_attr(graph.get_operation_by_name("changed"), "value", np.float32(2.0))
        graph.remove_node(gone.node)
        gc.constant(1.0, name="new")
        heard = []
        graph.subscribe(lambda change: heard.append((change.kind, change.node)))
        version = graph.version
        snapshot.restore()
    assert sorted(heard) == [("added", "gone"), ("removed", "new"), ("replaced", "changed")]
    assert graph.version > version


def test_a_finalized_graph_does_not_return() -> None:
    graph = gc.Graph()
    snapshot = Snapshot(graph)
    graph.finalize()
    with pytest.raises(FailedPreconditionError, match="finalized"):
        snapshot.restore()
