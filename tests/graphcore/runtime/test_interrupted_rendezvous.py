"""Ctrl-C in a rendezvous, wherever it comes: no value is lost or given twice, and who waits is told."""

from __future__ import annotations

import gc as collector
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import graphcore as gc
from graphcore.errors import AbortedError, GraphError
from tests.support.interrupting import Attempt, interrupted_everywhere

KEY = gc.create_key("/device:CPU:0", 1, "/device:CPU:1", "x", (0, 0))
PLACES = ("runtime/rendezvous.py",)
kept: list[gc.Rendezvous] = []
"""What is deleted in the middle of a test would be interrupted too, where nobody hears of it."""


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    collector.collect()  # what other tests have left
    yield
    kept.clear()
    collector.collect()


def new() -> gc.Rendezvous:
    kept.append(gc.Rendezvous())
    return kept[-1]


class Told:
    """What a receive was told; the same twice is once, if Ctrl-C came while it was told."""

    def __init__(self) -> None:
        self.answers: list[Any] = []

    def done(self, status: GraphError | None, _sent: object, _own: object, value: Any, _dead: bool) -> None:
        answer = value if status is None else type(status).__name__
        if self.answers[-1:] != [answer]:
            self.answers.append(answer)


def left(meeting: gc.Rendezvous) -> list[Any]:
    """What is there to be received."""
    found: list[Any] = []
    while True:
        told = Told()
        manager = gc.CancellationManager()
        meeting.recv_async(KEY, gc.RendezvousArgs(cancellation_manager=manager), told.done)
        manager.start_cancel()
        if told.answers == ["CancelledError"]:
            return found
        found += told.answers


def check(make: Callable[[], Attempt]) -> None:
    assert interrupted_everywhere(make, PLACES) > 20


def check_receiving(make: Callable[[], Attempt]) -> None:
    """What is about to be returned has been: no signal is looked for there."""
    assert interrupted_everywhere(make, PLACES, after_calls=True) > 10


def test_a_value_that_is_sent_to_who_waits_arrives_or_was_not_sent() -> None:
    def make() -> Attempt:
        meeting, first, second = new(), Told(), Told()
        manager = gc.CancellationManager()
        for told in (first, second):
            meeting.recv_async(KEY, gc.RendezvousArgs(cancellation_manager=manager), told.done)

        def look() -> None:
            assert second.answers == []
            assert first.answers in ([], [7])
            meeting.send(KEY, None, 8)
            assert [*first.answers, *second.answers] in ([8], [7, 8])
            manager.start_cancel()
            assert len(first.answers) == len(second.answers) == 1
            assert left(meeting) == []

        return lambda: meeting.send(KEY, None, 7), look

    check(make)


def test_a_value_that_is_sent_before_anybody_waits_is_there_once_or_was_not_sent() -> None:
    def make() -> Attempt:
        meeting = new()

        def look() -> None:
            meeting.send(KEY, None, 8)
            assert left(meeting) in ([8], [7, 8])

        return lambda: meeting.send(KEY, None, 7), look

    check(make)


def test_a_receive_that_is_interrupted_leaves_the_value_to_the_next() -> None:
    def make() -> Attempt:
        meeting, got = new(), list[Any]()
        meeting.send(KEY, None, 7)
        meeting.send(KEY, None, 8)

        def look() -> None:
            assert [*got, *left(meeting)] == [7, 8]

        return lambda: got.append(meeting.recv(KEY).value), look

    check_receiving(make)


def test_a_receive_that_is_interrupted_while_it_waits_leaves_the_value_to_the_next() -> None:
    def make() -> Attempt:
        meeting, got = new(), list[Any]()
        sender = threading.Timer(0.001, lambda: meeting.send(KEY, None, 7))

        def work() -> None:
            sender.start()
            got.append(meeting.recv(KEY).value)

        def look() -> None:
            sender.join()
            assert [*got, *left(meeting)] == [7]

        return work, look

    check_receiving(make)


def test_a_callback_that_waits_is_told_or_does_not_wait() -> None:
    def make() -> Attempt:
        meeting, told = new(), Told()
        manager = gc.CancellationManager()
        meeting.send(KEY, None, 7)

        def work() -> None:
            meeting.recv_async(KEY, None, told.done)
            meeting.recv_async(KEY, gc.RendezvousArgs(cancellation_manager=manager), told.done)

        def look() -> None:
            meeting.send(KEY, None, 8)
            meeting.send(KEY, None, 9)
            assert [*told.answers, *left(meeting)] == [7, 8, 9]
            manager.start_cancel()
            assert "CancelledError" not in told.answers

        return work, look

    check(make)


def test_an_abort_that_is_interrupted_tells_all_who_wait_or_none() -> None:
    def make() -> Attempt:
        meeting, told = new(), [Told() for _ in range(3)]
        for each in told:
            meeting.recv_async(KEY, None, each.done)

        def look() -> None:
            assert [each.answers for each in told] in ([[]] * 3, [["AbortedError"]] * 3)
            meeting.start_abort(AbortedError("again"))
            assert [each.answers for each in told] == [["AbortedError"]] * 3
            with pytest.raises(AbortedError):
                meeting.send(KEY, None, 1)

        return lambda: meeting.start_abort(AbortedError("over")), look

    check(make)


def test_a_cancellation_that_is_interrupted_tells_who_waits() -> None:
    def make() -> Attempt:
        meeting, first, second = new(), Told(), Told()
        manager = gc.CancellationManager()
        meeting.recv_async(KEY, gc.RendezvousArgs(cancellation_manager=manager), first.done)
        meeting.recv_async(KEY, None, second.done)

        def look() -> None:
            assert first.answers == ["CancelledError"]
            meeting.send(KEY, None, 8)
            assert second.answers == [8]

        return manager.start_cancel, look

    check(make)


def test_an_abort_tells_the_others_when_one_who_waits_fails() -> None:
    meeting, told = new(), Told()

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    meeting.recv_async(KEY, None, fail)
    meeting.recv_async(KEY, None, told.done)
    with pytest.raises(ZeroDivisionError):
        meeting.start_abort(AbortedError("over"))
    assert told.answers == ["AbortedError"]


def test_closing_a_session_that_was_interrupted_tells_who_waits() -> None:
    def make() -> Attempt:
        session, told = gc.Session(graph=gc.Graph()), Told()
        kept.append(session.rendezvous)
        session.rendezvous.recv_async(KEY, None, told.done)

        def look() -> None:
            session.close()
            assert told.answers == ["CancelledError"]

        return session.close, look

    assert interrupted_everywhere(make, ("runtime/meeting.py", "runtime/session.py")) > 30
