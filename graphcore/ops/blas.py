"""How many threads BLAS uses while a product of ours is under way: one.

OpenBLAS serves one product of several threads at a time. Its threads spin while they wait for each other, so that two products at once,
or another program on the same cores, make it many times slower; and the last bits of what it gives depend on how many they are. So
products are shared out by `graphcore.ops.products` instead, and what computes a part of one stays in its thread.
"""

from __future__ import annotations

import ctypes
import threading
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

_lock: Final = threading.Lock()
_under_way: Final[set[object]] = set()
_before: Final[list[int]] = []


def threads_for_parts() -> int:
    """How many threads parts of one product may be computed in; 0 where BLAS is left alone, as it cannot be told to use one."""
    return 0 if _setting() is None else min(core_count(), blas_threads())


def products_under_way() -> int:
    """How many threads compute products now."""
    return len(_under_way)


def enter(token: object) -> None:
    """BLAS uses one thread from now on, in the whole process, until all tokens that were entered have left.

    Tokens rather than a number: who was interrupted while coming in may leave all the same.
    """
    setting = _setting()
    with _lock:
        _under_way.add(token)
        if setting is not None and not _before:
            count, set_count = setting
            _before.append(count())
            set_count(1)


def leave(token: object) -> None:
    """What was entered with `token`, if it was, is done."""
    with _lock:
        _under_way.discard(token)
        if not _under_way and _before:
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
