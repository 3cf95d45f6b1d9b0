"""Planning terminates: slow constants are not folded, and time limits and Ctrl-C work meanwhile."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import DeadlineExceededError
from graphcore.runtime.core.interruptible_call import AbandonedCallError, InterruptibleCall
from graphcore.runtime.plan.plan import Plan
from graphcore.runtime.plan.plan_text import PART
from graphcore.runtime.session.prepared import Prepared
from graphcore.support import generated_code
from graphcore.support.deadline import time_limit
from tests.graphcore.runtime.test_interruption import ENGINES

LIMIT = 250


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def distance(count: int, seed: int = 0) -> gc.Tensor:
    """The edit distance of two constant sequences, quadratic in Python."""
    places = np.stack([np.zeros(count, np.int64), np.arange(count)], 1)
    numbers = np.random.default_rng(seed).integers(0, 9, (2, count))
    shape = np.array([1, count])
    result: gc.Tensor = gc.ops.edit_distance(places, numbers[0], shape, places, numbers[1], shape)
    return result


def many_small() -> gc.Tensor:
    """Constants that are fast alone, and take many seconds together."""
    return gc.add_n([distance(170, seed) for seed in range(150)])


def test_slow_constants_are_left_to_the_run() -> None:
    session = gc.Session()
    assert [node.op for node in session.plan(distance(3_000)).nodes] == ["EditDistance"]
    assert session.plan(distance(30)).nodes == []
    image, filters = gc.constant(np.ones((1, 200, 200, 8), np.float32)), gc.constant(np.ones((9, 9, 8, 64), np.float32))
    assert [node.op for node in session.plan(gc.ops.conv2d(image, filters, strides=[1, 1, 1, 1], padding="SAME")).nodes] == ["Conv2D"]
    large, small = gc.constant(np.ones((900, 900), np.float32)), gc.constant(np.ones((90, 90), np.float32))
    assert [node.op for node in session.plan(large @ large).nodes] == ["MatMul"]
    assert session.plan(small @ small).nodes == []


def test_a_loop_of_constants_is_left_to_the_run() -> None:
    turns = gc.while_loop(lambda i: i < 1_000_000_000, lambda i: [i + 1], [gc.constant(0)])
    session = gc.Session()
    with pytest.raises(DeadlineExceededError):
        session.run(turns, options=gc.RunOptions(timeout_in_ms=LIMIT))


@ENGINES
@pytest.mark.parametrize("how", ["run", "session"])
def test_a_time_limit_applies_to_planning(how: str, engine: str) -> None:
    work = many_small()
    options = gc.SessionOptions(operation_timeout_in_ms=LIMIT if how == "session" else 0)
    session = gc.Session(engine=engine, options=options)
    with pytest.raises(DeadlineExceededError, match=f"within {LIMIT} ms, which have passed; stopped while planning, at node") as caught:
        session.run(work, options=gc.RunOptions(timeout_in_ms=LIMIT) if how == "run" else None)
    assert work.graph.find(caught.value.node or "") is not None
    assert session.run(gc.constant(2.0) * 3.0) == 6.0


@ENGINES
def test_ctrl_c_interrupts_planning(engine: str) -> None:
    work = many_small()
    session, main = gc.Session(engine=engine), threading.main_thread().ident or 0

    def press() -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            frame, names = sys._current_frames().get(main), set()
            while frame is not None:
                names.add(frame.f_code.co_name)
                frame = frame.f_back
            if {"prepare", "levenshtein"} <= names:
                signal.pthread_kill(main, signal.SIGINT)
                return
            time.sleep(0.005)

    presser = threading.Thread(target=press)
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        session.run(work)
    presser.join()
    assert session.run(gc.constant(2.0) * 3.0) == 6.0


def test_nodes_that_changed_before_planning_was_interrupted_are_planned_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    both = [x * gc.constant(2.0), x + gc.constant(2.0)]
    session = gc.Session()
    assert [session.run(y, {x: 3.0}) for y in both] == [6.0, 5.0]
    for y in both:
        y.graph.update_edge(gc.constant(5.0).node, 0, y.node, 1)

    def interrupted(_plan: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Prepared, "close", interrupted)  # the first step of discarding an outdated plan
        with pytest.raises(KeyboardInterrupt):
            session.run(both[0], {x: 3.0})
    assert [session.run(y, {x: 3.0}) for y in both] == [15.0, 8.0]


def test_an_abandoned_call_that_loses_the_error_gets_it_again() -> None:
    """As in a finaliser, where Python drops errors."""
    lost: list[int] = []

    def work() -> None:
        for _ in range(2):
            try:
                while True:
                    time.sleep(0.005)
            except AbandonedCallError:
                if lost:
                    raise
                lost.append(1)

    call = InterruptibleCall(work)
    call.abandon()
    assert call.wait(60)
    assert lost


def test_a_long_plan_is_compiled_in_parts_and_a_time_limit_holds_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    y = x
    for _ in range(2 * PART + 10):
        y = gc.tanh(y)
    session, schedule = gc.Session(), gc.Session().plan(y, {x: None}).schedule
    with time_limit(time.monotonic() - 1.0, "Too late"), pytest.raises(DeadlineExceededError, match="Too late; stopped while planning"):
        Plan(schedule)
    left = [2]

    def interrupted(*arguments: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return compile(*arguments)

    monkeypatch.setattr(generated_code, "compile", interrupted, raising=False)
    with pytest.raises(KeyboardInterrupt):
        session.run(y, {x: [0.0, 0.0]})
    left[0] = 100
    assert session.run(y, {x: [0.0, 0.0]}).tolist() == [0, 0]
    assert left[0] == 100 - 4
