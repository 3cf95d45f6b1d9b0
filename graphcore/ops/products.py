"""Products of matrices that wait neither for other threads nor for other programs.

A large product is computed in parts, of rows or columns, by the thread that wants it and by idle ones of the pool: whoever is free takes
the next part. What the parts are depends on the sizes alone, and so do the results, to the last bit; who computes them does not matter.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from graphcore.ops.blas import enter, leave, one_thread, products_under_way, threads_for_parts
from graphcore.pool import kernel_pool
from graphcore.registry import Kernel

ONE_THREAD: Final = 1 << 18
"""OpenBLAS computes products of at most so many multiplications in the calling thread."""
_TWO_THREADS: Final = 2 * ONE_THREAD
"""From so many on it uses two threads or more."""
_VECTORS: Final = 1 << 15
"""Of a matrix and a vector from so many on; from 9,216 to be exact, but then telling it to use one takes as long as the product."""
_MIDDLING: Final = (10**6, 1 << 21)
"""Products of so many multiplications gain nothing from a second thread; smaller ones OpenBLAS gives none on most servers."""
_PART: Final = 6_000_000
"""So many multiplications a part must have at least to be worth a thread: they take some 150 microseconds, and handing it over 30."""
_AHEAD: Final = 4_000_000
"""So many multiplications more are in the part of the thread that begins, while others wake up: some 80 microseconds."""
_LONG: Final = 1 << 32
"""Nor more than so many, which take some 100 milliseconds: Ctrl-C is heard between parts."""
_SHORTEST: Final = 8
"""Parts of fewer rows or columns are computed slowly."""
_ROUND: Final = 8
"""Parts are of multiples of so many rows or columns: so many BLAS computes at once."""
_REMEMBERED: Final = 512

Way = Callable[[Any, Any, Any], Any]
"""A way to compute a product: two matrices, and where it goes; both matrices are of the sizes that the way is for."""


def product(xp: Any, a: Any, b: Any, out: Any = None) -> Any:
    """a: [m, k]  b: [k, n] -> [m, n], written into `out` if that is given."""
    way = way_for(*a.shape, b.shape[1]) if xp is np and a.dtype.kind in "fc" else None
    if way is not None:
        return way(a, b, np.empty((a.shape[0], b.shape[1]), a.dtype) if out is None else out)
    return xp.dot(a, b, out)


def batch_product(xp: Any, x: Any, y: Any) -> Any:
    """x: [..., m, k]  y: [..., k, n] -> [..., m, n]; the dimensions before the last two broadcast."""
    if xp is not np or x.dtype.kind not in "fc" or x.ndim < 2 or y.ndim < 2:
        return xp.matmul(x, y)
    (m, depth), n = x.shape[-2:], y.shape[-1]
    if m * depth * n <= (_TWO_THREADS if min(m, n) > 1 else _VECTORS):
        return np.matmul(x, y)
    if x.ndim == y.ndim == 2:
        return product(xp, x, y)
    count = threads_for_parts()
    if x.ndim != y.ndim or x.shape[0] != y.shape[0] or x.shape[0] < 2 or count < 2:
        with one_thread():
            return np.matmul(x, y)
    result = np.empty((*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), m, n), np.result_type(x, y))
    parts = _cut(x.shape[0], min(count, x.shape[0]))
    share(lambda part: np.matmul(x[part], y[part], result[part]), parts, count)
    return result


def kernel_for(m: int, depth: int, n: int) -> Kernel | None:
    """The product of matrices [m, depth] and [depth, n] in parts; None where that has no use."""
    way, empty = way_for(m, depth, n), np.empty
    return None if way is None else lambda a, b: way(a, b, empty((m, n), a.dtype))


@lru_cache(_REMEMBERED)
def way_for(m: int, depth: int, n: int) -> Way | None:
    """How to compute the product of matrices [m, depth] and [depth, n]; None to call BLAS once, as it is."""
    size = m * depth * n
    if size <= (_TWO_THREADS if min(m, n) > 1 else _VECTORS):
        return None
    return _shared(m, depth, n) if threads_for_parts() else _in_small_parts(m, depth, n)


def _in_small_parts(m: int, depth: int, n: int) -> Way | None:
    """A second thread gains a middling product nothing: BLAS computes its parts, which are small, in the calling thread."""
    size = m * depth * n
    most = min(ONE_THREAD // max(1, depth * min(m, n)), max(m, n))
    if not _MIDDLING[0] < size <= _MIDDLING[1] or most < _SHORTEST:
        return None
    longer = max(m, n)
    by_part = _by_rows if m > n else _by_columns
    parts = _cut(longer, -(-longer // most))

    def in_parts(a: Any, b: Any, out: Any) -> Any:
        for part in parts:
            by_part(a, b, out, part)
        return out

    return in_parts


def _shared(m: int, depth: int, n: int) -> Way:
    """By as many threads as it pays; BLAS uses one in each."""
    count = threads_for_parts()
    by_part = _by_rows if m >= n else _by_columns
    size = m * depth * n
    parts = _cut(max(m, n), min(count * -(-size // (count * _LONG)), size // _PART), _ROUND, max(m, n) * _AHEAD // size)
    if len(parts) < 2:

        def whole(a: Any, b: Any, out: Any) -> Any:
            token = object()
            try:
                enter(token)
                return np.matmul(a, b, out)
            finally:
                leave(token)

        return whole

    def shared(a: Any, b: Any, out: Any) -> Any:
        share(lambda part: by_part(a, b, out, part), parts, count)
        return out

    return shared


def _by_rows(a: Any, b: Any, out: Any, part: slice) -> None:
    np.matmul(a[part], b, out[part])


def _by_columns(a: Any, b: Any, out: Any, part: slice) -> None:
    np.matmul(a, b[:, part], out[:, part])


def _cut(length: int, count: int, multiple: int = 1, ahead: int = 0) -> list[slice]:
    """`length` in `count` parts, or fewer, about equal but that the first is by `ahead` longer; they begin at multiples of `multiple`."""
    half = multiple // 2
    bounds = [(ahead + (length - ahead) * i // count + half) // multiple * multiple for i in range(1, count)]
    bounds = [*dict.fromkeys([0, *bounds]), length]
    return [slice(first, last) for first, last in itertools.pairwise(bounds)]


def share(compute: Callable[[slice], object], parts: Sequence[slice], threads: int) -> None:
    """Compute all parts, in this thread and, unless other products are under way there, in others; BLAS uses one thread for each.

    Raises:
        BaseException: what computing a part raised.
    """
    _Shared(compute, parts).run(min(len(parts), threads - products_under_way()) - 1)


class _Shared:
    """Parts that several threads compute: each takes the next that nobody has."""

    __slots__ = ("_all_done", "_compute", "_error", "_left", "_lock", "_parts")

    def __init__(self, compute: Callable[[slice], object], parts: Sequence[slice]) -> None:
        self._compute = compute
        self._parts = list(reversed(parts))
        self._left = len(parts)
        self._lock = threading.Lock()
        self._all_done = threading.Lock()
        self._all_done.acquire()
        self._error: BaseException | None = None

    def run(self, helpers: int) -> None:
        for _ in range(helpers):  # first of all: they take a while to wake up
            kernel_pool.call(self._work)
        self._work()
        if self._error is None:
            self._all_done.acquire()  # what others have begun
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        token = object()
        try:
            enter(token)
            while self._parts:
                self._take()
        finally:
            leave(token)

    def _take(self) -> None:
        """Compute the next part."""
        try:
            part = self._parts.pop()
        except IndexError:  # others were quicker
            return
        try:
            self._compute(part)
        except BaseException as error:  # noqa: BLE001 - who wants the product gets it
            self._error = error
            self._parts.clear()
        with self._lock:
            self._left -= 1
            if (self._left == 0 or self._error is not None) and self._all_done.locked():
                self._all_done.release()
