"""The thread pool: no error in the submitter loses a thread."""

from __future__ import annotations

import queue
import threading
import time
from contextlib import suppress
from typing import Any

import pytest

from graphcore.support import thread_pool as pools
from graphcore.support.thread_pool import Pool
from tests.support.threads import LiveThreads

SIZE = 2


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle threads end soon."""
    monkeypatch.setattr(pools, "IDLE_SECONDS", 0.05)


def check_all_work(pool: Pool) -> None:
    """All threads of the pool work concurrently, and no others."""
    meeting = threading.Barrier(SIZE + 1)
    together = [pool.submit(meeting.wait, 10) for _ in range(SIZE)]
    time.sleep(0)
    meeting.wait(10)
    assert sorted(task.result() for task in together) != []
    assert len(pool._threads) <= SIZE


@pytest.mark.parametrize("when", ["before", "after", "much after"])
def test_ctrl_c_while_a_thread_begins_loses_no_thread(when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pool, start, before = Pool(SIZE), threading.Thread.start, LiveThreads()

    def interrupted(thread: threading.Thread) -> None:
        if when == "after":
            start(thread)
        elif when == "much after":  # submitted, but not seen to begin
            later = threading.Timer(0.05, start, (thread,))
            start(later)
        raise KeyboardInterrupt

    for _ in range(2 * SIZE):
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", interrupted)
            for _ in range(SIZE):
                with suppress(KeyboardInterrupt):  # it does not come while a thread is idle
                    pool.submit(int)
        check_all_work(pool)
    time.sleep(0.1)
    check_all_work(pool)
    before.check_all_ended()


def test_a_thread_that_the_system_refuses_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, called = Pool(SIZE), list[int]()

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        for number in range(2 * SIZE):
            with pytest.raises(RuntimeError, match="can't start"):
                pool.submit(called.append, number)
    check_all_work(pool)
    assert called == []


class Slow(queue.SimpleQueue[Any]):
    """A thread that is slow after taking a task."""

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        taken = super().get(block, timeout)
        time.sleep(0.1)
        return taken


def test_a_thread_that_has_just_got_work_is_not_taken_for_an_idle_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "IDLE_SECONDS", 10)
    pool, meeting = Pool(SIZE), threading.Barrier(SIZE)
    pool._tasks = Slow()
    pool.submit(int).result()
    time.sleep(0.05)  # it is idle now
    first = pool.submit(meeting.wait, 5)
    time.sleep(0.05)  # it has taken the task and not reported it yet
    second = pool.submit(meeting.wait, 5)
    assert sorted([first.result(), second.result()]) == [0, 1]
    monkeypatch.setattr(pools, "IDLE_SECONDS", 0.01)
    for _ in range(SIZE):
        pool.submit(int).result()
