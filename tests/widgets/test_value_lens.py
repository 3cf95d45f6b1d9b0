"""The values lens: the statistics of recorded runs on boxes, in the inspector and as health."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.runtime.core.tracing import last_trace
from tests.support.asking import inspect
from tests.support.live_page import LivePage
from widgets.render.compiled import build_scene
from widgets.scene import Scene, SceneState

PIXELS = np.repeat(np.array([[0, 0.5, 1, 2]], np.float32), 16, axis=1)


@pytest.fixture
def faulty() -> gc.Graph:
    """A logarithm of zero and a dead activation, with gradients."""
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [None, 64], name="x")
        with gc.name_scope("layer"):
            dead = gc.relu(x - 5.0, name="dead")
            bad = gc.log(x, name="bad")
        loss = gc.reduce_sum(dead + bad, name="loss")
        gc.identity(gc.gradients(loss, [x])[0], name="dx")
    return graph


def record(graph: gc.Graph, fetches: Any = ("loss:0", "dx:0"), values: Any = True) -> None:
    with gc.Session(graph) as session:
        session.run(list(fetches), {"x:0": PIXELS}, gc.RunOptions(values=values))


def marks(scene: Scene) -> dict[str, str]:
    return {node.id: node.lenses["values"].text for node in scene.nodes if "values" in node.lenses}


def closed() -> SceneState:
    state = SceneState()
    state.mode = "none"
    return state


def test_boxes_have_ranges_in_words_and_scopes_count_the_classes_of_their_nodes(faulty: gc.Graph) -> None:
    record(faulty)
    found = marks(build_scene(faulty))
    assert found["x"] == "0 to 2, mean 0.875"
    assert found["layer/dead"] == "all 0"
    assert found["layer/bad"].startswith("16 Inf, the others -0.6931 to 0.6931")
    scene = build_scene(faulty, closed())
    assert marks(scene)["layer/"] == "Inf × 1, all zero × 1, finite × 2"
    lens = next(lens for lens in scene.lenses if lens.name == "values")
    assert lens.note.startswith("The first NaN or Inf: layer/bad:0: 16 Inf")
    assert lens.legend[0].text in {"NaN", "Inf"}


def test_without_recorded_values_the_lens_says_how_to_record_them(faulty: gc.Graph) -> None:
    lens = next(lens for lens in build_scene(faulty).lenses if lens.name == "values")
    assert "%graph values" in lens.note
    faulty.recording = gc.RunOptions(values=True)
    lens = next(lens for lens in build_scene(faulty).lenses if lens.name == "values")
    assert "the next session.run" in lens.note


def test_the_inspector_shows_ranges_and_with_a_pattern_full_statistics_and_a_picture(faulty: gc.Graph) -> None:
    record(faulty, values="layer/*")
    shown = inspect(faulty, SceneState(), "layer/bad")
    assert shown is not None
    assert shown.recorded[0][1].startswith("float [1,64]: 16 Inf")
    assert shown.values is not None
    facts = dict(shown.values.statistics)
    assert (facts["Inf"], facts["NaN"]) == ("16", "0")
    assert shown.values.rows
    assert len(shown.values.picture) == 8
    plain = inspect(faulty, SceneState(), "x")
    assert plain is not None
    assert plain.values is None


def test_each_iteration_of_a_loop_is_told() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [], name="x")
        gc.while_loop(lambda i, _: i < 3, lambda i, v: [i + 1, v * x], [gc.constant(0), gc.constant(1.0)], name="loop")
    with gc.Session(graph) as session:
        session.run("loop:1", {x: 2.0}, gc.RunOptions(values=True))
    state = SceneState()
    state.expand("loop")
    scene = build_scene(graph, state)
    product = next(box for box, text in marks(scene).items() if box.endswith("mul"))
    assert marks(scene)[product] == "2 to 8, 3 runs"
    shown = inspect(graph, state, product)
    assert shown is not None
    assert [text for _, text in shown.recorded[1:]] == ["2", "4", "8"]


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_a_loop_that_ran_as_part_of_its_gradient_has_its_values_and_times(engine: str) -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [3], name="x")
        double = gc.function(lambda a: gc.multiply(a, 2.0, name="doubled"))
        y = gc.while_loop(lambda i, _: i < 3, lambda i, a: [i + 1, double(gc.tanh(a, name="squash"))], [gc.constant(0), x], name="loop")[1]
        z = gc.reduce_sum(gc.log(y), name="z")
        dx = gc.gradients(z, [x])[0]
    with gc.Session(graph, engine=engine) as session:
        value, *_ = session.run([y, z, dx], {x: [0.0, 0.5, 1.0]}, gc.RunOptions(values=True))
    trace = last_trace(graph)
    assert trace is not None
    records = trace.values
    assert records is not None
    assert records["loop:1"].max == value.max()
    state = SceneState()
    state.expand("*")
    scene = build_scene(graph, state)
    found = marks(scene)
    assert found["loop:body/squash"].endswith("3 runs")
    assert found["loop:body/lambda_:/doubled"].endswith("3 runs")
    assert "loop:body/squash" in [node.id for node in scene.nodes if "time" in node.lenses]
    told = inspect(graph, closed(), "loop")
    assert told is not None
    assert told.recorded
    assert ("runs", "1") in told.times


def test_the_view_answers_with_the_health_of_the_run_and_the_boxes_of_its_nodes(faulty: gc.Graph) -> None:
    port, page = LivePage.of(faulty)
    page.ask(type="ready")
    answer = page.ask_one(type="want_health")
    assert answer["health"] is None
    assert "%graph values" in answer["note"]
    faulty.recording = gc.RunOptions(values=True)
    port.send()
    assert "the next session.run records them" in page.ask_one(type="want_health")["note"]
    record(faulty)
    port.send()
    answer = page.ask_one(type="want_health")
    health = answer["health"]
    assert health["first"]["node"] == "layer/bad"
    assert [row["node"] for row in health["inputs"]] == ["x"]
    assert "layer/dead" in [row["node"] for row in health["zeros"]]
    assert {one["node"] for one in health["magnitudes"]} >= {"layer/bad", "layer/dead"}
    assert answer["boxes"]["layer/bad"] in {"layer/bad", "layer/"}


def test_a_changed_graph_keeps_the_values_of_the_nodes_that_are_left(faulty: gc.Graph) -> None:
    record(faulty)
    with faulty.as_default():
        gc.constant(1.0, name="later")
    found = marks(build_scene(faulty))
    assert "later" not in found
    assert "layer/dead" in found
