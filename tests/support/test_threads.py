from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from graphcore.support import thread_pool as pool
from graphcore.support.thread_pool import Pool, Task, kernel_pool
from tests.support import threads
from tests.support.threads import LiveThreads, threads_that_compute, wait_for_pool


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    gate = threading.Event()
    yield gate
    gate.set()
    wait_for_pool()


@contextmanager
def soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Idle pool threads end soon."""
    with monkeypatch.context() as patch:
        patch.setattr(threads, "SETTLING", 0.05)
        yield


def test_a_thread_that_stays_is_named_with_the_place_where_it_is(gate: threading.Event) -> None:
    live = LiveThreads()
    live.check_none_is_left()
    staying = threading.Thread(target=gate.wait, name="staying")
    staying.start()
    with pytest.raises(AssertionError, match=r"required no thread to be left, got after .* s: 'staying' in .*wait \(threading.py:"):
        live.check_none_is_left()
    with pytest.raises(AssertionError, match="'staying'"):
        live.check_none_is_left(within=0.05)
    LiveThreads().check_none_is_left()  # it existed before
    gate.set()
    staying.join()
    live.check_none_is_left()


def test_a_thread_that_takes_the_place_of_another_is_told_although_they_are_as_many_as_before(gate: threading.Event) -> None:
    first_gate = threading.Event()
    first = threading.Thread(target=first_gate.wait, name="the same")
    first.start()
    live = LiveThreads()
    second = threading.Thread(target=gate.wait, name="the same")
    second.start()
    first_gate.set()
    first.join()
    with pytest.raises(AssertionError, match="'the same'"):
        live.check_none_is_left()
    gate.set()
    second.join()


def test_a_thread_that_ends_is_waited_for_as_long_as_allowed(gate: threading.Event) -> None:
    live = LiveThreads()
    threading.Thread(target=gate.wait).start()
    threading.Timer(0.05, gate.set).start()
    live.check_none_is_left(within=30)
    live.check_all_ended()


def test_idle_threads_of_the_pool_may_come_and_stay() -> None:
    live = LiveThreads()
    assert kernel_pool.submit(divmod, 7, 3).result() == (2, 1)
    live.check_none_is_left()
    assert [thread.name for thread in threads_that_compute()] == []


def test_a_thread_of_the_pool_that_computes_is_told_whenever_it_was_started(gate: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    def computes() -> None:
        assert gate.wait(60)

    kernel_pool.submit(divmod, 7, 3).result()
    live = LiveThreads()
    kernel_pool.submit(computes)
    with soon(monkeypatch), pytest.raises(AssertionError, match=r"'graphcore-kernels' in .*computes"):
        live.check_none_is_left()
    gate.set()
    live.check_none_is_left()


def test_what_waits_for_a_thread_of_the_pool_is_not_forgotten(gate: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    many = [kernel_pool.submit(gate.wait, 60) for _ in range(pool.core_count() + 1)]
    with soon(monkeypatch), pytest.raises(AssertionError, match="graphcore-kernels"):
        wait_for_pool()
    gate.set()
    assert all(task.result() for task in many)


def test_a_thread_of_the_pool_that_has_just_taken_its_work_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python may switch threads between taking the work from the queue and starting it."""
    some = Pool(1)
    monkeypatch.setattr(threads, "kernel_pool", some)
    assert some.submit(divmod, 7, 3).result() == (2, 1)
    wait_for_pool()
    taken = Task(divmod, (7, 3))
    some._waiting.add(taken)
    with soon(monkeypatch), pytest.raises(AssertionError, match="graphcore-kernels"):
        wait_for_pool()
    some._waiting.discard(taken)
    wait_for_pool()


def test_a_pool_whose_threads_do_not_go_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    live, some = LiveThreads(), Pool(1)
    monkeypatch.setattr(pool, "IDLE_SECONDS", 60.0)
    assert some.submit(divmod, 7, 3).result() == (2, 1)
    live.check_none_is_left()
    with pytest.raises(AssertionError, match=r"'graphcore-kernels' in .*_work"):
        live.check_all_ended(within=0.05)
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.01)
    assert some.submit(divmod, 7, 3).result() == (2, 1)
    live.check_all_ended()
