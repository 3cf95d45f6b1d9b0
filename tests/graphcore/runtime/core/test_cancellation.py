"""Cancellation: once, of everything, in order, across threads."""

from __future__ import annotations

import threading

import pytest

import graphcore as gc
from graphcore.errors import CancelledError, InvalidArgumentError


def test_callbacks_are_called_once_in_the_order_of_their_tokens() -> None:
    manager, called = gc.CancellationManager(), list[int]()
    tokens = [manager.get_cancellation_token() for _ in range(3)]
    for token in reversed(tokens):
        assert manager.register_callback(token, lambda token=token: called.append(token))  # type: ignore[misc]  # mypy uses the default for an argument
    manager.start_cancel()
    manager.start_cancel()
    assert called == tokens
    assert manager.is_cancelled()
    assert not manager.is_cancelling()


def test_a_deregistered_callback_is_not_called() -> None:
    manager, called = gc.CancellationManager(), list[str]()
    for forget in (manager.deregister_callback, manager.try_deregister_callback):
        token = manager.get_cancellation_token()
        manager.register_callback(token, lambda: called.append("called"))
        assert forget(token)
    manager.start_cancel()
    assert not called


def test_a_cancelled_manager_registers_nothing() -> None:
    manager = gc.CancellationManager()
    token = manager.get_cancellation_token()
    manager.start_cancel()
    assert not manager.register_callback(token, lambda: None)
    assert not manager.deregister_callback(token)
    assert not manager.try_deregister_callback(token)


def test_deregistering_waits_for_a_cancellation_under_way_and_trying_does_not() -> None:
    manager, entered, leave = gc.CancellationManager(), threading.Event(), threading.Event()
    token = manager.get_cancellation_token()

    def callback() -> None:
        entered.set()
        leave.wait(10)

    manager.register_callback(token, callback)
    canceller = threading.Thread(target=manager.start_cancel)
    canceller.start()
    entered.wait(10)
    assert manager.is_cancelling()
    assert not manager.is_cancelled()
    assert not manager.try_deregister_callback(token)
    threading.Timer(0.02, leave.set).start()
    assert not manager.deregister_callback(token)
    assert manager.is_cancelled()
    canceller.join()


def test_a_callback_may_deregister_itself_without_waiting_for_its_own_end() -> None:
    manager, answers = gc.CancellationManager(), list[bool]()
    token = manager.get_cancellation_token()
    manager.register_callback(token, lambda: answers.append(manager.deregister_callback(token)))
    manager.start_cancel()
    assert answers == [False]


def test_cancelling_a_parent_cancels_its_children_and_not_the_other_way_round() -> None:
    parent = gc.CancellationManager()
    child, sibling = gc.CancellationManager(parent), gc.CancellationManager(parent)
    child.start_cancel()
    assert not parent.is_cancelled()
    parent.start_cancel()
    assert sibling.is_cancelled()
    assert gc.CancellationManager(parent).is_cancelled()


def test_a_callback_that_fails_does_not_keep_the_others_from_being_called() -> None:
    manager, called = gc.CancellationManager(), list[str]()

    def fails() -> None:
        raise ValueError("mine")

    for callback in (fails, lambda: called.append("called")):
        manager.register_callback(manager.get_cancellation_token(), callback)
    with pytest.raises(ValueError, match="mine"):
        manager.start_cancel()
    assert called == ["called"]
    assert manager.is_cancelled()


def test_a_token_that_was_never_given_out_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="got 0; 0 were given out"):
        gc.CancellationManager().register_callback(0, lambda: None)


def test_check_stops_what_was_cancelled() -> None:
    manager = gc.CancellationManager()
    manager.check()
    manager.start_cancel()
    with pytest.raises(CancelledError):
        manager.check()


def test_ctrl_c_in_a_callback_stops_neither_other_callbacks_nor_waiting_threads() -> None:
    manager, called = gc.CancellationManager(), list[int]()

    def press() -> None:
        raise KeyboardInterrupt

    first, second = manager.get_cancellation_token(), manager.get_cancellation_token()
    manager.register_callback(first, press)
    manager.register_callback(second, lambda: called.append(2))
    with pytest.raises(KeyboardInterrupt):
        manager.start_cancel()
    assert called == [2]
    assert manager.is_cancelled()
    assert not manager.deregister_callback(first)  # would wait for ever for a cancellation that does not end
