"""Calls into another interpreter."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest

from tests.support.remote import Remote, RemoteError


@pytest.fixture(scope="module")
def remote() -> Iterator[Remote]:
    with Remote() as started:
        yield started


def test_a_call_runs_in_another_process_that_stays_alive(remote: Remote) -> None:
    first, second = remote.call("os:getpid"), remote.call("os:getpid")
    assert first == second != os.getpid()


def test_arrays_travel_both_ways(remote: Remote) -> None:
    doubled = remote.call("numpy:add", np.arange(4.0), np.arange(4.0))
    assert doubled.tolist() == [0, 2, 4, 6]


def test_what_the_function_prints_does_not_disturb_its_answer(remote: Remote) -> None:
    assert remote.call("builtins:print", "noise") is None
    assert remote.call("builtins:len", "abc") == 3


def test_an_error_arrives_with_its_class_and_text_and_the_next_call_works(remote: Remote) -> None:
    with pytest.raises(RemoteError, match="invalid literal") as caught:
        remote.call("builtins:int", "seven")
    assert caught.value.kind == "ValueError"
    assert remote.call("builtins:int", "7") == 7


def test_an_interpreter_that_ends_is_reported() -> None:
    with Remote() as remote, pytest.raises(EOFError):
        remote.call("os:_exit", 0)
