"""The timelines of views and pages: recorded runs and predictions."""

from __future__ import annotations

import base64
import gzip
import json
from itertools import accumulate
from typing import Final

import numpy as np
import pytest

import graphcore as gc
import widgets
from graphcore.placement.timeline import Span, make_timeline
from graphcore.runtime.core.tracing import last_trace
from tests.support.live_page import LivePage
from widgets.port import Port
from widgets.scene.timelines import timelines_of, to_view

TRACED: Final = gc.RunOptions(trace=True)
DATA: Final = np.ones((10, 10), np.float32)


@pytest.fixture
def recorded() -> gc.Graph:
    """A graph that was run on two simulated devices."""
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [10, 10], name="x")
        with gc.name_scope("layer"), gc.device("/gpu:0"):
            y = gc.matmul(x, x, name="y")
        with gc.device("/cpu:0"):
            z = gc.identity(y, name="z")
    with gc.Session(graph, gc.simulated_devices("1 cpu, 1 gpu")) as session:
        session.run(z, {x: DATA}, TRACED)
    return graph


def test_the_last_run_of_a_closed_session_and_the_prediction_are_there(recorded: gc.Graph) -> None:
    run, prediction = timelines_of(recorded)
    assert (run.title, prediction.title) == ("Recorded run", "Prediction")
    assert "virtual clock of simulated devices" in run.clock
    assert "virtual clock of simulated devices" in prediction.clock
    assert [lane.text for lane in run.lanes] == [
        "worker 0, cpu:0 (simulated)",
        "worker 0, gpu:0 (simulated)",
        "worker 0, cpu:0 → gpu:0 (simulated)",
        "worker 0, gpu:0 → cpu:0 (simulated)",
    ]
    assert {lane.text: lane.peak for lane in run.lanes if not lane.link}["worker 0, gpu:0 (simulated)"] == 800
    assert all(lane.peak == -1 for lane in run.lanes if lane.link)
    assert {"layer/y", "z", "x:0", "layer/y:0"} == set(run.labels)
    assert set(run.nodes) == {"layer/y", "z", "x"}
    columns = run.spans
    assert {len(column) for column in (columns.lanes, columns.labels, columns.starts, columns.lasting, columns.sizes)} == {4}
    assert max(start + lasting for start, lasting in zip(columns.starts, columns.lasting, strict=True)) == run.length


def test_the_prediction_has_the_nodes_of_the_recorded_run() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [10], name="x")
        y, _ = gc.tanh(x, name="y"), gc.exp(x, name="other")
    (prediction,) = timelines_of(graph)
    assert {"x", "y", "other"} <= set(prediction.nodes)
    gc.Session(graph).run(y, {x: DATA[0]}, TRACED)
    run, prediction = timelines_of(graph)
    assert run.clock == "Recorded by the wall clock"
    assert [lane.text for lane in run.lanes] == ["cpu:0"]
    assert set(prediction.nodes) == {"x", "y"}


def test_a_step_of_too_many_nodes_is_not_predicted_and_says_so(monkeypatch: pytest.MonkeyPatch, recorded: gc.Graph) -> None:
    monkeypatch.setattr("widgets.scene.timelines.MAX_PREDICTED", 2)
    prediction = timelines_of(recorded)[-1]
    assert prediction.clock == "Not predicted"
    assert "up to 2" in prediction.notes[0]


def test_a_long_timeline_says_how_much_of_it_is_there() -> None:
    spans = [Span("/job:localhost/replica:0/task:0/device:CPU:0", f"n{i}", i, i + 1) for i in range(10)]
    view = to_view("Recorded run", make_timeline("wall clock", spans, {}, ()), 4)
    assert len(view.spans.starts) == 4
    assert view.notes == ["the first 4 of 10 spans"]


