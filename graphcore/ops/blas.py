"""How many threads BLAS uses for the products that are under way: all of its own, or one for each.

OpenBLAS's own threads are awake when the next product comes, which makes them best for one that is alone. But
they serve one product at a time and spin while they wait for each other, so that products at once take longer than one after another;
and the last bits of what they give may depend on how many they are. So products at once use one thread each, where
`graphcore.ops.products` knows how to get the same bits from it.

How many BLAS uses is one number for the whole process, which a product looks at when it begins: so products of the two kinds take turns.
Where threads go on having products of one thread, that number is left at one until they stop, and nobody has to tell when one begins and
ends: what it costs to tell is little, but it is spent while Python runs for nobody else, and the other threads queue up behind it.
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

from graphcore.pool import Pool, blas_threads, core_count

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
_SETTLED: Final = object()
"""Is under way, for one thread, as long as the crowd is settled."""
_having: Final[set[int]] = set()
"""The threads that have had products in a crowd since somebody looked."""
_whole: Final = [False]
"""Whether there was one for all threads since somebody looked."""
_watched: Final = [False]
_watcher: Final = Pool(1)


def threads_of_blas() -> int:
    """How many threads BLAS uses by itself; 0 where it cannot be told to use one."""
    return 0 if _setting() is None else min(core_count(), blas_threads())


def products_under_way() -> int:
    """How many threads are known to compute products now; those of a settled crowd do not tell."""
    return len(_under_way[0]) + len(_under_way[1]) - is_settled()


def is_crowded() -> bool:
    """Whether other threads compute products now, or did a moment ago while another was under way."""
    now = time.monotonic()
    if _under_way[0] or _under_way[1]:
        _crowded_until[0] = now + _AGAIN
    return now < _crowded_until[0]


def is_settled() -> bool:
    """Whether BLAS uses one thread until a crowd is over: a product that may use one or all need not enter.

    It may find that BLAS uses all threads nevertheless, because one has come that needs them.
    """
    return _SETTLED in _under_way[0]


def join_crowd() -> None:
    """This thread has a product that may use one thread or all: if others go on having such too, the crowd will settle."""
    _having.add(threading.get_ident())
    if not _watched[0]:
        _watched[0] = True
        try:
            _watcher.submit(_watch)
        except BaseException:
            _watched[0] = False
            raise


def _watch() -> None:
    """Look every now and then whether several threads had products, and only such as may use one thread."""
    try:
        while True:
            _having.clear()
            _whole[0] = False
            time.sleep(_AGAIN)
            if len(_having) < 2:
                return
            with _lock:
                if not (_whole[0] or _under_way[1] or _waiting[1] or is_settled()):
                    _add(_SETTLED, all_threads=False)
    finally:
        _watched[0] = False
        leave(_SETTLED)


def enter(token: object, *, all_threads: bool = False) -> None:
    """A product begins for which BLAS uses one thread, or `all_threads`, until `token` leaves; waits for those of the other kind.

    Tokens rather than a number: who was interrupted while coming in may leave all the same.
    """
    others, others_wait = _under_way[not all_threads], _waiting[not all_threads]
    _setting()  # what it imports the first time is not for others to wait for
    with _lock:
        if all_threads:
            _whole[0] = True
            _discard(_SETTLED)
        if others or (others_wait and _latest[0] == all_threads):
            try:
                _waiting[all_threads].add(token)
                while others or (others_wait and _latest[0] == all_threads):
                    _changed.wait()
            finally:
                _waiting[all_threads].discard(token)
                _changed.notify_all()
        _add(token, all_threads=all_threads)


def leave(token: object) -> None:
    """What was entered with `token`, if it was, is done."""
    with _lock:
        _discard(token)
        if _waiting[0] or _waiting[1]:
            _changed.notify_all()


def _add(token: object, *, all_threads: bool) -> None:
    _under_way[all_threads].add(token)
    _latest[0] = all_threads
    setting = None if all_threads or _before else _setting()
    if setting is not None:
        count, set_count = setting
        _before.append(count())
        set_count(1)


def _discard(token: object) -> None:
    of_one, of_all = _under_way
    of_one.discard(token)
    of_all.discard(token)
    if _before and not of_one:
        setting = _setting()
        assert setting is not None
        setting[1](_before.pop())


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
