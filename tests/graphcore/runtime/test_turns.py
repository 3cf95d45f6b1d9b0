"""Threads whose runs are short take turns where they would change places all the time; nobody waits for ever, and nobody waits for nothing."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import pytest

import graphcore as gc
from graphcore.registry import OpRegistration, op_registry
from graphcore.runtime import turns as module
from graphcore.runtime.turns import Load, Turns
from tests.support.interrupting import interrupted_everywhere

SHORT, MIDDLING, LONG = 1e-5, 9e-5, 1e-3
MOMENT, A_WHILE, LONGER = 1e-4, 2e-4, 3e-3
SOON = 8


class World:
    """Turns on a machine of two processors where time passes, and the watcher looks, when a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.pause = 0.0
        self.used: dict[int, float] = defaultdict(float)
        self._looks, self._looked = threading.Semaphore(0), threading.Semaphore(0)
        self._names = threading.local()
        clock = SimpleNamespace(monotonic=lambda: self.now, thread_time=lambda: self.used[self._me()], sleep=self._sleep)
        monkeypatch.setattr(module, "time", clock)
        monkeypatch.setattr(module, "get_ident", self._me)
        monkeypatch.setattr(module, "_LOST", 1000.0)
        monkeypatch.setattr(module, "core_count", lambda: 2)
        self._pool = ThreadPoolExecutor()
        self.turns = Turns()
        self._is_over = False

    def _me(self) -> int:
        return getattr(self._names, "name", 0)

    def _sleep(self, seconds: float) -> None:
        self.pause = seconds
        self._looked.release()
        if not self._is_over:
            assert self._looks.acquire(timeout=SOON)

    def run(self, thread: int, cost: float = SHORT, ends: bool = True) -> Future[None]:
        """Thread number `thread` asks for its turn if it has to; done when it may run and, if it `ends`, has run."""

        def ask() -> None:
            self._names.name = thread
            turn = self.turns.going.get(thread)
            if turn is not None:
                turn.in_run = not ends
                return
            self.turns.ask(cost)
            if ends:
                self.turns.ran()

        done = self._pool.submit(ask)
        self._settle(thread, done)
        return done

    def _settle(self, thread: int, done: Future[None]) -> None:
        """Until it is done, or waits."""
        while wait([done], 0.001).not_done and not any(waiter.thread == thread for waiter in tuple(self.turns._queue)):
            pass

    def pass_by(self, seconds: float, *busy: int) -> None:
        """Some time, all of which the threads that are `busy` use."""
        self.now += seconds
        for thread in busy:
            self.used[thread] += seconds

    def go_on(self, thread: int, seconds: float) -> None:
        """It has one run after the other for so long."""
        for _ in range(round(seconds / MOMENT)):
            self.pass_by(MOMENT, thread)
            assert self.run(thread).done()
            self.look()

    def look(self) -> None:
        """The watcher looks once, and again if anybody waits."""
        assert self._looked.acquire(timeout=SOON)
        self._looks.release()
        while self.turns._is_watched:
            if self._looked.acquire(timeout=0.001):
                self._looked.release()
                break

    def crowd(self, cost: float = SHORT) -> None:
        """Threads 1 and 2 change places till they may no longer; then 1 has its turn."""
        for _ in range(16):
            assert all(self.run(thread, cost).done() for thread in (2, 1) if not self.turns._held)
        assert self.turns._held.keys() <= {1}

    def end(self) -> None:
        self._is_over = True
        self.turns._forget()
        self._looks.release(1000)
        self._pool.shutdown()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    world = World(monkeypatch)
    yield world
    world.end()


def test_threads_that_change_places_now_and_then_never_wait(world: World) -> None:
    for _ in range(100):
        assert world.run(1).done()
        assert world.run(2).done()
        world.pass_by(0.002)


def test_threads_that_change_places_often_take_turns_of_the_length_that_python_lets_them_go_on(world: World) -> None:
    world.crowd()
    second = world.run(2)
    world.go_on(1, 0.9 * sys.getswitchinterval())
    assert not second.done()
    assert world.run(1, ends=False).done()
    world.pass_by(0.3 * sys.getswitchinterval(), 1)
    world.look()
    first = world.run(1)
    second.result(SOON)
    assert not first.done()


def test_who_had_a_turn_a_while_ago_has_none_any_more(world: World) -> None:
    for _ in range(3):
        world.crowd()
        world.pass_by(1.0)
        assert world.run(2).done()
        assert world.run(1).done()
    world.crowd()
    assert not world.run(2).done()


def test_who_waits_first_is_first(world: World) -> None:
    world.crowd()
    others = [world.run(thread) for thread in (2, 3, 4)]
    for i in range(3):
        assert [other.done() for other in others] == [True] * i + [False] * (3 - i)
        world.pass_by(A_WHILE)
        world.look()
        others[i].result(SOON)