def test_nodes_of_functions_have_their_names_in_open_calls_and_the_box_of_a_closed_call() -> None:
    graph = gc.Graph()
    with graph.as_default():
        i = gc.while_loop(lambda i: i < 3, lambda i: [i + 1], [gc.constant(0)], name="loop")
    gc.Session(graph).run(i, options=TRACED)
    run = timelines_of(graph)[0]
    inner = [node for label, node in zip(run.labels, run.nodes, strict=True) if " > " in label]
    assert inner
    assert set(inner) == {"loop:cond/Less", "loop:body/add"}
    _, page = LivePage.of(graph)
    page.ask(type="ready")
    page.ask(type="collapse", id="*")
    assert page.ask_one(type="want_timelines")["boxes"]["loop:body/add"] == "loop"
    page.ask(type="reveal", name="loop:body/add", quiet=False)
    assert page.ask_one(type="want_timelines")["boxes"]["loop:body/add"] == "loop:body/add"


def test_memory_of_a_recorded_run_has_the_peak_of_its_trace_and_names_tensors_in_functions() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [100, 10], name="x")

        @gc.function
        def double(a: gc.Tensor) -> gc.Tensor:
            return gc.concat([gc.exp(a), gc.tanh(a)], 0, name="both")

        y = gc.reduce_sum(double(x), name="y")
    with gc.Session(graph) as session:
        session.run(y, {x: np.ones((100, 10), np.float32)}, TRACED)
    trace = last_trace(graph)
    assert trace is not None
    run = timelines_of(graph)[0]
    held = run.memory
    changes = [(start, size) for start, size in zip(held.starts, held.sizes, strict=True)]
    changes += [(start + lasting, -size) for start, lasting, size in zip(held.starts, held.lasting, held.sizes, strict=True)]
    alive = list(accumulate(size for _, size in sorted(changes, key=lambda change: (change[0], -change[1]))))
    assert max(alive) == trace.peak_bytes == run.lanes[0].peak == 4 * 4000
    assert alive[-1] == 0
    assert {run.nodes[label] for label in held.labels} == {"double:/Exp", "double:/Tanh", "double:/both", "double"}


def test_the_view_sends_timelines_once_and_the_boxes_of_each_picture(recorded: gc.Graph) -> None:
    _, page = LivePage.of(recorded)
    page.ask(type="ready")
    scene = page.ask_one(type="collapse", id="*")["scene"]
    first = page.ask_one(type="want_timelines")
    assert first["boxes"]["z"] == "z"
    assert first["boxes"]["layer/y"] in {node["id"] for node in scene["nodes"]}
    page.ask(type="expand", id="*")
    again = page.ask_one(type="want_timelines", known=first["key"])
    assert again["timelines"] is None
    assert again["boxes"]["layer/y"] == "layer/y"
    with gc.Session(recorded, gc.simulated_devices("1 cpu, 1 gpu")) as session:
        session.run("z:0", {"x:0": DATA}, TRACED)
    last = page.ask_one(type="want_timelines", known=first["key"])
    assert [timeline["title"] for timeline in last["timelines"]] == ["Recorded run", "Prediction"]


def test_a_saved_picture_carries_the_recorded_run_unless_it_is_long(recorded: gc.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def saved() -> list[str]:
        packed = Port(recorded, lambda _message, _buffers: None).take("", with_graph=True).graph_gzip_base64
        head = json.loads(gzip.decompress(base64.b64decode(packed)).splitlines()[1])
        return [timeline["title"] for timeline in head["timelines"]]

    assert saved() == ["Recorded run"]
    monkeypatch.setattr("widgets.scene.timelines.MAX_SAVED_EVENTS", 2)
    assert saved() == []


def test_a_page_carries_the_recorded_run(recorded: gc.Graph) -> None:
    page = widgets.to_html(recorded)
    data = json.loads(page.partition('id="graphloupe-data">')[2].partition("</script>")[0])
    assert [timeline["title"] for timeline in data["timelines"]] == ["Recorded run", "Prediction"]
    assert len(json.dumps(data["timelines"])) < 3000
    plain = gc.Graph()
    with plain.as_default():
        gc.constant(1)
    assert '"timelines"' not in widgets.to_html(plain).partition('id="graphloupe-data">')[2].partition("</script>")[0]
