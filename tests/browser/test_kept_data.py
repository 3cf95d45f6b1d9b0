"""A page that keeps the data of a graph and applies changes compiles the kernel's scenes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser, Page

import graphcore as gc
from tests.browser.page_worker import LiveWorker
from tests.golden.scene_cases import CASES, Case
from tests.golden.scenes import View, comparable, read
from tests.graphcore.difference import test_random_edits as edits
from tests.support.cells import cell_runner
from tests.support.random_cells import CELLS, code_of
from tests.support.walks import next_request
from tests.widgets import test_scene_properties as with_scopes
from widgets.scene import SceneState


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


class Pair:
    """A picture that the kernel compiles, and one of a page that keeps the graph's data."""

    def __init__(self, page: Page, graph: gc.Graph, seed: int, *, max_boxes: int = 300) -> None:
        self._chance = random.Random(seed)
        self._view = View(graph, Case(lambda: graph, limits={"max_boxes": max_boxes}))
        self._worker = LiveWorker(page, graph, SceneState(max_boxes=max_boxes))

    def compare(self, steps: int) -> None:
        """Bring the page up to date; open, close and reveal boxes, and compare each scene."""
        self._worker.update()
        request = {"type": "ready"}
        for _ in range(steps):
            scene, openings = self._worker.scene(**request)
            found = {"scene": comparable(scene), "openings": msgspec.to_builtins(openings)}
            assert found == self._view.answer(request), request
            request = next_request(self._chance, self._view)


@pytest.mark.sweep
@pytest.mark.parametrize("name", CASES)
def test_the_whole_data_gives_the_stored_scenes(page: Page, name: str) -> None:
    with CASES[name].opened() as graph:
        walk = read(name)["walks"][0]
        worker = LiveWorker(page, graph, SceneState(**CASES[name].limits))
        worker.update()
        for request, answer in islice(zip(walk["requests"], walk["answers"], strict=True), 3):
            scene, openings = worker.scene(**request)
            assert {"scene": comparable(scene), "openings": msgspec.to_builtins(openings)} == answer, request


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(with_scopes.graphs(), st.lists(edits.EDITS, max_size=3), st.integers(0, 1000), st.sampled_from([5, 60]))
def test_random_edits_are_in_the_scenes(page: Page, graph: gc.Graph, changes: list[list[edits.Edit]], seed: int, boxes: int) -> None:
    pair = Pair(page, graph, seed, max_boxes=boxes)
    pair.compare(3)
    for each in changes:
        edits.apply(graph, each)
        pair.compare(3)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(sorted(CELLS)), st.integers(0, 2)), min_size=2, max_size=8), st.integers(0, 1000))
def test_random_cells_are_in_the_scenes(page: Page, choices: list[tuple[str, int]], seed: int) -> None:
    graph = gc.Graph()
    with graph.as_default():
        run, pair = cell_runner(graph), Pair(page, graph, seed)
        for cell, way in [("a", 0), ("b", 0), *choices]:
            run(cell, code_of(cell, way))
            pair.compare(3)


def test_a_page_that_missed_a_change_asks_for_the_whole_graph(page: Page) -> None:
    graph = gc.Graph()
    worker = LiveWorker(page, graph, SceneState())
    with graph.as_default():
        gc.constant(1.0, name="a")
        worker.update()
        gc.constant(1.0, name="b")
        worker.live.change()
        gc.constant(1.0, name="c")
        assert worker.send(worker.live.change()) == {"type": "ask", "request": {"type": "want_whole"}}
        assert [node.id for node in worker.scene(type="ready")[0].nodes] == ["a"]
        worker.send(worker.live.whole())
        assert [node.id for node in worker.scene(type="ready")[0].nodes] == ["a", "b", "c"]
