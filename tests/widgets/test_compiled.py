"""Scenes are compiled in the engine, which keeps the data of graphs; without one a scene is plain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import graphcore as gc
import widgets
from tests.golden.scene_cases import CASES
from tests.golden.scenes import comparable
from tests.support.pages import data_of
from widgets.live.graph_view import GraphView
from widgets.messages import SceneMessage
from widgets.render import engine as engines
from widgets.render.compiled import boxes_of, build_scene, main_names, reveal
from widgets.render.engine import engine
from widgets.render.outline import to_outline
from widgets.scene import Scene, SceneState, take_snapshot


@pytest.fixture
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [None, 4], name="x")
        with gc.name_scope("layer"):
            gc.tanh(gc.identity(x, name="same"), name="y")
        yield graph


@pytest.fixture
def without_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    engine.close()
    monkeypatch.setattr(engines, "SCRIPTS", (Path("missing.js.gz"),))


def ids(scene: Scene) -> set[str]:
    return {node.id for node in scene.nodes}


def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the changes that the engine gets from now on."""
    lengths: list[int] = []
    ask = engine.ask

    def counted(method: str, *args: str, limit: float = 8.0) -> str:
        if method == "compile":
            lengths.append(len(args[2]))
        return ask(method, *args, limit=limit)

    monkeypatch.setattr(engine, "ask", counted)
    return lengths


@pytest.mark.parametrize("name", CASES)
def test_the_first_picture_of_a_page_is_that_of_the_graph(name: str) -> None:
    graph, state = CASES[name].graph(), SceneState(**CASES[name].limits)
    deepest = max(graph.nodes, key=lambda node: node.name.count("/"))
    state.reveal(deepest.name)
    own = state.copy()
    page = msgspec.convert(data_of(widgets.to_html(graph, own))["message"], SceneMessage)
    assert comparable(page.scene) == comparable(build_scene(graph, state))
    assert page.openings == state.openings()


def test_the_data_of_a_page_is_sent_once_and_is_not_kept(graph: gc.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    ask = engine.ask

    def noted(method: str, *args: str, limit: float = 8.0) -> str:
        asked.append(method)
        return ask(method, *args, limit=limit)

    monkeypatch.setattr(engine, "ask", noted)
    widgets.to_html(graph)
    assert asked == ["first"]


def test_only_what_has_changed_is_sent_again(graph: gc.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    y = graph.get_tensor_by_name("layer/y:0")
    for _ in range(1000):
        y = gc.tanh(y)
    lengths = sent(monkeypatch)
    build_scene(graph)
    build_scene(graph, SceneState(mirror=True))
    gc.tanh(y, name="late")
    scene = build_scene(graph)
    whole, nothing, change = lengths
    assert nothing == len("[]")
    assert 0 < 10 * change < whole
    assert scene.total_nodes == len(graph)


def test_a_graph_is_sent_whole_to_an_engine_that_was_started_again(graph: gc.Graph) -> None:
    before = build_scene(graph)
    engine.close()
    assert build_scene(graph) == before
    gc.tanh(graph.get_tensor_by_name("layer/y:0"), name="late")
    engine.close()
    assert "late" in ids(build_scene(graph))


def test_a_graph_is_sent_again_after_many_others(graph: gc.Graph) -> None:
    before = build_scene(graph)
    for _ in range(20):
        with gc.Graph().as_default() as other:
            gc.placeholder(gc.float32, [], name="only")
        assert ids(build_scene(other)) == {"only"}
    assert build_scene(graph) == before
    gc.tanh(graph.get_tensor_by_name("layer/y:0"), name="late")
    assert "late" in ids(build_scene(graph))


def test_boxes_and_nodes_are_those_of_the_picture(graph: gc.Graph) -> None:
    state = SceneState()
    state.collapse("*")
    assert boxes_of(graph, state) == {"x": "x", "layer/same": "layer/", "layer/y": "layer/"}
    assert main_names(graph, state) == ["x"]
    assert reveal(graph, state, "layer/y")
    assert state.openings().opened == ["layer"]
    assert set(main_names(graph, state)) == {"x", "layer/same", "layer/y"}
    assert not reveal(graph, state, "layer/missing")


def test_new_and_changed_nodes_are_marked(graph: gc.Graph) -> None:
    before = take_snapshot(graph)
    gc.tanh(graph.get_tensor_by_name("layer/y:0"), name="late")
    assert {node.id: node.state for node in build_scene(graph, previous=before).nodes}["late"] == "new"
    assert {node.state for node in build_scene(graph).nodes} == {"normal"}


@pytest.mark.usefixtures("without_engine")
def test_without_an_engine_there_is_a_plain_outline_and_the_reason(graph: gc.Graph) -> None:
    scene = build_scene(graph)
    assert scene.summary == "3 nodes; no picture: the engine is missing: missing.js.gz"
    outline = to_outline(scene)
    assert "Placeholder x float [?,4]" in outline
    assert "layer/\n  Identity layer/same float [?,4] <- x\n  Tanh layer/y float [?,4] <- layer/same\n" in outline
    assert boxes_of(graph, SceneState()) == {}
    assert "the engine is missing" in widgets.to_svg(graph)
    assert "the engine is missing" in widgets.to_outline(graph)


@pytest.mark.usefixtures("without_engine")
def test_without_an_engine_a_view_shows_the_outline(graph: gc.Graph) -> None:
    view = GraphView(graph)
    bundle = view.still_bundle()
    assert "the engine is missing" in bundle["text/html"]
    assert "layer/y" in bundle["text/plain"]
    assert view.nodes_in_view() == []


@pytest.mark.usefixtures("without_engine")
def test_a_large_plain_outline_lists_the_first_nodes(graph: gc.Graph) -> None:
    for _ in range(300):
        gc.no_op()
    scene = build_scene(graph)
    assert len(scene.nodes) == 200
    assert scene.summary.startswith("303 nodes, of which the first 200 are listed; ")


def test_a_picture_that_was_taken_shows_the_choices_of_that_moment(graph: gc.Graph) -> None:
    view = GraphView(graph)
    view.choices.collapse("*")
    taken = view.take_still(with_graph=False)
    view.choices.expand("layer")
    assert ids(taken.message.scene) == {"x", "layer/"}
    assert ids(view.scene) == {"x", "layer/same", "layer/y"}
