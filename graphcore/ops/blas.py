"""How many threads BLAS uses for the products that are under way: all of its own, or one for each.

OpenBLAS's own threads are awake when the next product comes, which makes them best for one that is alone. But
they serve one product at a time and spin while they wait for each other, so that products at once take longer than one after another;
and the last bits of what they give may depend on how many they are. So products at once use one thread each, where
`graphcore.ops.products` knows how to get the same bits from it.

How many BLAS uses is one number for the whole process, which a product looks at when it begins: so products of the two kinds take turns.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import product
from pathlib import Path
from typing import Final

from graphcore.pool import blas_threads, core_count

_SYMBOLS: Final = tuple(product(("", "scipy_"), ("", "64_", "_64")))
"""What builds of OpenBLAS put before and after the names of its functions."""
_Setting = tuple[Callable[[], int], Callable[[int], None]]
_AGAIN: Final = 0.005
"""Threads that had products at once will, for so many seconds, have them again."""

_lock: Final = threading.Lock()
_changed: Final = threading.Condition(_lock)
_under_way: Final[tuple[set[object], set[object]]] = (set(), set())
"""Products for which BLAS uses one thread, and those for which it uses all."""
_waiting: Final[tuple[set[object], set[object]]] = (set(), set())
_latest: Final = [False]
"""Whether what was entered last was for all threads: when others wait, it is their turn."""
_before: Final[list[int]] = []
_crowded_until: Final = [0.0]


def threads_of_blas() -> int:
    """How many threads BLAS uses by itself; 0 where it cannot be told to use one."""
    return 0 if _setting() is None else min(core_count(), blas_threads())


def products_under_way() -> int:
    """How many threads compute products now."""
    return len(_under_way[0]) + len(_under_way[1])


def is_crowded() -> bool:
    """Whether other threads compute products now, or did a moment ago while another was under way."""
    now = time.monotonic()
    if _under_way[0] or _under_way[1]:
        _crowded_until[0] = now + _AGAIN
    return now < _crowded_until[0]


def enter(token: object, *, all_threads: bool = False) -> None:
    """A product begins for which BLAS uses one thread, or `all_threads`, until `token` leaves; waits for those of the other kind.

    Tokens rather than a number: who was interrupted while coming in may leave all the same.
    """
    mine, others, others_wait = _under_way[all_threads], _under_way[not all_threads], _waiting[not all_threads]
    setting = None if all_threads else _setting()
    with _lock:
        if others or (others_wait and _latest[0] == all_threads):
            try:
                _waiting[all_threads].add(token)
                while others or (others_wait and _latest[0] == all_threads):
                    _changed.wait()
            finally:
                _waiting[all_threads].discard(token)
                _changed.notify_all()
        mine.add(token)
        _latest[0] = all_threads
        if setting is not None and not _before:
            count, set_count = setting
            _before.append(count())
            set_count(1)


def leave(token: object) -> None:
    """What was entered with `token`, if it was, is done."""
    with _lock:
        of_one, of_all = _under_way
        of_one.discard(token)
        of_all.discard(token)
        if _before and not of_one:
            setting = _setting()
            assert setting is not None
            setting[1](_before.pop())
        if _waiting[0] or _waiting[1]:
            _changed.notify_all()


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS uses one thread within the block, in the whole process."""
    token = object()
    try:
        enter(token)
        yield
    finally:
        leave(token)


@contextmanager
def all_threads() -> Iterator[None]:
    """BLAS uses as many threads as it would by itself within the block, in the whole process."""
    token = object()
    try:
        enter(token, all_threads=True)
        yield
    finally:
        leave(token)


@cache
def _setting() -> _Setting | None:
    """Functions that tell and set how many threads NumPy's OpenBLAS uses; None for other libraries, whose threads do not spin."""
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415 - it takes some time, and only large products need it

    found = [info for info in ThreadpoolController().info() if info["internal_api"] == "openblas" and info["threading_layer"] == "pthreads"]
    found.sort(key=lambda info: "numpy" not in Path(info["filepath"]).parent.name)
    if not found:
        return None
    # Not ctypes.CDLL: that gives Python's lock away, and many threads would wait for it again.
    library = ctypes.PyDLL(found[0]["filepath"])
    for before, after in _SYMBOLS:
        if hasattr(library, f"{before}openblas_set_num_threads{after}"):
            return library[f"{before}openblas_get_num_threads{after}"], library[f"{before}openblas_set_num_threads{after}"]
    return None
