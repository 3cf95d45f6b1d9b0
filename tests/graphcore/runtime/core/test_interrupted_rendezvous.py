"""Ctrl-C in a rendezvous: no value is lost or delivered twice, and receivers are notified."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import graphcore as gc
from graphcore.errors import AbortedError, GraphError

KEY = gc.create_key("/device:CPU:0", 1, "/device:CPU:1", "x", (0, 0))


class Receiver:
    """The callback of a receive; with `presses`, Ctrl-C is pressed meanwhile."""

    def __init__(self, *, presses: bool = False) -> None:
        self.answers: list[Any] = []
        self._presses = presses

    def done(self, status: GraphError | None, _sent: object, _own: object, value: Any, _dead: bool) -> None:
        if self._presses:
            signal.raise_signal(signal.SIGINT)
        self.answers.append(value if status is None else type(status).__name__)


def waiting(count: int, manager: gc.CancellationManager | None = None) -> tuple[gc.Rendezvous, list[Receiver]]:
    """A rendezvous with so many receivers; Ctrl-C is pressed when the first is notified."""
    rendezvous, receivers = gc.Rendezvous(), [Receiver(presses=not i) for i in range(count)]
    for each in receivers:
        rendezvous.recv_async(KEY, gc.RendezvousArgs(cancellation_manager=manager), each.done)
    return rendezvous, receivers


def test_ctrl_c_in_a_send_leaves_the_next_value_to_the_next_receiver() -> None:
    rendezvous, (first, second) = waiting(2)
    with pytest.raises(KeyboardInterrupt):
        rendezvous.send(KEY, None, 7)
    assert (first.answers, second.answers) == ([7], [])
    rendezvous.send(KEY, None, 8)
    assert (first.answers, second.answers) == ([7], [8])


@pytest.mark.parametrize("how", ["abort", "cancel", "close"])
def test_ctrl_c_in_an_abort_still_notifies_every_receiver(how: str) -> None:
    manager = gc.CancellationManager()
    rendezvous, receivers = waiting(3, manager)
    session = gc.Session(graph=gc.Graph())
    session.runner.rendezvous = rendezvous
    ends: dict[str, Callable[[], None]] = {
        "abort": lambda: rendezvous.start_abort(AbortedError("over")),
        "cancel": manager.start_cancel,
        "close": session.close,
    }
    with pytest.raises(KeyboardInterrupt):
        ends[how]()
    assert [each.answers for each in receivers] == [["AbortedError" if how == "abort" else "CancelledError"]] * 3


def test_ctrl_c_while_a_value_is_waited_for_leaves_it_to_the_next() -> None:
    rendezvous, main = gc.Rendezvous(), threading.main_thread().ident or 0

    def press() -> None:
        time.sleep(0.05)
        signal.pthread_kill(main, signal.SIGINT)

    for value in range(20):
        presser = threading.Thread(target=press)
        presser.start()
        with pytest.raises(KeyboardInterrupt):
            rendezvous.recv(KEY)
        presser.join()
        rendezvous.send(KEY, None, value)
        assert rendezvous.recv(KEY).value == value


def test_an_abort_notifies_the_other_receivers_when_one_fails() -> None:
    rendezvous, receivers = gc.Rendezvous(), Receiver()

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    rendezvous.recv_async(KEY, None, fail)
    rendezvous.recv_async(KEY, None, receivers.done)
    with pytest.raises(ZeroDivisionError):
        rendezvous.start_abort(AbortedError("over"))
    assert receivers.answers == ["AbortedError"]
