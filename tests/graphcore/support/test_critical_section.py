"""Ctrl-C within a critical section is raised at its end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType

import pytest

from graphcore.support import critical_section as module
from graphcore.support.critical_section import critical_contextmanager, critical_section


@pytest.fixture(autouse=True)
def _python_s_own_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press() -> None:
    """Press Ctrl-C; it was handled or deferred when this returns."""
    signal.raise_signal(signal.SIGINT)


def interrupted(*, within: bool = True) -> list[str]:
    """The part of some work that is done when Ctrl-C comes during a section."""
    done: list[str] = []
    with suppress(KeyboardInterrupt):
        with critical_section:
            if within:
                press()
            done.append("section")
        done.append("after")
    return done


def test_ctrl_c_within_a_section_comes_at_its_end() -> None:
    assert interrupted() == ["section"]
    assert interrupted(within=False) == ["section", "after"]


def test_ctrl_c_within_an_inner_section_comes_at_the_end_of_the_outermost() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt), critical_section:
        done += interrupted()
    assert done == ["section", "after"]


def test_ctrl_c_outside_of_sections_comes_at_once() -> None:
    interrupted()
    with pytest.raises(KeyboardInterrupt):
        press()
    assert interrupted(within=False) == ["section", "after"]  # exactly once


def test_ctrl_c_comes_though_the_section_fails() -> None:
    def fails() -> None:
        with critical_section:
            press()
            raise ValueError

    with pytest.raises(KeyboardInterrupt) as caught:
        fails()
    assert isinstance(caught.value.__context__, ValueError)


def test_a_handler_of_the_users_own_is_called_at_the_end_and_stays_the_users() -> None:
    calls: list[str] = []

    def mine(_number: int, _frame: FrameType | None) -> None:
        calls.append("mine")

    for _ in range(3):  # as a Jupyter kernel does for each cell
        before = signal.signal(signal.SIGINT, mine)
        with critical_section:
            press()
            assert calls == []
        assert calls == ["mine"]
        press()
        assert calls == ["mine", "mine"]
        calls.clear()
        signal.signal(signal.SIGINT, before)
        assert interrupted() == ["section"]


def test_a_handler_that_calls_the_one_before_it_is_called_once() -> None:
    calls: list[str] = []
    interrupted()
    before = signal.getsignal(signal.SIGINT)
    assert callable(before)

    def mine(number: int, frame: FrameType | None) -> None:
        calls.append("mine")
        before(number, frame)

    signal.signal(signal.SIGINT, mine)
    assert interrupted() == ["section"]
    assert calls == ["mine"]


def test_where_ctrl_c_is_ignored_it_stays_so() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert interrupted() == ["section", "after"]
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_sections_of_other_threads_put_nothing_off() -> None:
    entered, leave = threading.Event(), threading.Event()

    def work() -> None:
        with critical_section:
            entered.set()
            leave.wait(30)

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait(30)
    with pytest.raises(KeyboardInterrupt):
        press()
    leave.set()
    thread.join()
    assert interrupted() == ["section"]


def test_a_section_that_hangs_is_left_when_ctrl_c_is_pressed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    done: list[str] = []

    def hangs() -> None:
        with critical_section:
            press()
            done.append("hangs")
            press()
            done.append("never")

    with pytest.raises(KeyboardInterrupt):
        hangs()
    assert done == ["hangs"]
    monkeypatch.undo()
    assert interrupted() == ["section"]


def acquire_when_pressed(lock: threading.RLock) -> None:
    press()
    critical_section.acquire(lock)


def test_ctrl_c_ends_the_wait_for_a_lock_within_a_section() -> None:
    lock, held, leave = threading.RLock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            leave.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(30)
    with pytest.raises(KeyboardInterrupt), critical_section:
        acquire_when_pressed(lock)
    leave.set()
    holder.join()
    assert lock.acquire(timeout=0)


@pytest.mark.parametrize("when", ["entering", "leaving", "block", "never"])
def test_a_context_manager_that_is_interrupted_is_left(when: str) -> None:
    done: list[str] = []

    @critical_contextmanager
    def managed() -> Iterator[int]:
        done.append("entering")
        if when == "entering":
            press()
        try:
            done.append("entered")
            yield 1
        finally:
            if when == "leaving":
                press()
            done.append("left")

    with suppress(KeyboardInterrupt):
        with managed() as value:
            assert value == 1
            if when == "block":
                press()
            done.append("block")
        done.append("after")
    assert done[:2] == ["entering", "entered"]
    assert (
        done[2:]
        == {
            "entering": ["left"],
            "block": ["left"],
            "leaving": ["block", "left"],
            "never": ["block", "left", "after"],
        }[when]
    )


def test_ctrl_c_ends_the_wait_for_an_event_and_leaves_the_event_as_it_is() -> None:
    event, main = threading.Event(), threading.main_thread().ident or 0
    presser = threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT))
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        critical_section.wait(event)
    presser.join()
    assert not critical_section.wait(event, 0.0)
    event.set()
    assert critical_section.wait(event)


@critical_section.cover
def covered(within: Callable[[], object], done: list[str]) -> None:
    critical_section.begin()
    try:
        within()
        done.append("section")
    finally:
        if critical_section.deferred is not None:
            critical_section.end()


def test_a_covered_function_is_a_section_within_others_too() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        covered(press, done)
    assert done == ["section"]
    with pytest.raises(KeyboardInterrupt):
        covered(lambda: covered(press, done), done)
    assert done == ["section"] * 3
    with pytest.raises(KeyboardInterrupt), critical_section:
        covered(press, done)
    assert done == ["section"] * 4
    with pytest.raises(KeyboardInterrupt):
        covered(lambda: done.extend(interrupted()), done)
    assert done == ["section"] * 5 + ["after", "section"]
    assert interrupted(within=False) == ["section", "after"]