def test_who_has_had_his_last_run_keeps_others_waiting_for_a_fraction_of_a_millisecond(world: World) -> None:
    world.crowd()
    second = world.run(2)
    world.look()
    assert not second.done()
    world.pass_by(A_WHILE)
    world.look()
    second.result(SOON)


@pytest.mark.parametrize("cost", [SHORT, LONG])
def test_who_is_in_one_run_for_long_loses_his_turn(world: World, cost: float) -> None:
    world.crowd()
    assert world.run(1, cost, ends=False).done()
    second = world.run(2)
    world.pass_by(A_WHILE)
    world.look()
    assert not second.done()
    world.pass_by(LONGER)
    world.look()
    second.result(SOON)


def test_who_has_been_seen_to_go_on_and_does_not_loses_his_turn_once_he_has_been_seen_not_to(world: World) -> None:
    world.crowd()
    second = world.run(2)
    world.go_on(1, LONGER)
    world.pass_by(MOMENT / 2)
    world.look()
    assert not second.done()
    world.pass_by(A_WHILE)
    world.look()
    second.result(SOON)


def test_who_has_been_seen_to_go_on_loses_his_turn_in_a_run_that_takes_long(world: World) -> None:
    world.crowd()
    second = world.run(2)
    world.go_on(1, LONGER)
    assert world.run(1, ends=False).done()
    world.look()
    world.pass_by(A_WHILE)
    world.look()
    assert not second.done()
    world.pass_by(LONGER)
    world.look()
    second.result(SOON)


def test_where_one_has_had_his_last_run_another_who_was_seen_to_go_on_follows_and_the_rest_still_wait(world: World) -> None:
    world.crowd()
    second = world.run(2)
    world.go_on(1, LONGER)
    assert world.run(1, ends=False).done()
    world.pass_by(sys.getswitchinterval() - LONGER + MOMENT, 1)
    world.look()
    first = world.run(1)
    second.result(SOON)
    third = world.run(3)
    world.go_on(2, LONGER)
    assert not first.done()
    world.pass_by(A_WHILE)
    world.look()
    first.result(SOON)
    assert not third.done()
    assert world.turns._is_watched


def test_who_goes_on_is_looked_at_seldom(world: World) -> None:
    world.crowd()
    second = world.run(2)
    world.go_on(1, LONGER)
    assert world.pause < 5e-4  # he was seen between two runs, and may have had his last
    assert world.run(1, ends=False).done()
    world.look()
    assert world.pause == pytest.approx(sys.getswitchinterval() - LONGER, abs=2e-4)  # when his turn is to end
    assert not second.done()


def test_long_runs_wait_for_nobody(world: World) -> None:
    world.crowd()
    second = world.run(2)
    assert world.run(3, LONG).done()
    assert world.run(3, LONG).done()
    assert not second.done()


def test_as_many_run_at_once_as_there_is_work_for_besides_python(world: World) -> None:
    world.crowd(MIDDLING)
    assert world.run(2, MIDDLING).done()
    third = world.run(3, MIDDLING)
    world.pass_by(MOMENT / 2)
    world.look()
    assert world.run(1, MIDDLING).done()
    assert world.run(2, MIDDLING).done()
    assert not third.done()


def test_there_are_no_turns_where_they_go_unused(world: World) -> None:
    world.crowd()
    waiting = {2: world.run(2)}
    running = 1
    for _ in range(10):
        world.pass_by(1.1 * sys.getswitchinterval())  # it waits for something all the time
        other = world.run(running)
        if other.done():
            break
        ((after, done),) = waiting.items()
        done.result(SOON)
        waiting, running = {running: other}, after
    assert world.run(1).done()
    assert world.run(2).done()
    assert world.run(3).done()


def test_threads_that_wait_for_each_other_between_their_runs_soon_take_no_turns(world: World) -> None:
    world.crowd()
    waits = 0
    for turn in range(100):
        done = world.run(2 - turn % 2)
        if not done.done():
            waits += 1
            world.pass_by(A_WHILE)
            world.look()
            done.result(SOON)
        world.pass_by(SHORT, 2 - turn % 2)
    assert 0 < waits < 10


def test_there_are_no_turns_where_nobody_can_see_to_it_that_they_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(*_: Any) -> NoReturn:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(world.turns._watcher, "submit", no_thread)
    world.crowd()
    for _ in range(100):
        assert world.run(1).done()
        assert world.run(2).done()


def test_there_are_no_turns_where_all_threads_run_python_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HAS_ONE_LOCK", False)
    for _ in range(100):
        assert world.run(1).done()
        assert world.run(2).done()


def test_who_is_forgotten_goes_on_after_a_while(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world.turns._watcher, "submit", lambda *_: None)
    monkeypatch.setattr(module, "_LOST", 0.01)
    world.crowd()
    world.run(2).result(SOON)


