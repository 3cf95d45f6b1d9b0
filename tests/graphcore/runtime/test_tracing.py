"""Recorded runs: events, step statistics, trace files, peak memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import graphcore as gc
from graphcore.runtime.tracing import CPU


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


def test_the_trace_file_is_what_trace_viewers_open(tmp_path: Path) -> None:
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


def test_tracing_does_not_change_what_a_run_gives() -> None:
    x = gc.placeholder(gc.float32, [None, 3], name="x")
    w = gc.Variable(np.ones((3, 2), np.float32), name="w")
    step = w.assign_sub(gc.gradients(gc.reduce_sum(gc.tanh(x @ w)), [w])[0] * 0.1)
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    plain, watched = gc.Session(), gc.Session()
    for session, options in ((plain, None), (watched, gc.RunOptions(trace=True))):
        session.run(w.initializer)
        for _ in range(5):
            session.run(step, {x: value}, options=options)
    assert np.array_equal(plain.run(w), watched.run(w))
