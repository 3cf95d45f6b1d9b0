"""Recorded runs: events, step statistics, trace files, peak memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import graphcore as gc
from graphcore.attrs import Func
from graphcore.runtime.core.tracing import CPU
from tests.graphcore.runtime.loop_graphs import enter, op, while_loop


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def traced(fetches: object, feed_dict: dict[gc.Tensor, object] | None = None, engine: str = "plan") -> gc.Trace:
    metadata = gc.RunMetadata()
    session = gc.Session(engine=engine)
    session.run(fetches, feed_dict, options=gc.RunOptions(trace=True), run_metadata=metadata)
    assert metadata.trace is not None
    assert session.trace is metadata.trace
    return metadata.trace


def test_a_run_is_recorded_only_when_asked() -> None:
    session = gc.Session()
    metadata = gc.RunMetadata()
    session.run(gc.constant(1.0), run_metadata=metadata)
    assert metadata.trace is None
    assert session.trace is None


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_each_node_is_scheduled_starts_and_ends_in_this_order(engine: str) -> None:
    x = gc.placeholder(gc.float32, [2, 3], name="x")
    y = gc.reduce_sum(gc.exp(x, name="e"), name="s")
    trace = traced(y, {x: np.zeros((2, 3))}, engine)
    kinds = {name: [event.kind for event in trace.events if event.node == name] for name in ("e", "s")}
    assert kinds == {name: ["scheduled", "start", "end"] for name in ("e", "s")}
    assert [event.ns for event in trace.events] == sorted(event.ns for event in trace.events)
    (end,) = [event for event in trace.events if (event.node, event.kind) == ("e", "end")]
    assert (end.bytes, end.thread) == (24, threading.get_ident())


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_step_statistics_are_in_order_and_in_whole_microseconds(engine: str) -> None:
    x = gc.placeholder(gc.float32, [64, 64], name="x")
    stats = traced(gc.tanh(x @ x) + x, {x: np.ones((64, 64))}, engine).step_stats()
    (device,) = stats.dev_stats
    assert device.device == CPU
    assert len(device.node_stats) >= 3
    for node in device.node_stats:
        op_start = node.all_start_nanos + node.op_start_rel_nanos
        op_end = node.all_start_nanos + node.op_end_rel_nanos
        all_end = node.all_start_nanos + node.all_end_rel_nanos
        assert node.scheduled_nanos <= node.all_start_nanos <= op_start <= op_end <= all_end
        for name in ("scheduled", "all_start", "op_start_rel", "op_end_rel", "all_end_rel"):
            assert getattr(node, f"{name}_micros") == getattr(node, f"{name}_nanos") // 1000


def test_software_tracing_gives_one_entry_for_each_device_used() -> None:
    a = gc.constant([[3.0, 2.0], [-1.0, 0.0]])
    x = gc.placeholder(gc.float32, [2, 1], name="x")
    metadata = gc.RunMetadata()
    options = gc.RunOptions(trace_level=gc.RunOptions.SOFTWARE_TRACE)
    gc.Session().run(gc.matmul(a, x), {x: [[1.0], [1.0]]}, options=options, run_metadata=metadata)
    assert metadata.trace is not None
    assert [entry.device for entry in metadata.trace.step_stats().dev_stats] == [CPU]
    assert metadata.step_stats == metadata.trace.step_stats()


def test_the_trace_file_has_the_format_of_trace_viewers(tmp_path: Path) -> None:
    x = gc.placeholder(gc.float32, [4], name="x")
    trace = traced(gc.exp(x, name="e"), {x: np.zeros(4)})
    trace.save(tmp_path / "trace.json")
    read = json.loads((tmp_path / "trace.json").read_text())
    (process, node) = read["traceEvents"]
    assert process == {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": CPU}}
    assert (node["ph"], node["name"], node["cat"], node["pid"]) == ("X", "e", "Exp", 0)
    assert node["args"]["bytes"] == 16
    assert node["ts"] >= 0
    assert node["dur"] > 0


def test_nodes_in_functions_are_recorded_too() -> None:
    @gc.function
    def twice(x: gc.Tensor) -> gc.Tensor:
        return gc.exp(x) * 2.0

    x = gc.placeholder(gc.float32, [2], name="x")
    trace = traced(twice(x), {x: np.zeros(2)}, "auto")
    assert any("Exp" in event.node or "exp" in event.node for event in trace.events)


def test_events_tell_which_call_of_which_function_they_come_from(tmp_path: Path) -> None:
    twice = gc.function(lambda x: gc.exp(x, name="inner") * 2.0, name="twice")
    x = gc.placeholder(gc.float32, [2], name="x")
    first = twice(x)
    second = twice(first)
    trace = traced(second, {x: np.zeros(2)}, "auto")
    ran = [event for event in trace.events if event.node == "inner" and event.kind == "start"]
    calls = [event.call for event in ran]
    assert calls == [f"{first.node.name}:twice", f"{second.node.name}:twice"]
    assert [event.path for event in ran] == [f"{call} > inner" for call in calls]
    trace.save(tmp_path / "trace.json")
    told = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    inner = [entry for entry in told if entry["name"].endswith("> inner")]
    assert [entry["args"]["call"] for entry in inner] == calls
    assert [entry["name"] for entry in inner] == [f"{call} > inner" for call in calls]


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_nested_and_repeated_calls_are_distinguished(engine: str) -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    below = gc.function(lambda v: v < 6.0, name="below")
    doubled = gc.function(lambda v: gc.add(v, v, name="sum"), name="doubled")
    graph = gc.get_default_graph()
    for function in (below, doubled):
        function(x)  # its definition is in the graph's library afterwards
    attrs = {"cond": Func("below"), "body": Func("doubled")}
    loop = graph.apply_op("StatelessWhile", [[x]], attrs, "loop").outputs[0]
    trace = traced(loop, {x: 1.0}, engine)
    assert [event.call for event in trace.events if (event.node, event.kind) == ("sum", "end")] == [
        "loop:doubled",
        "loop:doubled#2",
        "loop:doubled#3",
    ]
    assert sorted({event.call for event in trace.events if ":below" in event.call}) == [
        "loop:below",
        "loop:below#2",
        "loop:below#3",
        "loop:below#4",
    ]


def test_nodes_without_kernel_calls_are_recorded_with_the_reason() -> None:
    x = gc.placeholder(gc.float32, [3], name="x")
    with gc.name_scope("n"):
        same = [gc.exp(gc.identity(x, name="pass"), name="e"), gc.exp(x, name="again")]
        y = gc.add(same[0], same[1] * gc.constant(2.0, name="two"), name="y")
    ended = {event.node: event.how for event in traced(y, {x: np.zeros(3)}).events if event.kind == "end"}
    assert ended.pop("n/mul") == ""
    assert ended == {"n/pass": "passed on", "n/e": "", "n/again": "merged", "n/two": "constant", "n/y": ""}
    ended = {event.node: event.how for event in traced(y, {x: np.zeros(3)}, "dataflow").events if event.kind == "end"}
    assert set(ended.values()) == {""}


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_a_view_counts_as_its_base_and_arrays_of_others_do_not_count(engine: str) -> None:
    x = gc.placeholder(gc.float32, [100, 10], name="x")
    w = gc.Variable(np.ones((100, 10), np.float32), name="w")
    e = gc.exp(x)
    y = gc.reduce_sum(gc.reshape(e, [1000]) + gc.reshape(w, [1000]) * gc.constant(np.ones(1000, np.float32)), 0)
    session = gc.Session(engine=engine)
    session.run(w.initializer)
    session.run(y, {x: np.zeros((100, 10))}, options=gc.RunOptions(trace=True))
    assert session.trace is not None
    if engine == "plan":
        assert session.trace.peak_bytes == session.predicted_peak_bytes(y, {x: np.zeros((100, 10))})
    assert 2 * 4000 <= session.trace.peak_bytes <= 3 * 4000


def test_a_peak_that_cannot_be_predicted_has_its_reason() -> None:
    n = gc.placeholder(gc.int32, [1], name="n")
    session = gc.Session()
    filled = session.predicted_peak(gc.ops.fill(n, 1.0, name="filled"), {n: [3]})
    assert filled == gc.PeakMemory(None, False, "the shape of 'filled:0' (op Fill) is known only when it runs")
    x = gc.placeholder(gc.float32, [2], name="x")
    array = gc.get_default_graph().apply_op("TensorArrayV3", [2], {"dtype": gc.float32}, name="array")
    write = gc.get_default_graph().apply_op("TensorArrayWriteV3", [array.outputs[0], 0, gc.exp(x), array.outputs[1]], name="write")
    kept = session.predicted_peak(write.outputs[0], {x: [1.0, 2.0]})
    assert kept.reason == "'write' (op TensorArrayWriteV3) puts values by, and its shapes do not tell how many and for how long"
    dataflow = gc.Session(engine="dataflow").predicted_peak(gc.exp(x), {x: [1.0, 2.0]})
    assert dataflow.bytes is None
    assert "dataflow engine" in dataflow.reason


@pytest.mark.parametrize("name", ["call", "calls", "branch", "loop", "gradient"])
def test_the_memory_of_functions_is_within_the_bound_and_at_first_equals_it(name: str) -> None:
    x, p = gc.placeholder(gc.float32, [None, 100], name="x"), gc.placeholder(gc.bool_, [], name="p")
    f = gc.function(lambda v: gc.tanh(gc.exp(v) * 2.0) + v, name="f")
    if name == "call":
        y = f(x)
    elif name == "calls":
        y = gc.function(lambda v: gc.reduce_sum(f(v) * f(v + 1.0), 0), name="g")(x)
    elif name == "branch":
        y = gc.cond(p, lambda: f(x) * 2.0, lambda: gc.tanh(x))
    elif name == "loop":
        y = gc.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, gc.tanh(a * 1.5) + a), [gc.constant(0), x])[1]
    else:
        y = gc.gradients(f(x), x)[0]
    feeds = {x: np.ones((50, 100), np.float32), p: True}
    session = gc.Session(engine="plan")
    predicted = session.predicted_peak(y, feeds)
    held = []
    for _ in range(5):
        session.run(y, feeds, options=gc.RunOptions(trace=True))
        assert session.trace is not None
        held.append(session.trace.peak_bytes)
    assert predicted.bytes is not None
    assert predicted.is_bound
    assert max(held) <= predicted.bytes
    assert held[0] == predicted.bytes or name == "loop"


def test_peak_memory_is_predicted_from_shapes_and_measured_the_same() -> None:
    x = gc.placeholder(gc.float32, [None, 100], name="x")
    e = gc.exp(x)
    y = gc.reduce_sum(gc.tanh(e @ gc.transpose(e, [1, 0]) + 1.0))
    feeds = {x: np.zeros((50, 100), np.float32)}
    e_bytes, product_bytes = 50 * 100 * 4, 50 * 50 * 4
    session = gc.Session()
    predicted = session.predicted_peak_bytes(y, feeds)
    session.run(y, feeds, options=gc.RunOptions(trace=True))
    assert session.trace is not None
    assert predicted == session.trace.peak_bytes == e_bytes + product_bytes


def test_a_shape_that_depends_on_values_cannot_be_predicted() -> None:
    n = gc.placeholder(gc.int32, [1], name="n")
    y = gc.ops.fill(n, 1.0)
    assert gc.Session().predicted_peak_bytes(y, {n: [3]}) is None
    x = gc.placeholder(gc.float32, [1], name="x")
    assert gc.Session().predicted_peak_bytes([x], {x: [3]}) == 0


def test_tracing_does_not_change_the_results_of_a_run() -> None:
    x = gc.placeholder(gc.float32, [None, 3], name="x")
    w = gc.Variable(np.ones((3, 2), np.float32), name="w")
    step = w.assign_sub(gc.gradients(gc.reduce_sum(gc.tanh(x @ w)), [w])[0] * 0.1)
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    plain, watched = gc.Session(), gc.Session()
    for session, options in ((plain, None), (watched, gc.RunOptions(trace=True))):
        session.run(w.initializer)
        for _ in range(5):
            session.run(step, {x: value}, options=options)
    np.testing.assert_allclose(plain.run(w), watched.run(w), rtol=1e-5)  # some ten roundings of float32


def held_and_predicted(session: gc.Session, fetches: object, feeds: dict[gc.Tensor, object]) -> tuple[int, gc.PeakMemory]:
    session.run(fetches, feeds, options=gc.RunOptions(trace=True))
    assert session.trace is not None
    return session.trace.peak_bytes, session.predicted_peak(fetches, feeds)


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
@pytest.mark.parametrize("is_read_later", [False, True])
def test_arrays_taken_by_a_variable_do_not_count(is_read_later: bool, engine: str) -> None:
    x = gc.placeholder(gc.float32, [1000], name="x")
    w = gc.Variable(np.zeros(1000, np.float32), name="w")
    taken = gc.exp(x)
    with gc.control_dependencies([w.assign(taken)]):
        later = gc.tanh(gc.tanh(x) * 2.0)
    y = gc.reduce_sum(later * taken if is_read_later else later)
    session = gc.Session(engine=engine)
    session.run(w.initializer)
    held, predicted = held_and_predicted(session, y, {x: np.ones(1000, np.float32)})
    if engine == "plan":
        assert predicted.bytes is not None
        assert held <= predicted.bytes
        assert predicted.is_bound is is_read_later
        assert held == predicted.bytes or is_read_later
    assert held <= 2 * 4000


def test_loop_variables_without_readers_are_released_at_once() -> None:
    x = gc.placeholder(gc.float32, [1000], name="x")
    limit, one = enter(gc.constant(5), "f", constant=True), enter(gc.constant(1), "f", constant=True)
    values = [gc.constant(0), gc.exp(x), x]

    def body(i: gc.Tensor, a: gc.Tensor, waited_for: gc.Tensor) -> list[gc.Tensor]:
        with gc.control_dependencies([waited_for.node]):
            turned = op("Tanh", [op("Tanh", [a])])
        return [op("AddV2", [i, one]), turned, op("Exp", [a])]

    end = while_loop(lambda i, *_: op("Less", [i, limit]), body, values, "f")[1]
    held, predicted = held_and_predicted(gc.Session(engine="plan"), end, {x: np.ones(1000, np.float32)})
    assert predicted.bytes is not None
    assert held <= predicted.bytes
    assert held <= 3 * 4000


def test_a_graph_that_records_traces_all_runs_of_its_sessions_and_keeps_their_time_limits() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [2], name="x")
        y = gc.tanh(x, name="y")
    with gc.Session(graph) as session:
        graph.recording = gc.RunOptions(trace=True)
        session.run(y, {x: [1.0, 2.0]})
        first = session.trace
        assert first is not None
        call = session.make_callable(y, [x])
        call([1.0, 2.0])
        assert session.trace is not first
        options = gc.RunOptions(timeout_in_ms=5).over(graph.recording)
        assert (options.trace, options.timeout_in_ms) == (True, 5)
        graph.recording = None
        last = session.trace
        session.run(y, {x: [1.0, 2.0]})
        assert session.trace is last


def test_an_exported_trace_has_the_structure_that_perfetto_reads(tmp_path: Path) -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [4], name="x")
        with gc.device("/gpu:0"):
            y = gc.while_loop(lambda i, _: i < 3, lambda i, a: [i + 1, gc.tanh(a)], [gc.constant(0), x], name="loop")[1]
    with gc.Session(graph, gc.simulated_devices("1 cpu, 1 gpu")) as session:
        session.run(y, {x: [1.0] * 4}, gc.RunOptions(trace=True))
    assert session.trace is not None
    session.trace.save(tmp_path / "trace.json")
    read = json.loads((tmp_path / "trace.json").read_text())
    assert read["displayTimeUnit"] in {"ms", "ns"}
    events = read["traceEvents"]
    processes = {event["pid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    assert all("(simulated)" in name for name in processes.values())
    assert {event["ph"] for event in events} == {"M", "X", "i"}
    for event in events:
        assert event["pid"] in processes
        assert isinstance(event["name"], str)
        if event["ph"] == "X":
            assert event["dur"] >= 0
        if event["ph"] != "M":
            assert event["ts"] >= 0
            assert isinstance(event["tid"], int)
    inner = [event for event in events if event["ph"] == "X" and event["name"].startswith("loop:")]
    (outer,) = [event for event in events if event["ph"] == "X" and event["name"] == "loop"]
    assert inner
    assert all(outer["ts"] <= event["ts"] and event["ts"] + event["dur"] <= outer["ts"] + outer["dur"] + 1e-6 for event in inner)