def test_wherever_a_thread_is_interrupted_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)

    def make() -> tuple[Callable[[], object], Callable[[], object]]:
        nonlocal world
        world.end()
        world = World(monkeypatch)
        world.crowd()
        monkeypatch.setattr(module, "_LOST", 0.001)
        monkeypatch.setattr(module, "sys", SimpleNamespace(getswitchinterval=lambda: 0.0))

        def check() -> None:
            world._looks.release(1000)
            for thread in (2, 3, 2, 3):
                world.run(thread).result(SOON)

        return (lambda: world.turns.ask(SHORT)), check

    try:
        assert interrupted_everywhere(make, ("runtime/turns",)) > 20
    finally:
        world.end()


def test_a_run_counts_as_what_most_runs_like_it_took() -> None:
    load = Load()
    load.note(LONG)  # the first has something to make ready
    assert [load.is_long() for _ in range(34)] == [i % 16 > 0 for i in range(34)]  # one of 16 is timed
    load.note(SHORT)
    assert not any(load.is_long() for _ in range(100))
    load.note(LONG)
    assert not load.is_long()


_meeting: list[threading.Barrier] = []


@pytest.fixture
def meeting_op() -> Iterator[None]:
    """An op whose kernel waits till as many threads are in it as are to meet."""

    def meet(x: Any) -> Any:
        _meeting[-1].wait(SOON)
        return x

    entry = OpRegistration(
        gc.OpDefBuilder("Meeting").input("x: float").output("y: float").finalize(), lambda c: c.set_output(0, c.input(0))
    )
    entry.kernel = lambda _: meet
    op_registry.register(entry)
    yield
    del op_registry._by_name["Meeting"]  # what other tests ask of all ops is not asked of this


@pytest.mark.usefixtures("meeting_op")
@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_threads_that_wait_for_each_other_in_their_runs_do_meet(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WITHIN", 1000.0)  # always a crowd
    with gc.Graph().as_default():
        x = gc.placeholder(gc.float32, [])
        y = gc.apply_op("Meeting", inputs=[x])
        session = gc.Session(engine=engine)
    _meeting.append(threading.Barrier(6))

    def work(i: int) -> None:
        for turn in range(20):
            assert session.run(y, {x: i + turn}) == i + turn

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(work, i) for i in range(6)]:
            done.result()


def test_a_run_within_a_run_needs_no_turn_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WITHIN", 1000.0)
    with gc.Graph().as_default():
        inner = gc.constant(2.0) * 3.0
        session = gc.Session()

        def nested(x: Any) -> Any:
            return x + session.run(inner)

        entry = OpRegistration(
            gc.OpDefBuilder("Nested").input("x: float").output("y: float").finalize(), lambda c: c.set_output(0, c.input(0))
        )
        entry.kernel = lambda _: nested
        op_registry.register(entry)
        try:
            x = gc.placeholder(gc.float32, [])
            y = gc.apply_op("Nested", inputs=[x])

            def work(i: int) -> None:
                for _ in range(50):
                    assert session.run(y, {x: i}) == i + 6

            with ThreadPoolExecutor(6) as pool:
                for done in [pool.submit(work, i) for i in range(6)]:
                    done.result()
        finally:
            del op_registry._by_name["Nested"]


@pytest.mark.skipif(sys.platform != "linux", reason="processes with threads are forked on Linux only")
def test_a_forked_process_takes_turns_of_its_own() -> None:
    script = """
        import os, sys, threading
        from concurrent.futures import ThreadPoolExecutor
        import graphcore as gc
        from graphcore.runtime import turns

        turns._WITHIN = 1000.0
        x = gc.placeholder(gc.float32, [])
        y = x + 1.0
        session = gc.Session()
        is_over = threading.Event()

        def work(i, runs):
            for turn in range(runs):
                assert session.run(y, {x: turn}) == turn + 1
                if is_over.is_set():
                    break

        pool = ThreadPoolExecutor(4)
        working = [pool.submit(work, i, 10**9) for i in range(4)]
        while not turns._turns._queue:
            pass
        with turns._turns._lock:
            child = os.fork()
        if not child:
            with ThreadPoolExecutor(4) as others:
                for done in [others.submit(work, i, 500) for i in range(4)]:
                    done.result()
            os._exit(7)
        is_over.set()
        for done in working:
            done.result()
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)], timeout=60, check=False, capture_output=True)
    assert done.returncode == 7, done.stderr


def test_eight_threads_in_turns_get_what_each_would_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WITHIN", 1000.0)
    with gc.Graph().as_default():
        x = gc.placeholder(gc.float32, [4, 4])
        y = gc.tanh(x @ x)
        session = gc.Session()
    ask = session.make_callable(y, [x])

    def work(i: int) -> None:
        value = np.full((4, 4), 0.1 * i, np.float32)
        expected = session.run(y, {x: value})
        for _ in range(300):
            assert np.array_equal(ask(value), expected)

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, i) for i in range(8)]:
            done.result()
