"""The virtual clock of simulated devices, and the timelines of recorded runs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import numpy as np
import pytest

import graphcore as gc
from kernelext.display.timings import stats_text
from tests.graphcore.runtime.loop_graphs import cond, enter, while_loop

WIDTH: Final = 100
SIZE: Final = 4 * WIDTH**2
HARDWARE: Final = {"CPU": gc.SimulatedHardware(memory=1 << 30, bandwidth=1e9, throughput=1e9)}
LAUNCH: Final = 1e-6
PRODUCT: Final = 2 * WIDTH**3 / 1e9
COPY: Final = 1e-5 + SIZE / 1e9
TRACED: Final = gc.RunOptions(trace=True)
DATA: Final = np.ones((WIDTH, WIDTH), np.float32)


def name(number: int) -> str:
    return f"/job:worker/replica:0/task:0/device:CPU:{number}"


def traced(graph: gc.Graph, fetch: gc.Tensor, feeds: dict[gc.Tensor, object], devices: int = 2) -> gc.Trace:
    """The trace of a run on simulated devices."""
    with gc.Session(graph, gc.simulated_devices(f"{devices} cpu", hardware=HARDWARE)) as session:
        session.run(fetch, feeds, TRACED)
        assert session.trace is not None
        return session.trace


def spans(trace: gc.Trace, *names: str) -> dict[str, Any]:
    """Lane, start and end of the named spans."""
    return {span.name: (span.lane, span.start, span.end) for span in trace.timeline().spans if span.name in names}


def test_nodes_of_one_device_follow_each_other_by_the_cost_model() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [WIDTH, WIDTH], name="x")
        y = gc.matmul(gc.matmul(x, x, name="first"), x, name="second")
    trace = traced(graph, y, {x: DATA}, devices=1)
    assert trace.simulated
    assert spans(trace, "first", "second") == {
        "first": (name(0), 0.0, pytest.approx(PRODUCT)),
        "second": (name(0), pytest.approx(PRODUCT), pytest.approx(2 * PRODUCT)),
    }


@pytest.fixture
def crossing() -> tuple[gc.Graph, gc.Tensor, gc.Tensor]:
    """Two products at once on two devices, and their sum on the first."""
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [WIDTH, WIDTH], name="x")
        with gc.device("/cpu:0"):
            first = gc.matmul(x, x, name="first")
        with gc.device("/cpu:1"):
            second = gc.matmul(x, x, name="second")
        with gc.device("/cpu:0"):
            return graph, x, gc.add(first, second, name="total")


def test_two_devices_run_at_once_and_a_node_waits_for_the_copies_of_its_inputs(crossing: tuple[gc.Graph, gc.Tensor, gc.Tensor]) -> None:
    graph, x, total = crossing
    there, back = f"{name(0)} -> {name(1)}", f"{name(1)} -> {name(0)}"
    found = spans(traced(graph, total, {x: DATA}), "first", "second", "total", "x:0", "second:0")
    added = WIDTH**2 / 1500 * 2e4 / 1e9
    assert found == {
        "first": (name(0), 0.0, pytest.approx(PRODUCT)),
        "x:0": (there, 0.0, pytest.approx(COPY)),
        "second": (name(1), pytest.approx(COPY), pytest.approx(COPY + PRODUCT)),
        "second:0": (back, pytest.approx(COPY + PRODUCT), pytest.approx(2 * COPY + PRODUCT)),
        "total": (name(0), pytest.approx(2 * COPY + PRODUCT), pytest.approx(2 * COPY + PRODUCT + added)),
    }


def test_the_trace_says_that_it_is_simulated(crossing: tuple[gc.Graph, gc.Tensor, gc.Tensor]) -> None:
    graph, x, total = crossing
    trace = traced(graph, total, {x: DATA})
    assert "virtual clock of simulated devices" in repr(trace)
    assert {event["args"]["name"] for event in trace.chrome_trace()["traceEvents"] if event["ph"] == "M"} == {
        f"{name(number)} (simulated)" for number in range(2)
    }
    assert trace.timeline().clock == "virtual clock"
    assert all(entry.simulated for entry in trace.step_stats().dev_stats)
    assert stats_text(trace.step_stats()).count("(simulated)") == 2
    assert all("(simulated)" in str(lane) for lane in trace.timeline().lanes)
    with pytest.raises(gc.errors.FailedPreconditionError, match="virtual clock"):
        trace.node_seconds()


def test_two_runs_have_the_same_virtual_times(crossing: tuple[gc.Graph, gc.Tensor, gc.Tensor]) -> None:
    graph, x, total = crossing
    one, two = (traced(graph, total, {x: DATA}).timeline() for _ in range(2))
    assert one == two


def test_the_peak_of_a_device_counts_what_is_alive_at_once(crossing: tuple[gc.Graph, gc.Tensor, gc.Tensor]) -> None:
    graph, x, total = crossing
    lanes = {lane.name: lane.peak_bytes for lane in traced(graph, total, {x: DATA}).timeline().lanes}
    assert lanes == {
        name(0): 3 * SIZE,  # both products and their sum; a feed belongs to the caller
        name(1): 2 * SIZE,
        f"{name(0)} -> {name(1)}": None,
        f"{name(1)} -> {name(0)}": None,
    }


def test_a_copy_waits_for_the_one_before_it_on_its_link() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x, y = (gc.placeholder(gc.float32, [WIDTH, WIDTH], name=name) for name in "xy")
        with gc.device("/cpu:1"):
            z = gc.add(x, y, name="z")
    copies: list[Any] = sorted((span.start, span.end) for span in traced(graph, z, {x: DATA, y: DATA}).timeline().spans if span.is_copy)
    assert copies == [(0.0, pytest.approx(COPY)), (pytest.approx(COPY), pytest.approx(2 * COPY))]


def test_sizes_unknown_before_the_run_are_those_of_the_arrays() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [None, WIDTH], name="x")
        w = gc.constant(DATA)
        with gc.device("/cpu:1"):
            y = gc.matmul(x, w, name="y")
            z = gc.matmul(y, y, transpose_a=True, name="z")
    found = spans(traced(graph, z, {x: DATA}), "y", "z")
    assert [end - start for _, start, end in found.values()] == pytest.approx([PRODUCT, PRODUCT])


def looping(graph: gc.Graph, device: str) -> tuple[gc.Tensor, gc.Tensor]:
    """A loop of nodes that runs as often as a feed says, with a product in its body."""
    with graph.as_default(), gc.device("/cpu:0"):
        times = gc.placeholder(gc.int32, [], name="times")
        limit, one = enter(times, "loop", constant=True), enter(gc.constant(1), "loop", constant=True)

        def body(number: gc.Tensor, value: gc.Tensor) -> list[gc.Tensor]:
            with gc.device(device):
                product = gc.matmul(value, value, name="product")
            return [gc.add(number, one), gc.identity(product)]

        result = while_loop(lambda number, _: gc.ops.less(number, limit), body, [gc.constant(0), gc.constant(DATA)])
        return times, result[1]


@pytest.mark.parametrize("device", ["/cpu:0", "/cpu:1"])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_loop_takes_time_as_often_as_it_ran(count: int, device: str) -> None:
    graph = gc.Graph()
    times, result = looping(graph, device)
    trace = traced(graph, result, {times: count})
    timeline = trace.timeline()
    found = [span for span in timeline.spans if span.name == "product"]
    copies = [span for span in timeline.spans if span.is_copy and span.bytes == SIZE]
    assert [span.end - span.start for span in found] == pytest.approx([PRODUCT] * count)
    assert [span.iteration for span in found] == list(range(count))
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert len(copies) == 2 * count * (device == "/cpu:1")
    assert timeline.makespan >= count * PRODUCT + len(copies) * COPY
    assert trace.node_runs()["product"] == count


def test_a_while_loop_of_functions_takes_time_as_often_as_it_ran() -> None:
    graph = gc.Graph()

    def body(number: gc.Tensor, value: gc.Tensor) -> list[gc.Tensor]:
        return [number + 1, gc.matmul(value, value, name="product")]

    with graph.as_default():
        times = gc.placeholder(gc.int32, [], name="times")
        result = gc.while_loop(lambda number, _: number < times, body, [gc.constant(0), gc.constant(DATA)])
    for count in (0, 3):
        found = [span for span in traced(graph, result[1], {times: count}, devices=1).timeline().spans if span.name == "product"]
        assert [span.end - span.start for span in found] == pytest.approx([PRODUCT] * count)


@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_that_is_not_taken_costs_nothing(taken: bool) -> None:
    graph = gc.Graph()
    with graph.as_default(), gc.device("/cpu:0"):
        pred, x = gc.placeholder(gc.bool_, [], name="pred"), gc.placeholder(gc.float32, [WIDTH, WIDTH], name="x")

        def there(value: gc.Tensor) -> list[gc.Tensor]:
            with gc.device("/cpu:1"):
                return [gc.matmul(value, value, name="there")]

        (result,) = cond(pred, [x], there, lambda value: [gc.identity(value, name="here")])
    timeline = traced(graph, result, {pred: taken, x: DATA}).timeline()
    copied = [span.name for span in timeline.spans if span.is_copy and span.bytes == SIZE]
    assert [span.name.rpartition("/")[2] for span in timeline.spans if span.name.endswith(("there", "here"))] == [
        "there" if taken else "here"
    ]
    assert len(copied) == (2 if taken else 0)
    assert (timeline.makespan > PRODUCT) == taken


def test_nodes_in_functions_run_on_the_device_of_their_caller() -> None:
    graph = gc.Graph()
    with graph.as_default():

        @gc.function
        def twice(value: gc.Tensor) -> gc.Tensor:
            return gc.add(value, value)

        x = gc.placeholder(gc.float32, [WIDTH, WIDTH], name="x")
        with gc.device("/cpu:1"):
            y = twice(x)
        with gc.device("/cpu:0"):
            z = gc.identity(y, name="z")
    timeline = traced(graph, z, {x: DATA}).timeline()
    assert {span.lane for span in timeline.spans if span.call or span.name == y.node.name} == {name(1)}


def test_real_devices_have_wall_clock_times(crossing: tuple[gc.Graph, gc.Tensor, gc.Tensor]) -> None:
    graph, x, total = crossing
    with gc.Session(graph, ["/cpu:0", "/cpu:1"]) as session:
        session.run(total, {x: DATA}, TRACED)
        trace = session.trace
    assert trace is not None
    timeline = trace.timeline()
    assert timeline.clock == "wall clock"
    assert not any(lane.simulated for lane in timeline.lanes)
    assert {span.name for span in timeline.spans if span.is_copy} == {"x:0", "second:0"}
    assert trace.node_seconds().keys() >= {"first", "second", "total"}
    assert all(seconds > 0 for seconds in trace.node_seconds().values())


def test_a_prediction_is_compared_with_a_run_on_a_real_device(crossing: tuple[gc.Graph, gc.Tensor, gc.Tensor]) -> None:
    graph, x, total = crossing
    cpus = [gc.Device("/cpu:0"), gc.Device("/cpu:1")]
    with gc.Session(graph, cpus) as session:
        session.run(total, {x: DATA}, TRACED)
        trace = session.trace
    assert trace is not None
    devices = dict(zip(graph.op_nodes(), [cpus[0], cpus[0], cpus[1], cpus[0]], strict=True))
    measured = gc.prediction_error(gc.predict_step(devices, gc.CostModel(trace.node_seconds())), trace)
    assert measured.nodes.keys() == {"first", "second", "total"}
    assert measured.median == pytest.approx(0, abs=1e-9)
    assert measured.recorded == trace.timeline().makespan
    twice = gc.CostModel({node: 2 * seconds for node, seconds in trace.node_seconds().items()})
    found = gc.prediction_error(gc.predict_step(devices, twice), trace)
    assert found.median == pytest.approx(1)
    assert "100%" in str(found)


def test_on_simulated_devices_there_is_only_the_virtual_clock(crossing: tuple[gc.Graph, gc.Tensor, gc.Tensor]) -> None:
    graph, x, total = crossing
    trace = traced(graph, total, {x: DATA})
    prediction = gc.predict_step(dict.fromkeys(graph.op_nodes(), gc.Device("/cpu:0")))
    with pytest.raises(gc.errors.FailedPreconditionError, match="only the virtual clock"):
        gc.prediction_error(prediction, trace)
