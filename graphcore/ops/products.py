"""Products of matrices that do not wait for other threads."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np

from graphcore.registry import Kernel

ONE_THREAD: Final = 1 << 18
"""OpenBLAS computes products of at most so many multiplications in the calling thread."""
_MIDDLING: Final = (10**6, 1 << 21)
"""Products of so many multiplications gain nothing from a second thread; smaller ones OpenBLAS gives none on most servers."""
_SHORTEST: Final = 8
"""Parts of fewer rows or columns are computed slowly."""
_REMEMBERED: Final = 512


def product(xp: Any, a: Any, b: Any) -> Any:
    """a: [m, k]  b: [k, n] -> [m, n]."""
    in_parts = without_waiting(*a.shape, b.shape[1]) if xp is np and a.dtype.kind == "f" else None
    return xp.dot(a, b) if in_parts is None else in_parts(a, b)


@lru_cache(_REMEMBERED)
def without_waiting(m: int, depth: int, n: int) -> Kernel | None:
    """The product of matrices [m, depth] and [depth, n] in parts that BLAS computes in the calling thread; None where that has no use.

    A second thread gains a middling product nothing, and where another program has the core that it needs, the product waits for it:
    milliseconds instead of microseconds.
    """
    size = m * depth * n
    most = min(ONE_THREAD // max(1, depth * min(m, n)), max(m, n))
    if not _MIDDLING[0] < size <= _MIDDLING[1] or most < _SHORTEST:
        return None
    count = -(-max(m, n) // most)
    parts = [slice(max(m, n) * i // count, max(m, n) * (i + 1) // count) for i in range(count)]
    matmul, empty = np.matmul, np.empty
    if m > n:

        def by_rows(a: Any, b: Any) -> Any:
            y = empty((m, n), a.dtype)
            for part in parts:
                matmul(a[part], b, y[part])
            return y

        return by_rows

    def by_columns(a: Any, b: Any) -> Any:
        y = empty((m, n), a.dtype)
        for part in parts:
            matmul(a, b[:, part], y[:, part])
        return y

    return by_columns
