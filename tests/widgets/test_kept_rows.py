"""Rows that are kept while a graph changes are those that a fresh look at it gives."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.graph import GradientRecord
from tests.graphcore.difference import test_random_edits as edits
from tests.support.cells import cell_runner
from tests.support.random_cells import CELLS, code_of
from tests.widgets import test_call_properties as with_calls
from tests.widgets import test_scene_properties as with_scopes
from widgets.render.page_data import KeptRows, LiveData, graph_data, graph_data_in_steps
from widgets.render.page_data.steps import done
from widgets.scene import SceneState


def check(graph: gc.Graph, kept: KeptRows) -> None:
    now, anew = done(graph_data_in_steps(graph, SceneState(), kept)), graph_data(graph, SceneState())
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


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(CELLS)), st.integers(0, 2)), min_size=2, max_size=10))
def test_random_cells_are_in_kept_rows(choices: list[tuple[str, int]]) -> None:
    graph = gc.Graph()
    with graph.as_default():
        run, kept = cell_runner(graph), KeptRows(graph)
        for cell, way in [("a", 0), ("b", 0), *choices]:
            run(cell, code_of(cell, way))
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


def test_a_node_that_is_removed_and_made_again_is_in_the_rows_of_those_that_take_it_or_wait_for_it() -> None:
    graph = gc.Graph()
    with graph.as_default():
        a = gc.constant([1.0], name="a")
        taking = gc.tanh(a, name="taking")
        with gc.control_dependencies([a.node]):
            gc.constant(2.0, name="waiting")
        kept = KeptRows(graph)
        check(graph, kept)
        graph.remove_node(a.node)
        check(graph, kept)
        with gc.control_dependencies([taking.node]):
            gc.placeholder(gc.float32, [1], name="other")
        gc.constant([3.0], name="a")
        check(graph, kept)


def test_a_node_between_gradient_nodes_is_in_the_rows_as_they_are_there() -> None:
    graph = gc.Graph()
    with graph.as_default():
        forward = [gc.placeholder(gc.float32, [2], name=f"f{number}") for number in range(2)]
        helper = gc.identity(forward[0], name="g/helper")
        recorded = [gc.tanh(helper, name=f"g/r{number}") for number in range(3)]
        for node, origin in zip(recorded, [forward[0], forward[1], forward[1]], strict=True):
            graph.gradient_records[node.node.name] = GradientRecord(origin.node.name, None, {}, "")
        kept, live = KeptRows(graph), LiveData(graph, KeptRows(graph), SceneState())
        check(graph, kept)
        live.whole()
        graph.remove_node(recorded[0].node)
        check(graph, kept)
        assert live.change().origins == [helper.node.id, forward[1].node.id]
        for number in range(2):
            gc.placeholder(gc.float32, [2], name=f"g/more{number}")
        check(graph, kept)
