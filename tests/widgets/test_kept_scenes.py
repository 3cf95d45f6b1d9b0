"""Scenes of a graph whose changes are sent are those of the whole graph."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc
from tests.golden.scene_cases import Case
from tests.golden.scenes import View, comparable
from tests.graphcore.difference import test_random_edits as edits
from tests.support.cells import cell_runner
from tests.support.live_page import LivePage
from tests.support.random_cells import CELLS, code_of
from tests.support.walks import next_request
from tests.widgets import test_scene_properties as with_scopes
from widgets import add_overlay
from widgets.render.compiled import GraphCompiler
from widgets.requests import ReadyRequest
from widgets.scene import Scene


class Changing:
    """A picture of a graph that changes."""

    def __init__(self, graph: gc.Graph, seed: int, *, max_boxes: int = 300) -> None:
        self._chance = random.Random(seed)
        self._view = View(graph, Case(lambda: graph, limits={"max_boxes": max_boxes}))

    def compare(self, steps: int) -> None:
        """Open, close and reveal boxes, and compare each scene with that of the whole graph."""
        view = self._view
        for _ in range(steps):
            found = view.answer(next_request(self._chance, view))
            whole, _ = GraphCompiler(view.graph).ask(Scene, "scene", view.state.copy())
            assert found["scene"] == comparable(whole)


@settings(max_examples=20, deadline=None)
@given(with_scopes.graphs(), st.lists(edits.EDITS, max_size=3), st.integers(0, 1000), st.sampled_from([5, 60]))
def test_random_edits_are_in_the_scenes(graph: gc.Graph, changes: list[list[edits.Edit]], seed: int, boxes: int) -> None:
    picture = Changing(graph, seed, max_boxes=boxes)
    picture.compare(3)
    for number, each in enumerate(changes):
        edits.apply(graph, each)
        picture.compare(3)
        if len(graph):
            add_overlay(graph, {node.name: number + place for place, node in enumerate(graph.op_nodes()) if place < 9})
            picture.compare(3)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(CELLS)), st.integers(0, 2)), min_size=2, max_size=8), st.integers(0, 1000))
def test_random_cells_are_in_the_scenes(choices: list[tuple[str, int]], seed: int) -> None:
    graph = gc.Graph()
    with graph.as_default():
        run, picture = cell_runner(graph), Changing(graph, seed)
        for cell, way in [("a", 0), ("b", 0), *choices]:
            run(cell, code_of(cell, way))
            picture.compare(3)


def test_a_whole_graph_that_shows_nothing_new_is_no_new_picture(graph: gc.Graph) -> None:
    gc.constant(1.0, name="a")
    port, page = LivePage.of(graph)
    for _ in range(2):
        port.answer(ReadyRequest())
    gc.constant(2.0, name="b")
    for _ in range(2):
        port.answer(ReadyRequest())
    assert [message["scene"]["revision"] for message in page.sent] == [1, 1, 2, 2]
