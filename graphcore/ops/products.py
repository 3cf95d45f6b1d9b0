"""Products of matrices: by all of BLAS's threads when alone, each by one when there are several at once, with the same result.

What a product gives never depends on what else runs, to the last bit: one thread computes it only where it is known to give what all of
them give. OpenBLAS adds up blocks of the depth, and how long they are depends on whether it has one thread; so a thread that is alone may
have to be given those blocks one by one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, Final

import numpy as np

from graphcore.ops.blas import all_threads, enter, is_crowded, is_settled, join_crowd, leave, one_thread, threads_of_blas

ONE_THREAD: Final = 1 << 18
"""OpenBLAS computes products of at most so many multiplications in the calling thread."""
_TWO_THREADS: Final = 2 * ONE_THREAD
"""From so many on it uses two threads or more."""
_VECTORS: Final = 1 << 15
"""Of a matrix and a vector from so many on; from 9,216 to be exact, but then telling it to use one takes as long as the product."""
_LARGE: Final = 1 << 30
"""Larger products are always computed by all threads, one after the other: trying whether one gives the same would take too long."""
_LONG: Final = 1 << 32
"""Nor more than so many at a time, which take some 100 milliseconds: Ctrl-C is heard in between."""
_BLOCKS: Final = (192, 224, 256, 320, 352, 384, 448, 512, 640, 768, 1024)
"""How deep the blocks of OpenBLAS may be; that depends on the processor and the type."""
_REMEMBERED: Final = 512
_found: Final[dict[Any, Sequence[int] | None]] = {}
_being_tried: Final[set[Any]] = set()
"""What has been found of kinds of products, and of which it is just being found out."""
_NOT_YET: Final = ()

Way = Callable[..., Any]
"""A way to compute a product: two matrices of the sizes that the way is for, and where it goes, if that is given."""


def product(xp: Any, a: Any, b: Any, out: Any = None) -> Any:
    """a: [m, k]  b: [k, n] -> [m, n], written into `out` if that is given."""
    way = way_for(*a.shape, b.shape[1]) if xp is np and a.dtype.kind in "fc" else None
    if way is not None:
        return way(a, b, out)
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
    result = np.empty((*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), m, n), np.result_type(x, y))
    if result.size * depth <= _LONG and not is_crowded():
        with all_threads():
            return np.matmul(x, y, result)
    for place in np.ndindex(result.shape[:-2]):
        product(xp, _at(x, place), _at(y, place), result[place])
    return result


def _at(batch: Any, place: tuple[int, ...]) -> Any:
    """The matrix at `place` of a batch that is broadcast."""
    own = place[len(place) - (batch.ndim - 2) :]
    return batch[tuple([0 if size == 1 else i for i, size in zip(own, batch.shape, strict=False)])]


@lru_cache(_REMEMBERED)
def way_for(m: int, depth: int, n: int) -> Way | None:
    """How to compute the product of matrices [m, depth] and [depth, n]; None to call BLAS once, as it is."""
    size, threads = m * depth * n, threads_of_blas()
    if size <= (_TWO_THREADS if min(m, n) > 1 else _VECTORS):
        return None
    if size > _LONG:
        return _in_long_parts(m, depth, n, threads)
    return _by_free_threads if threads > 1 else None


def _in_long_parts(m: int, depth: int, n: int, threads: int) -> Way:
    return _in_parts(_by_free_threads if threads > 1 else np.matmul, m, n, min(max(m, n), -(-m * depth * n // _LONG)))


def _in_parts(way: Way, m: int, n: int, count: int) -> Way:
    """One after the other: of rows, or of columns if there are more of them."""
    bounds = [max(m, n) * i // count for i in range(count + 1)]
    parts = [slice(first, last) for first, last in itertools.pairwise(bounds)]
    if m > n:

        def in_parts(a: Any, b: Any, out: Any = None) -> Any:
            result = np.empty((m, n), a.dtype) if out is None else out
            for part in parts:
                way(a[part], b, result[part])
            return result
    else:

        def in_parts(a: Any, b: Any, out: Any = None) -> Any:
            result = np.empty((m, n), a.dtype) if out is None else out
            for part in parts:
                way(a, b[:, part], result[:, part])
            return result

    return in_parts


def _by_free_threads(a: Any, b: Any, out: Any = None) -> Any:
    """By all threads of BLAS, or by this one if others have products too. dot is matmul for two matrices, and quicker to call."""
    blocks = _blocks(a, b) if is_crowded() else None
    if blocks is not None:
        join_crowd()
        if is_settled():
            return _by_blocks(a, b, out, blocks)
    token = object()
    try:
        enter(token, all_threads=blocks is None)
        if blocks is not None:
            return _by_blocks(a, b, out, blocks)
        return np.dot(a, b) if out is None else np.matmul(a, b, out)
    finally:
        leave(token)


def _by_blocks(a: Any, b: Any, out: Any, ends: Sequence[int]) -> Any:
    """The sum of the products of blocks of the depth that end at `ends`."""
    if len(ends) == 1:
        return np.matmul(a, b, out)
    first = ends[0]
    total = np.matmul(a[:, :first], b[:first], out)
    for begin, end in itertools.pairwise(ends):
        total += np.matmul(a[:, begin:end], b[begin:end])
    return total


def _blocks(a: Any, b: Any) -> Sequence[int] | None:
    """Products of which blocks of the depth give, by one thread and by all, what one product by all gives, to the last bit; None if not known."""
    if a is not b and (a.base is b or b.base is a or (a.base is not None and a.base is b.base)):
        return None  # maybe a matrix and the same transposed, whose product is computed otherwise
    if a.size * b.shape[1] > _LARGE or not (a.flags.forc and b.flags.forc):
        return None
    kind = (*a.shape, b.shape[1], a.dtype, a.flags.c_contiguous, b.flags.c_contiguous)
    blocks = _found.get(kind, _NOT_YET)
    return _found_out(kind) if blocks is _NOT_YET else blocks


def _found_out(kind: Any) -> Sequence[int] | None:
    """The same of a kind that is not known: one thread tries, which takes as long as some products, and the others go on meanwhile."""
    if kind in _being_tried:
        return None
    try:
        _being_tried.add(kind)
        blocks = _tried(*kind)
        if len(_found) >= _REMEMBERED:
            _found.clear()
        _found[kind] = blocks
    finally:
        _being_tried.discard(kind)
    return blocks


def _tried(m: int, depth: int, n: int, dtype: Any, a_by_rows: bool, b_by_rows: bool) -> Sequence[int] | None:
    """The order in which numbers are added does not depend on what they are: one product tells of all that are laid out like it."""
    a, b, out = _numbers(m, depth, dtype, a_by_rows), _numbers(depth, n, dtype, b_by_rows), np.empty((m, n), dtype)
    with all_threads():
        wanted = np.dot(a, b)
        if not np.array_equal(np.matmul(a, b, out), wanted):
            return None
    for blocks in dict.fromkeys([(depth,), *[_of_two_threads(depth, most) for most in _BLOCKS]]):
        if all(np.array_equal(_computed(threads, a, b, out, blocks), wanted) for threads in (one_thread, all_threads)):
            return blocks
    return None


def _computed(threads: Callable[[], AbstractContextManager[None]], a: Any, b: Any, out: Any, blocks: Sequence[int]) -> Any:
    with threads():
        return _by_blocks(a, b, out, blocks)


def _of_two_threads(depth: int, most: int) -> tuple[int, ...]:
    """Where the blocks of OpenBLAS end that it uses with several threads: as deep as may be, but the last two about equal."""
    ends = [0]
    while ends[-1] < depth:
        left = depth - ends[-1]
        ends.append(ends[-1] + (most if left >= 2 * most else -(-left // 2) if left > most else left))
    return tuple(ends[1:])


def _numbers(rows: int, columns: int, dtype: Any, by_rows: bool) -> Any:
    numbers = np.resize(np.random.default_rng(rows).standard_normal(4099), rows * columns).astype(dtype)
    return numbers.reshape(rows, columns) if by_rows else numbers.reshape(columns, rows).T
