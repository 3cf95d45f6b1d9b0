"""The time lens: the times of the last recorded run on boxes and in the inspector."""

from __future__ import annotations

import re

import numpy as np
import pytest

import graphcore as gc
from graphcore.runtime import Event, Trace
from tests.support.asking import inspect
from widgets.render.compiled import build_scene
from widgets.scene import Scene, SceneState
from widgets.scene.time_lens import time_text
from widgets.scene.timelines import timelines_of

TRACED = gc.RunOptions(trace=True)
MS = 1_000_000


def times(scene: Scene) -> dict[str, str]:
    """The texts of the time lens by box."""
    return {node.id: node.lenses["time"].text for node in scene.nodes if "time" in node.lenses}


def opened(*paths: str) -> SceneState:
    """A view in which nothing but these is open."""
    state = SceneState()
    state.mode = "none"
    for path in paths:
        state.expand(path)
    return state


def ran(node: str, start: int, end: int, call: str = "", *, size: int = 0) -> list[Event]:
    """The events of a node run; times in milliseconds."""
    return [Event("start", node, start * MS, call=call), Event("end", node, end * MS, call=call, bytes=size)]


@pytest.fixture
def layered() -> gc.Graph:
    """Two layers, with a run recorded in which the second takes most of the time."""
    graph = gc.Graph()
    with graph.as_default():
        h = gc.placeholder(gc.float32, [2, 2], name="x")
        for number in range(2):
            with gc.name_scope(f"layer{number}"):
                h = gc.tanh(gc.matmul(h, h, name="product"), name="squash")
        gc.exp(h, name="last")
    events = [
        *ran("layer0/product", 0, 3),
        *ran("layer0/squash", 3, 4),
        *ran("layer1/product", 4, 84, size=16),
        *ran("layer1/squash", 84, 94),
        *ran("layer1/squash", 94, 99),
    ]
    graph.trace = Trace([*events, Event("end", "idle", 100 * MS)])
    return graph


def test_boxes_have_their_time_and_share_with_the_hottest_in_the_first_tone_of_the_legend(layered: gc.Graph) -> None:
    scene = build_scene(layered, opened())
    assert times(scene) == {
        "layer0/": "4.00 ms, 4 % of the step, 2 node runs",
        "layer1/": "95.0 ms, 95 % of the step, 3 node runs",
    }
    lens = next(lens for lens in scene.lenses if lens.name == "time")
    assert [entry.text for entry in lens.legend] == ["47.5 ms and more", "2.97 ms to 5.94 ms"]
    tones = {node.id: node.lenses["time"].tone for node in scene.nodes if "time" in node.lenses}
    assert [tones["layer1/"], tones["layer0/"]] == [entry.tone for entry in lens.legend]
    assert lens.note == "Recorded by the wall clock; the step took 100 ms"
    inside = times(build_scene(layered, opened("layer1/")))
    assert inside["layer1/squash"] == "15.0 ms, 15 % of the step, 2 runs"


def test_the_inspector_tells_runs_mean_shortest_and_longest_of_a_node_and_sums_of_a_scope(layered: gc.Graph) -> None:
    state = opened("layer1/")
    node, scope, idle = (inspect(layered, state, box) for box in ("layer1/squash", "layer0/", "last"))
    assert node is not None
    assert scope is not None
    assert idle is not None
    assert dict(node.times) == {
        "total": "15.0 ms, 15 % of the step",
        "runs": "2",
        "mean run": "7.50 ms",
        "shortest, longest": "5.00 ms, 10.0 ms",
        "on": "cpu:0",
        "clock": "Recorded by the wall clock",
    }
    assert dict(scope.times)["runs"] == "2, of 2 nodes"
    assert idle.times == [("runs", "none in the recorded run")]
    product = inspect(layered, state, "layer1/product")
    assert product is not None
    assert dict(product.times)["made"] == "16 bytes"


