"""The rendezvous: keys, order, deadness, cancelling, aborting, deleting, timeouts (rules RV)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import graphcore as gc
from graphcore.errors import AbortedError, CancelledError, DeadlineExceededError, GraphError, InternalError, InvalidArgumentError

SRC = "/job:mnist/replica:1/task:2/CPU:0"
DST = "/job:mnist/replica:1/task:2/device:GPU:0"
KEY = gc.create_key("/job:a/replica:0/task:0/cpu:0", 1, "/job:a/replica:0/task:0/gpu:0", "x", (0, 0))


class Outcomes:
    """The results of asynchronous receives, in order."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.statuses: list[GraphError | None] = []
        self.sender_args: list[gc.RendezvousArgs] = []

    def done(self, status: GraphError | None, sent: gc.RendezvousArgs, _own: gc.RendezvousArgs, value: Any, _dead: bool) -> None:
        self.statuses.append(status)
        self.sender_args.append(sent)
        self.values.append(value if status is None else type(status).__name__)


def test_rv_key_a_key_is_five_parts_with_the_incarnation_in_sixteen_hex_digits() -> None:
    expected = "/job:mnist/replica:1/task:2/CPU:0;0000000000001ed2;/job:mnist/replica:1/task:2/device:GPU:0;var0;0:0"
    assert gc.create_key(SRC, 7890, DST, "var0", (0, 0)) == expected
    assert gc.create_key("/device:CPU:0", 1, "/device:CPU:1", "a:0") == "/device:CPU:0;0000000000000001;/device:CPU:1;a:0;0:0"


