"""Runs that go on one node at a time."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import CancelledError, FailedPreconditionError, InvalidArgumentError
from graphcore.runtime.core.tracing import last_trace
from tests.graphcore.runtime.loop_graphs import cond, enter, op, while_loop

WHILE_V1 = Path(__file__).parents[3] / "data" / "while_v1.pb"


def layer() -> tuple[gc.Graph, gc.Tensor, gc.Tensor]:
    """x, twice, z."""
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [2], name="x")
        z = gc.reduce_sum(gc.log(gc.multiply(x, 2.0, name="twice"), name="log"), name="z")
    return graph, x, z


def frames(turns: int) -> tuple[gc.Graph, Any]:
    """A Switch/Merge loop that counts to `turns`."""
    graph = gc.Graph()
    with graph.as_default():
        limit, one = gc.constant(turns, name="limit"), gc.constant(1, name="one")
        out = while_loop(
            lambda i: op("Less", [i, enter(limit, "turns", constant=True)]),
            lambda i: [op("Add", [i, enter(one, "turns", constant=True)])],
            [gc.constant(0)],
            "turns",
        )
    return graph, out


def names_to_the_end(run: gc.SteppedRun) -> list[str]:
    """The nodes before which a run waits, one after another."""
    found = []
    while not run.is_over:
        found.append(run.next)
        run.step()
    return found


def test_a_run_waits_before_each_node_and_has_the_results_of_an_ordinary_one() -> None:
    graph, x, z = layer()
    with gc.Session(graph) as session:
        given = np.array([1.0, 2.0], np.float32)
        run = session.step_through({"z": z}, {x: given})
        given[:] = 0.0  # the run has its own copy
        assert not run.is_over
        seen = names_to_the_end(run)
        assert seen[-3:] == ["twice", "log", "z"]
        assert run.finish() == session.run({"z": z}, {x: [1.0, 2.0]})
        assert run.values["log"].max == pytest.approx(np.log(4.0))
        trace = last_trace(graph)
        assert trace is not None
        assert trace.node_runs()["log"] == 1
        with pytest.raises(FailedPreconditionError, match="has not ended"):
            run.step()


def test_other_runs_go_on_while_one_waits_and_variables_change_only_by_its_steps() -> None:
    graph = gc.Graph()
    with graph.as_default():
        v = gc.Variable(1.0, name="v")
        train = gc.assign_add(v, 1.0, name="train")
    with gc.Session(graph) as session:
        session.run(v.initializer)
        run = session.step_through(train)
        assert session.run(v) == 1.0
        run.finish()
        assert session.run(v) == 2.0


def test_a_step_tells_what_the_node_has_computed() -> None:
    graph, x, z = layer()
    with gc.Session(graph) as session:
        run = session.step_through(z, {x: [1.0, 2.0]})
        node = run.run_until("twice")
        assert node is not None
        assert (node.name, node.is_dead, node.is_finite, node.values[0].max) == ("twice", False, True, 4.0)
        assert repr(run) == "<gc.SteppedRun before 'log'>"
        last = run.step()
        assert last is not None
        assert last.name == "log"
        run.step(5)
        assert run.is_over
        with pytest.raises(InvalidArgumentError, match="positive number of nodes"):
            run.step(0)


def test_a_run_stops_after_the_first_bad_value_before_it_spreads() -> None:
    graph, x, z = layer()
    with gc.Session(graph) as session:
        run = session.step_through(z, {x: [0.0, 1.0]})
        bad = run.run_until(lambda node: not node.is_finite)
        assert bad is not None
        assert (bad.name, run.next) == ("log", "z")
        assert run.run_until("nowhere") is None
        assert run.is_over


@pytest.mark.parametrize("turns", [0, 3])
def test_frames_and_iterations_are_steps_as_in_a_recorded_run(turns: int) -> None:
    graph, out = frames(turns)
    with gc.Session(graph, engine="dataflow") as session:
        assert session.run(out, options=gc.RunOptions(trace=True)) == [turns]
        trace = last_trace(graph)
        assert trace is not None
        recorded = [(e.kind, e.node, e.frame, e.iteration) for e in trace.events if e.kind in {"start", "dead"}]
        run = session.step_through(out)
        seen = names_to_the_end(run)
        assert seen == [node for _, node, _, _ in recorded]
        assert [(e.kind, e.node, e.frame, e.iteration) for e in run.trace.events if e.kind in {"start", "dead"}] == recorded
        assert run.finish() == [turns]


def test_a_stored_loop_of_tensorflow_is_stepped_through() -> None:
    graph = gc.load(WHILE_V1)
    fetches = [node for node in graph.nodes if node.op == "Exit"]
    feeds = {
        node.outputs[0]: np.ones([2 if d is None else d for d in node.outputs[0].shape.dims or ()], np.float32)
        for node in graph.nodes
        if node.op == "Placeholder"
    }
    with gc.Session(graph) as session:
        run = session.step_through([node.outputs[0] for node in fetches], feeds)
        second = run.run_until(lambda node: node.event.iteration == 1)
        assert second is not None
        assert second.event.frame
        for one, other in zip(run.finish(), session.run([node.outputs[0] for node in fetches], feeds), strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_nodes_of_functions_are_steps_too_and_other_runs_call_the_same_function_meanwhile() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [2], name="x")
        y = gc.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, gc.tanh(v) * x), [gc.constant(0), x], name="loop")[1]
    with gc.Session(graph) as session:
        expected = session.run(y, {x: [1.0, 2.0]})
        run = session.step_through(y, {x: [1.0, 2.0]})
        node = run.run_until(lambda node: node.event.node == "mul" and node.event.call.endswith("#2"))
        assert node is not None
        assert node.name == "loop:loop_body#2 > mul"
        assert node.values[0].small is not None
        assert run.next.startswith("loop:loop_cond#3")
        np.testing.assert_array_equal(session.run(y, {x: [1.0, 2.0]}), expected)
        np.testing.assert_array_equal(run.finish(), expected)


@pytest.mark.parametrize("taken", [True, False])
def test_nodes_on_the_other_branch_are_dead_steps(taken: bool) -> None:
    graph = gc.Graph()
    with graph.as_default():
        pred = gc.placeholder(gc.bool, [], name="pred")
        out = cond(pred, [gc.constant(1.0)], lambda a: [op("Neg", [a])], lambda a: [op("Exp", [a])])
    with gc.Session(graph) as session:
        run = session.step_through(out, {pred: taken})
        dead = run.run_until(lambda node: node.is_dead)
        assert dead is not None
        assert dead.name == ("Exp" if taken else "Neg")
        run.close()


def test_a_failing_node_ends_the_run_with_its_error() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [None], name="x")
        y = gc.add(gc.identity(x, name="before"), gc.constant([1.0, 2.0]), name="sum")
    with gc.Session(graph) as session:
        run = session.step_through(y, {x: [1.0, 2.0, 3.0]})
        run.run_until("before")
        with pytest.raises(InvalidArgumentError, match="sum"):
            run.finish()
        assert run.is_over
        assert run.error is not None
        assert "ended: " in repr(run)


def test_a_new_run_closes_the_one_before_and_a_session_closes_its_runs() -> None:
    graph, x, z = layer()
    before = threading.active_count()
    with gc.Session(graph) as session:
        first = session.step_through(z, {x: [1.0, 2.0]})
        second = session.step_through(z, {x: [1.0, 2.0]})
        assert (first.is_over, second.is_over) == (True, False)
        with pytest.raises(CancelledError):
            first.finish()
        session.close()
    assert second.is_over
    assert threading.active_count() == before


def test_the_time_spent_waiting_is_in_no_event() -> None:
    graph, x, z = layer()
    with gc.Session(graph) as session:
        run = session.step_through(z, {x: [1.0, 2.0]})
        while not run.is_over:
            time.sleep(0.02)
            run.step()
        assert run.trace.length < 0.02e9 * 3


def test_several_devices_are_stepped_through() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [2], name="x")
        with gc.device("/gpu:0"):
            y = gc.exp(x, name="y")
        with gc.device("/cpu:0"):
            z = gc.reduce_sum(y, name="z")
    with gc.Session(graph, gc.simulated_devices("1 cpu, 1 gpu")) as session:
        run = session.step_through(z, {x: [0.0, 0.0]})
        assert {"y", "z"} <= set(names_to_the_end(run))
        assert run.finish() == 2.0


def test_ctrl_c_while_a_node_waits_leaves_the_run_as_it_is() -> None:
    graph = gc.Graph()
    with graph.as_default():
        queue = gc.ops.fifo_queue_v2(component_types=[gc.float32], shapes=[[]])
        put = gc.ops.queue_enqueue_v2(queue, [gc.constant(3.0)])
        taken = gc.identity(gc.ops.queue_dequeue_v2(queue, component_types=[gc.float32])[0], name="taken")
    with gc.Session(graph) as session:
        run = session.step_through(taken)
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            run.finish()
        timer.join()
        session.run(put)
        assert run.finish() == 3.0