def test_times_of_a_run_with_recorded_values_say_so(layered: gc.Graph) -> None:
    with gc.Session(layered) as session:
        session.run("last:0", {"x:0": np.ones((2, 2), np.float32)}, gc.RunOptions(values=True))
    lens = next(lens for lens in build_scene(layered).lenses if lens.name == "time")
    assert "the values were recorded too" in lens.note
    assert "the values were recorded too" in timelines_of(layered)[0].notes[-1]


def test_without_a_recorded_run_the_lens_tells_how_to_get_one(layered: gc.Graph) -> None:
    layered.trace = None
    scene = build_scene(layered)
    assert times(scene) == {}
    assert "%graph time" in next(lens for lens in scene.lenses if lens.name == "time").note
    found = inspect(layered, SceneState(), "last")
    assert found is not None
    assert found.times == []


def test_a_call_has_its_self_time_and_its_open_body_the_times_of_its_nodes() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [2, 2], name="x")

        @gc.function
        def inner(a: gc.Tensor) -> gc.Tensor:
            return gc.tanh(gc.matmul(a, a))

        @gc.function
        def outer(a: gc.Tensor) -> gc.Tensor:
            return gc.exp(inner(a))

        outer(x)
        gc.while_loop(lambda i, _: i < 2, lambda i, a: [i + 1, inner(a)], [gc.constant(0), x], name="loop")
    events = [
        *ran("inner/MatMul", 1, 4, "outer:outer"),  # inlined into the function around it
        *ran("Exp", 5, 6, "outer:outer"),
        *ran("_made_by_the_runtime", 6, 7, "outer:outer"),
        *ran("outer", 0, 10),
        *ran("Less", 11, 12, "loop:loop_cond"),
        *ran("inner/Tanh", 12, 14, "loop:loop_body"),
        *ran("Less", 14, 15, "loop:loop_cond#2"),
        *ran("inner/Tanh", 15, 17, "loop:loop_body#2"),
        *ran("loop", 10, 20),
    ]
    graph.trace = Trace(events)
    closed = times(build_scene(graph, opened()))
    assert closed == {"outer": "10.0 ms, 50 % of the step, self 6.00 ms", "loop": "10.0 ms, 50 % of the step, self 4.00 ms"}
    inside = times(build_scene(graph, opened("outer", "outer:/inner", "loop", "loop:body", "loop:cond", "loop:body/inner")))
    assert inside == {
        "outer:/inner:/MatMul": "3.00 ms, 15 % of the step",
        "outer:/Exp": "1.00 ms, 5 % of the step",
        "loop": "10.0 ms, 50 % of the step, self 4.00 ms",
        "loop:cond/Less": "2.00 ms, 10 % of the step, 2 runs",
        "loop:body/inner:/Tanh": "4.00 ms, 20 % of the step, 2 runs",
    }


def test_on_several_simulated_devices_shares_are_of_their_time_together_and_the_virtual_clock_is_named() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [64, 64], name="x")
        with gc.name_scope("part"):
            with gc.device("/gpu:0"):
                y = gc.matmul(x, x, name="y")
            with gc.device("/gpu:1"):
                z = gc.matmul(y, y, name="z")
    with gc.Session(graph, gc.simulated_devices("1 cpu, 2 gpu")) as session:
        session.run(z, {x: np.ones((64, 64), np.float32)}, TRACED)
    scene = build_scene(graph, opened())
    assert re.fullmatch(r"\S+ µs, 100 % of the time of all devices, 2 node runs", times(scene)["part/"])
    assert "virtual clock of simulated devices" in next(lens for lens in scene.lenses if lens.name == "time").note
    found = inspect(graph, opened(), "part/")
    assert found is not None
    assert re.fullmatch(r"worker 0, gpu:0 \(simulated\) \S+ µs, worker 0, gpu:1 \(simulated\) \S+ µs", dict(found.times)["on"])


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1000, "1.00 µs"),
        (12_345, "12.3 µs"),
        (123_500, "124 µs"),
        (999_999, "1,000 µs"),
        (2_500 * MS, "2.50 s"),
    ],
)
def test_durations_have_three_digits(ns: int, text: str) -> None:
    assert time_text(ns) == text