def test_rv_key_a_parsed_key_says_devices_incarnation_and_edge_name() -> None:
    text = gc.create_key("/job:mnist/replica:1/task:2/cpu:0", 7890, DST, "var0", (3, 9))
    key = gc.parse_key(text)
    assert (key.full_key, str(key)) == (text, text)
    assert key.src == gc.DeviceSpec("mnist", 1, 2, "CPU", 0)
    assert key.dst == gc.DeviceSpec("mnist", 1, 2, "GPU", 0)
    assert (key.src_device, key.dst_device) == ("/job:mnist/replica:1/task:2/cpu:0", DST)
    assert (key.src_incarnation, key.edge_name, key.frame_iter) == (7890, "var0", "3:9")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/device:CPU:0",
        "/device:CPU:0;1;/device:GPU:0;x",
        "/device:CPU:0;1;/device:GPU:0;x;0:0;",
        "/device:CPU:0;1;/device:GPU:0;x;0:0;more",
        "/device:CPU:0;1;/device:GPU:0;;0:0",
        "/device:CPU:0;1;/device:GPU:0;x;",
        ";1;/device:GPU:0;x;0:0",
        "/device:CPU:0;;/device:GPU:0;x;0:0",
        "/device:CPU:0;xyz;/device:GPU:0;x;0:0",
        "/device:CPU:0;00000000000000001;/device:GPU:0;x;0:0",
        "cpu0;1;/device:GPU:0;x;0:0",
        "/device:CPU:0;1;somewhere;x;0:0",
    ],
)
def test_rv_key_anything_but_five_parts_that_parse_is_refused_with_the_key_itself(text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        gc.parse_key(text)
    assert caught.value.message == f"Invalid  rendezvous key: {text}"


def test_rv_a_send_never_waits_and_values_of_a_key_arrive_in_their_order() -> None:
    rendezvous = gc.Rendezvous()
    for value in ("a", "b", "c"):
        rendezvous.send(KEY, None, value)
    assert [rendezvous.recv(gc.parse_key(KEY)).value for _ in range(3)] == ["a", "b", "c"]


def test_rv_waiting_receives_are_served_in_their_order() -> None:
    rendezvous, outcomes = gc.Rendezvous(), [Outcomes() for _ in range(3)]
    for outcome in outcomes:
        rendezvous.recv_async(KEY, None, outcome.done)
    for value in (1, 2, 3):
        rendezvous.send(KEY, None, value)
    assert [outcome.values for outcome in outcomes] == [[1], [2], [3]]


def test_rv_keys_do_not_know_of_each_other() -> None:
    rendezvous = gc.Rendezvous()
    other = gc.create_key("/device:CPU:0", 1, "/device:CPU:1", "y")
    rendezvous.send(KEY, None, "x")
    rendezvous.send(other, None, "y")
    assert (rendezvous.recv(other).value, rendezvous.recv(KEY).value) == ("y", "x")


def test_rv_a_receive_waits_for_its_send_in_another_thread() -> None:
    rendezvous = gc.Rendezvous()
    sender = threading.Timer(0.02, rendezvous.send, (KEY, None, "hello"))
    sender.start()
    assert rendezvous.recv(KEY, timeout=10) == ("hello", False)
    sender.join()


def test_rv_deadness_travels_with_the_value() -> None:
    rendezvous = gc.Rendezvous()
    rendezvous.send(KEY, None, None, is_dead=True)
    assert rendezvous.recv(KEY) == (None, True)


@pytest.mark.parametrize("receive_first", [True, False])
def test_rv_the_receiver_gets_the_arguments_of_the_sender(receive_first: bool) -> None:
    rendezvous, outcome = gc.Rendezvous(), Outcomes()
    steps: list[Callable[[], None]] = [
        lambda: rendezvous.send(KEY, gc.RendezvousArgs(device_context="stream 7"), 1),
        lambda: rendezvous.recv_async(KEY, gc.RendezvousArgs(device_context="mine"), outcome.done),
    ]
    for step in reversed(steps) if receive_first else steps:
        step()
    assert [args.device_context for args in outcome.sender_args] == ["stream 7"]


def test_rv_cancelling_ends_a_receive_that_waits() -> None:
    rendezvous, manager = gc.Rendezvous(), gc.CancellationManager()
    canceller = threading.Timer(0.02, manager.start_cancel)
    canceller.start()
    with pytest.raises(CancelledError) as caught:
        rendezvous.recv(KEY, gc.RendezvousArgs(cancellation_manager=manager), timeout=10)
    assert caught.value.message == "[_Derived_]RecvAsync is cancelled."
    canceller.join()


def test_rv_a_receive_that_would_wait_under_a_cancelled_manager_ends_at_once() -> None:
    rendezvous, manager = gc.Rendezvous(), gc.CancellationManager()
    manager.start_cancel()
    with pytest.raises(CancelledError, match=r"^\[_Derived_\]RecvAsync is cancelled\.$"):
        rendezvous.recv(KEY, gc.RendezvousArgs(cancellation_manager=manager))


def test_rv_a_value_that_is_there_is_delivered_whatever_was_cancelled() -> None:
    rendezvous, manager = gc.Rendezvous(), gc.CancellationManager()
    manager.start_cancel()
    rendezvous.send(KEY, None, 5)
    assert rendezvous.recv(KEY, gc.RendezvousArgs(cancellation_manager=manager)) == (5, False)


def test_rv_cancelling_after_delivery_does_nothing() -> None:
    rendezvous, manager, outcome = gc.Rendezvous(), gc.CancellationManager(), Outcomes()
    rendezvous.recv_async(KEY, gc.RendezvousArgs(cancellation_manager=manager), outcome.done)
    rendezvous.send(KEY, None, 5)
    manager.start_cancel()
    assert outcome.values == [5]


def test_rv_four_receives_of_which_two_are_cancelled_leave_the_other_two_to_be_served_in_order() -> None:
    rendezvous, manager = gc.Rendezvous(), gc.CancellationManager()
    outcomes = [Outcomes() for _ in range(4)]
    for i, outcome in enumerate(outcomes):
        rendezvous.recv_async(KEY, gc.RendezvousArgs(cancellation_manager=manager if i % 2 else None), outcome.done)
    manager.start_cancel()
    assert [outcome.values for outcome in outcomes] == [[], ["CancelledError"], [], ["CancelledError"]]
    rendezvous.send(KEY, None, "hello")
    rendezvous.send(KEY, None, "world")
    assert [outcome.values for outcome in outcomes] == [["hello"], ["CancelledError"], ["world"], ["CancelledError"]]


def test_rv_the_first_abort_wins_and_later_sends_and_receives_fail_with_it() -> None:
    rendezvous, waiting, later = gc.Rendezvous(), Outcomes(), Outcomes()
    other = gc.create_key("/device:CPU:0", 1, "/device:CPU:1", "y")
    rendezvous.recv_async(KEY, None, waiting.done)
    rendezvous.send(other, None, "dropped")
    rendezvous.start_abort(AbortedError("first"))
    rendezvous.start_abort(InternalError("second"))
    assert [str(status) for status in waiting.statuses] == ["first"]
    for call in (lambda: rendezvous.send(KEY, None, 1), lambda: rendezvous.recv(other)):
        with pytest.raises(AbortedError, match=r"^first$"):
            call()
    rendezvous.recv_async(other, None, later.done)
    assert [str(status) for status in later.statuses] == ["first"]


def test_rv_abort_reaches_a_thread_that_waits() -> None:
    rendezvous = gc.Rendezvous()
    aborter = threading.Timer(0.02, rendezvous.start_abort, (AbortedError("stop"),))
    aborter.start()
    with pytest.raises(AbortedError, match=r"^stop$"):
        rendezvous.recv(KEY, timeout=10)
    aborter.join()


@pytest.mark.parametrize("cancellable", [True, False])
def test_rv_deleting_a_rendezvous_notifies_receivers(cancellable: bool) -> None:
    rendezvous, outcome, manager = gc.Rendezvous(), Outcomes(), gc.CancellationManager()
    rendezvous.recv_async(KEY, gc.RendezvousArgs(cancellation_manager=manager if cancellable else None), outcome.done)
    del rendezvous
    (status,) = outcome.statuses
    assert isinstance(status, CancelledError)
    assert status.message == "LocalRendezvous deleted"
    manager.start_cancel()
    assert len(outcome.statuses) == 1


def test_rv_a_receive_that_waits_too_long_fails_and_takes_nothing_that_comes_later() -> None:
    rendezvous, manager = gc.Rendezvous(), gc.CancellationManager()
    with pytest.raises(DeadlineExceededError, match=r"^Timed out waiting for notification$"):
        rendezvous.recv(KEY, gc.RendezvousArgs(cancellation_manager=manager), timeout=0.01)
    rendezvous.send(KEY, None, "late")
    assert rendezvous.recv(KEY) == ("late", False)
    manager.start_cancel()


def test_rv_many_threads_lose_no_value_and_get_none_twice() -> None:
    rendezvous, count, workers = gc.Rendezvous(), 200, 4
    got: list[list[int]] = [[] for _ in range(workers)]

    def send(first: int) -> None:
        for i in range(count):
            rendezvous.send(KEY, None, first + i)

    def receive(into: list[int]) -> None:
        into.extend(rendezvous.recv(KEY, timeout=30).value for _ in range(count))

    threads = [threading.Thread(target=send, args=(i * count,)) for i in range(workers)]
    threads += [threading.Thread(target=receive, args=(into,)) for into in got]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(value for into in got for value in into) == list(range(workers * count))


def test_rv_cancelling_while_values_arrive_ends_each_receive_exactly_once() -> None:
    for _ in range(20):
        rendezvous, manager, outcome = gc.Rendezvous(), gc.CancellationManager(), Outcomes()
        for _ in range(50):
            rendezvous.recv_async(KEY, gc.RendezvousArgs(cancellation_manager=manager), outcome.done)
        canceller = threading.Thread(target=manager.start_cancel)
        canceller.start()
        for value in range(50):
            rendezvous.send(KEY, None, value)
        canceller.join()
        assert len(outcome.values) == 50
        delivered = [value for value in outcome.values if isinstance(value, int)]
        assert delivered == sorted(delivered)
