"""The times of nodes in a recorded run add up."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphcore as gc
from graphcore.runtime import Event, NodeTime, Trace
from graphcore.runtime.core.tracing import last_trace

TRACED = gc.RunOptions(trace=True)
Calls = tuple[int, int, list["Calls"]]
"""A node run: its number, the time it takes by itself after each call, and the node runs in the function that it calls."""

node_runs: st.SearchStrategy[Calls] = st.recursive(
    st.tuples(st.integers(0, 3), st.integers(0, 50), st.just([])),
    lambda inner: st.tuples(st.integers(0, 3), st.integers(0, 50), st.lists(inner, max_size=3)),
    max_leaves=12,
)


def recorded(runs: list[Calls], device: str, call: str, clock: Iterator[int]) -> Iterator[Event]:
    """The events of node runs, one after the other."""
    for number, spent, inner in runs:
        node = f"n{number}"
        yield Event("start", node, next(clock), device=device, call=call)
        for _ in range(spent):
            next(clock)
        yield from recorded(inner, device, f"{call}{' > ' if call else ''}{node}:F", clock)
        yield Event("end", node, next(clock), device=device, call=call, bytes=8)


@given(st.lists(st.lists(node_runs, max_size=4), min_size=1, max_size=3))
def test_own_times_add_up_to_the_busy_times_and_totals_to_those_of_the_called_functions(devices: list[list[Calls]]) -> None:
    events = [event for number, runs in enumerate(devices) for event in recorded(runs, f"/device:CPU:{number}", "", count(number))]
    trace = Trace(events)
    times = trace.node_times()
    assert sum(time.own for time in times) == round(sum(lane.busy for lane in trace.timeline().lanes) * 1e9)
    assert sum(time.total for time in times if not time.call) == sum(time.own for time in times)
    for time in times:
        below = f"{time.call}{' > ' if time.call else ''}{time.node}:F"
        assert time.total == time.own + sum(inner.total for inner in times if inner.call == below)
        assert time.total == sum(time.devices.values())
        assert time.shortest <= time.lasting // time.runs <= time.longest


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 2)), max_size=8))
def test_of_concurrent_runs_on_a_device_the_one_that_began_last_has_the_time(runs: list[tuple[int, int, int]]) -> None:
    events = []
    for number, (start, lasting, thread) in enumerate(runs):
        events.append(Event("start", f"n{number}", start, thread=thread))
        events.append(Event("end", f"n{number}", start + lasting, thread=thread))
    times = {time.node: time for time in Trace(events).node_times()}
    for number, (start, lasting, _) in enumerate(runs):
        later = [moment for other, more, _ in runs if other > start for moment in range(other, other + more)]
        sole = len(set(range(start, start + lasting)) - set(later))
        assert times[f"n{number}"].own <= sole
    covered = {moment for start, lasting, _ in runs for moment in range(start, start + lasting)}
    assert sum(time.own for time in times.values()) == len(covered)


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_a_loop_has_the_time_of_its_body_and_a_node_in_it_as_many_runs_as_turns(engine: str) -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [8, 8], name="x")
        turns = gc.while_loop(lambda i, _: i < 5, lambda i, a: [i + 1, gc.tanh(a, name="squash")], [gc.constant(0), x], name="loop")
        y = gc.exp(turns[1], name="y")
    with gc.Session(graph, engine=engine) as session:
        session.run(y, {x: np.ones((8, 8), np.float32)}, TRACED)
    trace = last_trace(graph)
    assert trace is not None
    times: dict[str, NodeTime] = {time.node: time for time in trace.node_times()}
    inner = [time for time in times.values() if time.call.startswith("loop:")]
    assert times["squash"].runs == 5
    assert times["loop"].runs == 1
    assert times["loop"].total == times["loop"].own + sum(time.own for time in inner)
    assert "x" not in times
    assert times["y"].bytes == 8 * 8 * 4


def test_copies_between_devices_take_no_time_of_nodes() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [8, 8], name="x")
        with gc.device("/gpu:0"):
            y = gc.tanh(x, name="y")
        with gc.device("/gpu:1"):
            z = gc.exp(y, name="z")
    with gc.Session(graph, gc.simulated_devices("1 cpu, 2 gpu")) as session:
        session.run(z, {x: np.ones((8, 8), np.float32)}, TRACED)
    trace = last_trace(graph)
    assert trace is not None
    assert {time.node for time in trace.node_times()} == {"y", "z"}
    busy = sum(lane.busy for lane in trace.timeline().lanes if not lane.is_link)
    assert sum(time.own for time in trace.node_times()) == round(busy * 1e9)
