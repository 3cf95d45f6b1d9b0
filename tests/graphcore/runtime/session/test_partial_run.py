"""Partial runs: a run in several steps, each with some of the feeds and some of the fetches."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import DeadlineExceededError, InternalError, InvalidArgumentError
from tests.graphcore.runtime.loop_graphs import cond, enter, op, switch, while_loop
from tests.graphcore.runtime.session.test_client import TestConnections as Connections  # renamed, so that pytest does not collect it again
from tests.graphcore.runtime.session.test_client import direct
from tests.support.threads import LiveThreads

DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"
KEY = gc.create_key(DEVICE, 1, DEVICE, "v")


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def receive() -> Any:
    """The value received under `KEY`."""
    ends = {"tensor_name": "v", "send_device": DEVICE, "send_device_incarnation": 1, "recv_device": DEVICE}
    return op("_Recv", [], {"tensor_type": gc.float32, **ends})


def zero(value: Any) -> gc.Tensor:
    """The axis 0, in the loop of `value`."""
    with gc.control_dependencies([value.node]):
        return gc.constant([0])


def double(value: gc.Tensor) -> list[gc.Tensor]:
    """Twice `value`."""
    return [gc.add(value, value)]


class TestPartialRuns:
    """Feeds come in steps; each fetch is available when its feeds are."""

    def test_feeds_may_come_in_steps(self) -> None:
        session = direct(Connections.chain())
        handle = session.partial_run_setup(["a:0", "b:0"], ["c:0", "e:0"])
        assert session.partial_run(handle, [("a:0", 3.0)], ["c:0"]) == [9.0]
        assert session.partial_run(handle, [("b:0", 1.0)], ["e:0"]) == [8.0]
        with pytest.raises(InvalidArgumentError, match="setup"):
            session.partial_run(handle, [], ["e:0"])

    def test_a_fetch_whose_feeds_are_missing_fails_and_can_be_asked_for_again(self) -> None:
        session = direct(Connections.chain())
        handle = session.partial_run_setup(["a:0", "b:0"], ["c:0", "e:0"])
        with pytest.raises(InvalidArgumentError, match="can't be computed from the feeds"):
            session.partial_run(handle, [("a:0", 3.0)], ["e:0"])
        assert session.partial_run(handle, [("a:0", 3.0), ("b:0", 1.0)], ["e:0", "c:0"]) == [8.0, 9.0]

    def test_single_outputs_of_a_node_can_be_fed(self, graph: gc.Graph) -> None:
        x = gc.placeholder(gc.float32, [4], name="x")
        first, second = graph.apply_op("Split", [0, x], {"num_split": 2}, "halves").outputs
        y = gc.subtract(first, second, name="y")
        session = gc.Session()
        handle = session.partial_run_setup([y, first], [x, second])
        assert session.partial_run(handle, first, {x: [1, 2, 3, 4]}).tolist() == [1, 2]
        assert session.partial_run(handle, y, {second: [10, 10]}).tolist() == [-9, -8]

    def test_a_stateful_node_runs_once_in_all_steps(self) -> None:
        w = gc.Variable(0.0, name="w")
        a, b = gc.placeholder(gc.float32, [], name="a"), gc.placeholder(gc.float32, [], name="b")
        added = gc.identity(w.assign_add(a))
        drawn = gc.random_uniform([])
        first, second = added + drawn, added + drawn + b
        session = gc.Session()
        session.run(w.initializer)
        handle = session.partial_run_setup([first, second], [a, b])
        one = session.partial_run(handle, first, {a: 1.0})
        two = session.partial_run(handle, second, {b: 10.0})
        assert two == pytest.approx(one + 10, rel=1e-6)
        assert session.run(w) == 1.0

    def test_what_was_not_set_up_or_has_been_there_is_refused(self) -> None:
        session = direct(Connections.chain())
        handle = session.partial_run_setup(["a:0", "b:0"], ["c:0", "e:0"], ["d"])
        with pytest.raises(InvalidArgumentError, match="The feed d:0 was not specified"):
            session.partial_run(handle, [("d:0", 3.0)], [])
        with pytest.raises(InvalidArgumentError, match="The fetch d:0 was not specified"):
            session.partial_run(handle, [], ["d:0"])
        session.partial_run(handle, [("a:0", 3.0)], ["c:0"])
        with pytest.raises(InvalidArgumentError, match="has already been fed"):
            session.partial_run(handle, [("a:0", 3.0)], [])
        with pytest.raises(InvalidArgumentError, match="was already fetched"):
            session.partial_run(handle, [], ["c:0"])

    def test_a_feed_that_does_not_fit_is_refused(self) -> None:
        x = gc.placeholder(gc.float32, [2], name="x")
        session = gc.Session()
        handle = session.partial_run_setup(gc.exp(x), [x])
        with pytest.raises(InvalidArgumentError, match="Cannot feed value of shape"):
            session.partial_run(handle, [], {x: [1.0]})
        assert session.partial_run(handle, [], {x: [0.0, 0.0]}) == []

    def test_branches_and_loops_go_on_when_what_they_wait_for_is_fed(self) -> None:
        x, p, n = gc.placeholder(gc.float32, [2]), gc.placeholder(gc.bool_, []), gc.placeholder(gc.float32, [])
        chosen = cond(p, [x], lambda a: [op("Exp", [a])], lambda a: [op("Neg", [a])])[0]
        limit = enter(n, "f", constant=True)
        looped = while_loop(lambda v: op("Less", [op("Sum", [v, zero(v)]), limit]), lambda v: [op("AddV2", [v, v])], [chosen], "f")[0]
        session = gc.Session()
        handle = session.partial_run_setup([chosen, looped, x], [x, p, n])
        assert session.partial_run(handle, x, {x: [1.0, 2.0]}).tolist() == [1, 2]
        with pytest.raises(InvalidArgumentError, match="can't be computed from the feeds"):
            session.partial_run(handle, chosen)
        assert session.partial_run(handle, chosen, {p: False}).tolist() == [-1, -2]
        assert session.partial_run(handle, looped, {n: -20.0}).tolist() == [-1, -2]

    def test_a_loop_turns_when_its_last_value_is_fed(self) -> None:
        x, n = gc.placeholder(gc.float32, []), gc.placeholder(gc.float32, [])
        limit = enter(n, "f", constant=True)
        inner = lambda v: while_loop(lambda w: op("Less", [w, enter(limit, "g", constant=True)]), double, [v], "g")  # noqa: E731 - short
        looped = while_loop(lambda v: op("Less", [v, limit]), inner, [x], "f")[0]
        session = gc.Session()
        handle = session.partial_run_setup(looped, [x, n])
        session.partial_run(handle, [], {n: 100.0})
        assert session.partial_run(handle, looped, {x: 3.0}) == 192.0

    def test_what_leaves_a_loop_waits_for_all_that_enters_it(self) -> None:
        x, n, other = gc.placeholder(gc.float32, []), gc.placeholder(gc.float32, []), gc.placeholder(gc.float32, [])
        limit, added = enter(n, "f", constant=True), enter(other, "f", constant=True)
        one, two = while_loop(
            lambda a, _: op("Less", [a, limit]), lambda a, b: [op("AddV2", [a, a]), op("AddV2", [b, added])], [x, x], "f", parallel=1
        )
        session = gc.Session()
        handle = session.partial_run_setup([one, two], [x, n, other])
        with pytest.raises(InvalidArgumentError, match="can't be computed from the feeds"):
            session.partial_run(handle, one, {x: 1.0, n: 5.0})
        assert session.partial_run(handle, [one, two], {x: 1.0, n: 5.0, other: 1.0}) == [8.0, 4.0]

    def test_a_fetch_on_a_branch_that_was_not_taken_ends_the_run(self) -> None:
        x, p = gc.placeholder(gc.float32, []), gc.placeholder(gc.bool_, [])
        no, yes = switch(x, p)
        session = gc.Session()
        handle = session.partial_run_setup([no, yes], [x, p])
        assert session.partial_run(handle, yes, {x: 1.0, p: True}) == 1.0
        with pytest.raises(InvalidArgumentError, match="lies on a branch that was not taken"):
            session.partial_run(handle, no)
        with pytest.raises(InvalidArgumentError, match="setup"):
            session.partial_run(handle, no)

    def test_functional_branches_and_calls_run_once(self) -> None:
        x, p = gc.placeholder(gc.float32, []), gc.placeholder(gc.bool_, [])
        w = gc.Variable(0.0)
        with gc.control_dependencies([w.assign_add(x)]):
            counted = gc.identity(x)
        y = gc.cond(p, lambda: counted * 2.0, lambda: counted * 3.0)
        z = gc.function(lambda v: gc.exp(v) * v, name="f")(y)
        session = gc.Session()
        session.run(w.initializer)
        handle = session.partial_run_setup([y, z, counted], [x, p])
        assert session.partial_run(handle, counted, {x: 1.0}) == 1.0
        assert session.partial_run(handle, y, {p: False}) == 3.0
        assert session.partial_run(handle, z) == pytest.approx(np.exp(3.0) * 3.0)
        assert session.run(w) == 1.0

    def test_what_was_fed_may_be_changed_before_a_later_step(self) -> None:
        x, y = gc.placeholder(gc.float32, [2]), gc.placeholder(gc.float32, [2])
        total = x + y
        session = gc.Session()
        handle = session.partial_run_setup(total, [x, y])
        value = np.array([1.0, 2.0], np.float32)
        session.partial_run(handle, [], {x: value})
        value[:] = 0.0
        assert session.partial_run(handle, total, {y: [1.0, 1.0]}).tolist() == [2, 3]

    def test_an_error_names_its_node_and_ends_the_run(self) -> None:
        x, y = gc.placeholder(gc.float32, None, name="x"), gc.placeholder(gc.float32, None, name="y")
        z = gc.add(x, y, name="z")
        session = gc.Session()
        handle = session.partial_run_setup(z, [x, y])
        session.partial_run(handle, [], {x: [1, 2, 3]})
        with pytest.raises(InvalidArgumentError) as caught:
            session.partial_run(handle, z, {y: [1, 2]})
        assert caught.value.node == "z"
        assert "float32 [3], float32 [2]" in caught.value.message
        with pytest.raises(InvalidArgumentError, match="setup"):
            session.partial_run(handle, z)

    def test_a_limit_on_all_runs_of_a_session_holds_for_each_step(self) -> None:
        x, received = gc.placeholder(gc.float32, [], name="x"), receive()
        forever = while_loop(lambda v: op("LessEqual", [v, v]), lambda v: [op("AddV2", [v, v])], [x])[0]
        for late in (op("Neg", [received]), forever):
            session = gc.Session(options=gc.SessionOptions(operation_timeout_in_ms=200))
            handle = session.partial_run_setup([x, late], [x])
            threads = LiveThreads()
            with pytest.raises(DeadlineExceededError, match="200 ms"):
                session.partial_run(handle, late, {x: 1.0})
            with pytest.raises(InvalidArgumentError, match="setup"):
                session.partial_run(handle, x)
            threads.check_none_is_left(within=30)

    def test_a_step_that_fails_aborts_the_rendezvous_with_its_error(self) -> None:
        session = gc.Session()
        met, handle = session.rendezvous, session.partial_run_setup(op("Neg", [receive()]))
        met.send(KEY, None, np.float64(1.0))
        with pytest.raises(InternalError, match="expected to receive float, got float64"):
            session.partial_run(handle, "Neg:0")
        with pytest.raises(InternalError, match="expected to receive float, got float64"):
            met.recv(KEY, timeout=5)

    def test_ctrl_c_while_a_step_waits_leaves_nobody_waiting_in_its_place(self) -> None:
        session = gc.Session()
        late = op("Neg", [receive()])
        met, handle = session.rendezvous, session.partial_run_setup(late)
        presser = threading.Timer(0.3, signal.pthread_kill, (threading.main_thread().ident or 0, signal.SIGINT))
        presser.start()
        with pytest.raises(KeyboardInterrupt):
            session.partial_run(handle, late)
        presser.join()
        assert not met._queues
        session.rendezvous.send(KEY, None, np.float32(2.0))
        assert session.run(late) == -2.0
