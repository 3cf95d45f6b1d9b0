"""The child of a fork can build and run, whatever other threads of its parent were doing."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import graphcore as gc
from graphcore.support import forking
from graphcore.support.thread_pool import kernel_pool
from widgets.render import to_dot
from widgets.scene import Scene, SceneNode

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),
]
FORKS = 25


def exit_code_of_child(work: Callable[[], object], seconds: float = 60.0) -> int:
    """Run `work` in the child of a fork. The exit code is 0, 1 after an error, -1 after the time."""
    child = os.fork()
    if not child:
        try:
            work()
            os._exit(0)
        except BaseException:  # noqa: BLE001 - it is the child's exit code
            os._exit(1)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return -1


@contextmanager
def repeated(work: Callable[[], object], threads: int = 2) -> Iterator[None]:
    """Do `work` again and again in other threads."""
    stop = threading.Event()

    def repeat() -> None:
        while not stop.is_set():
            work()

    workers = [threading.Thread(target=repeat) for _ in range(threads)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        stop.set()
        for worker in workers:
            worker.join()


def test_a_child_builds_and_runs_while_other_threads_build_and_run() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [4])
        v = gc.Variable(np.zeros(4, "f"))
        step = v.assign_add(x)
        session = gc.Session()
        session.run(gc.initialize_all_variables())
    feeds = {x: np.ones(4, "f")}

    def build_and_run() -> None:
        with graph.as_default():
            session.run([gc.tanh(x), step], feeds)

    with repeated(build_and_run):
        codes = {exit_code_of_child(build_and_run) for _ in range(FORKS)}
    assert codes == {0}


def test_a_child_runs_kernels_in_threads_of_its_own() -> None:
    assert kernel_pool.submit(os.getpid).result() == os.getpid()
    assert exit_code_of_child(lambda: kernel_pool.submit(os.getpid).result()) == 0


def test_a_child_lays_out_pictures_in_a_process_of_its_own() -> None:
    def lay_out(name: str) -> None:
        assert name in to_dot(Scene(title="", nodes=[SceneNode(id=name, label=name, kind="op")], edges=[]))

    lay_out("before")
    assert exit_code_of_child(lambda: lay_out("within")) == 0
    lay_out("after")


def test_a_lock_that_another_thread_keeps_does_not_hold_up_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forking, "PATIENCE", 0.1)
    kept, free = forking.new_rlock(), forking.new_lock()
    held, leave = threading.Event(), threading.Event()

    def keep() -> None:
        with kept:
            held.set()
            leave.wait(60)

    thread = threading.Thread(target=keep)
    thread.start()
    held.wait(60)

    def use() -> None:
        assert free.acquire(timeout=1)
        assert not kept.acquire(timeout=0.01)

    code = exit_code_of_child(use)
    leave.set()
    thread.join()
    assert code == 0
    assert free.acquire(timeout=1)
    assert kept.acquire(timeout=1)


def test_locks_that_threads_take_in_another_order_do_not_hold_up_a_fork() -> None:
    one, other = forking.new_rlock(), forking.new_rlock()

    def take(first: threading.RLock, second: threading.RLock) -> None:
        with first, second:
            pass

    def use() -> None:
        assert one.acquire(timeout=1)
        assert other.acquire(timeout=1)

    with repeated(lambda: take(one, other)):
        codes = {exit_code_of_child(use) for _ in range(FORKS)}
    assert codes == {0}
