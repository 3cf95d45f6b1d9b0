"""Forks: `os.fork`, and processes of multiprocessing with the start method "fork".

A lock that another thread holds during a fork would stay held in the child for ever. Before a fork, the forking thread takes every lock made
here, so that the child gets whole objects and free locks. A thread that keeps a lock for
longer than `PATIENCE` does not hold up the fork: what it was changing cannot be used in the child.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Final

PATIENCE: Final = 10.0
"""Seconds that a fork waits for other threads."""

_locks: Final[set[weakref.ref[Any]]] = set()  # not a WeakSet: a list of it can be made while other threads add to it
_taken: Final[list[Any]] = []


def new_lock() -> threading.Lock:
    """Make a lock that no child of a fork finds held."""
    lock = threading.Lock()
    _locks.add(weakref.ref(lock, _locks.discard))
    return lock


def new_rlock() -> threading.RLock:
    """Make a reentrant lock that no child of a fork finds held."""
    lock = threading.RLock()
    _locks.add(weakref.ref(lock, _locks.discard))
    return lock


def call_in_child(function: Callable[[], object]) -> None:
    """Call `function` in each child of a fork, once the locks are free again."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


def _take_all() -> None:
    """Take all locks. While this thread waits for one, it holds no other, since the thread that has it may wait for those."""
    until = time.monotonic() + PATIENCE
    locks = {lock for reference in list(_locks) if (lock := reference()) is not None}
    busy = _take(locks)
    while busy is not None:
        _release()
        if busy.acquire(timeout=max(0.0, until - time.monotonic())):
            _taken.append(busy)
            busy = _take(locks - {busy})
        else:
            locks.remove(busy)
            busy = _take(locks)


def _take(locks: Iterable[Any]) -> Any:
    """Take `locks` without waiting, and return the first that is not free, else None."""
    for lock in locks:
        if not lock.acquire(blocking=False):
            return lock
        _taken.append(lock)
    return None


def _release() -> None:
    while _taken:
        _taken.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take_all, after_in_parent=_release, after_in_child=_release)
