"""Standalone pages, whose data are whole, show the scenes and facts of live views, which get changes.

The scenes of certain graphs are stored: `tests/golden/scenes.py`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser, Page

import graphcore as gc
from graphcore.difference import difference_graph
from tests.browser.page_worker import LiveWorker, PageWorker
from tests.golden.scene_cases import CASES, DATA, Case
from tests.golden.scenes import View, comparable
from tests.graphcore.difference import test_random_edits as edits
from tests.support.asking import inspect
from tests.support.walks import Request, next_request
from tests.widgets import test_call_properties as with_calls
from tests.widgets import test_scene_properties as with_scopes
from widgets.render.compiled import build_scene
from widgets.scene import SceneState


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


def compare(page: Page, graph: gc.Graph, seed: int, steps: int = 12, *, max_boxes: int = 300) -> None:
    """Open, close and reveal what `seed` chooses; compare each scene."""
    chance = random.Random(seed)
    case = Case(lambda: graph, limits={"max_boxes": max_boxes})
    view, worker = View(graph, case), PageWorker(page, graph, SceneState(max_boxes=max_boxes))
    request: Request = {"type": "ready"}
    for _ in range(steps):
        scene, openings = worker.scene(**request)
        assert {"scene": comparable(scene), "openings": msgspec.to_builtins(openings)} == view.answer(request), request
        request = next_request(chance, view)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(with_scopes.graphs(), st.integers(0, 1000), st.sampled_from([5, 60]))
def test_graphs_of_scopes_and_gradients_look_the_same_in_a_page(page: Page, graph: gc.Graph, seed: int, boxes: int) -> None:
    compare(page, graph, seed, max_boxes=boxes)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(with_calls.graphs(), st.integers(0, 1000))
def test_graphs_of_functions_branches_and_loops_look_the_same_in_a_page(page: Page, graph: gc.Graph, seed: int) -> None:
    compare(page, graph, seed)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(with_scopes.graphs(), edits.EDITS, st.booleans(), st.integers(0, 1000), st.sampled_from([5, 60]))
def test_differences_look_the_same_in_a_page(
    page: Page, graph: gc.Graph, changes: list[edits.Edit], backwards: bool, seed: int, boxes: int
) -> None:
    before = graph.copy()
    edits.apply(graph, changes)
    compare(page, difference_graph(gc.graph_diff(*((graph, before) if backwards else (before, graph)))), seed, max_boxes=boxes)


FIELDS = ("id", "name", "op", "kind", "doc", "traits", "signature", "device", "source", "error", "clashes", "functions", "contents")


@pytest.mark.parametrize(
    "name",
    ["gradients_of_a_network", "a_call_with_its_gradient", "a_loop_in_a_branch", "copies_between_devices", "unknown_sizes_in_bodies"],
)
def test_the_inspector_of_a_page_says_what_the_kernel_says(page: Page, name: str) -> None:
    graph = CASES[name].graph()
    state = SceneState()
    state.expand("*")
    scene = build_scene(graph, state)
    worker = PageWorker(page, graph, state)
    worker.scene(type="ready")
    boxes = [*(node.id for node in scene.nodes), *(group.id for group in scene.groups)]
    for box in boxes[:: max(1, len(boxes) // 20)]:
        told = inspect(graph, state, box)
        assert told is not None
        found = worker.ask(type="inspect", id=box)["inspection"]
        expected = msgspec.json.decode(msgspec.json.encode(told))
        assert {name: found[name] for name in FIELDS} == {name: expected[name] for name in FIELDS}
        for rows in ("attrs", "inputs", "outputs", "control_inputs", "control_outputs"):
            assert found[rows] == expected[rows], (box, rows)
        for gradient in ("gradient", "registered_gradient"):
            ours, theirs = found[gradient], expected[gradient]
            assert ours is theirs or {**ours, "built": ""} == {**theirs, "built": ""}
        assert [[(step["text"], step["node"]) for step in why["steps"]] for why in found["why"]] == [
            [(step["text"], step["node"]) for step in why["steps"]] for why in expected["why"]
        ]


def test_every_node_of_a_large_model_is_found_and_revealed_in_a_page(page: Page) -> None:
    graph = gc.load(DATA / "mobilenetv2.pb", allow_unknown_ops=True)
    worker = PageWorker(page, graph, SceneState())
    for node in graph.nodes[::111]:
        hits = worker.ask(type="find", query=node.name, limit=50)["hits"]
        assert hits[0]["name"] == node.name
        scene, _ = worker.scene(type="reveal", name=node.name)
        assert any(box.id == node.name for box in scene.nodes)
    assert worker.ask(type="find", query="bn_Conv1_1/batchnorm/mul", limit=50)["total"] >= 1


def test_a_cell_is_filtered_by_its_number_in_a_page(page: Page) -> None:
    graph = CASES["a_failed_cell"].graph()
    worker = PageWorker(page, graph, SceneState())
    worker.scene(type="ready")
    answer = {"type": "highlight", "boxes": ["w"], "text": "1 node for cell:4, in 1 box"}
    assert worker.ask(type="filter", query="cell:4") == answer


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
