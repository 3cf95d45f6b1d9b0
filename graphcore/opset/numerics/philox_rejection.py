"""Gamma and Poisson distributions, drawn by rejection. Each number has a stretch of blocks of its own.

Marsaglia and Tsang, "A simple method for generating gamma variables" (2000); Hörmann, "The transformed rejection method for generating
Poisson random variables" (1993); Knuth's products of uniform numbers for small means. As in TensorFlow, all is computed in doubles.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.opset.numerics.philox import RESERVED_PER_OUTPUT, Generator, normal, random_blocks, uniform
from graphcore.opset.numerics.special_functions import lgamma

_DOUBLE: Final = np.dtype(np.float64)
_SMALL_MEAN: Final = 10.0


class _Streams:
    """The streams of many numbers, each used at its own pace.

    A block gives two doubles, and the second is used first.
    """

    def __init__(self, xp: Any, generator: Generator, first: int, count: int) -> None:
        self._xp, self._generator = xp, generator
        self._next = first + xp.arange(count, dtype=np.uint64) * np.uint64(RESERVED_PER_OUTPUT)
        self._pairs = {kind: xp.zeros((count, 2)) for kind in ("uniform", "normal")}
        self._left = {kind: xp.zeros(count, np.int64) for kind in self._pairs}

    def uniform(self, rows: Any) -> Any:
        """The next numbers in [0, 1) of some streams: rows: [n] -> [n]."""
        return self._take("uniform", rows)

    def normal(self, rows: Any) -> Any:
        """The next normally distributed numbers of some streams: rows: [n] -> [n]."""
        return self._take("normal", rows)

    def _take(self, kind: str, rows: Any) -> Any:
        pairs, left = self._pairs[kind], self._left[kind]
        empty = rows[left[rows] == 0]
        if empty.size:
            blocks = random_blocks(self._xp, self._generator.key, self._generator.stream, self._next[empty])
            self._next[empty] += np.uint64(1)
            pairs[empty] = uniform(blocks, _DOUBLE) if kind == "uniform" else normal(self._xp, blocks, _DOUBLE)
            left[empty] = 2
        left[rows] -= 1
        return pairs[rows, left[rows]]


def gamma(xp: Any, generator: Generator, first: int, alphas: Any) -> Any:
    """Draw from the gamma distributions of `alphas`, from the position `first` on. alphas: [n] -> y: [n]."""
    streams = _Streams(xp, generator, first, alphas.size)
    result = xp.zeros(alphas.size)
    missing = alphas != 1
    rows = xp.flatnonzero(~missing)
    result[rows] = -xp.log(1 - streams.uniform(rows))
    while (rows := xp.flatnonzero(missing)).size:
        alpha = alphas[rows]
        d = alpha + xp.where(alpha < 1, 2.0 / 3, -1.0 / 3)
        x = streams.normal(rows)
        v = 1 + x / (3 * xp.sqrt(d))
        rows, alpha, d, x, v = _where(v > 0, rows, alpha, d, x, v)  # the others are tried again without a uniform number
        v = v * v * v
        u = streams.uniform(rows)
        taken = (u < 1 - 0.0331 * x**4) | (xp.log(u) < 0.5 * x * x + d * (1 - v + xp.log(v)))
        accepted, alpha, value = _where(taken, rows, alpha, d * v)
        below = xp.flatnonzero(alpha < 1)
        value[below] *= streams.uniform(accepted[below]) ** (1 / alpha[below])
        result[accepted] = value
        missing[accepted] = False
    return result


def poisson(xp: Any, generator: Generator, first: int, means: Any, most: float) -> Any:
    """Draw from the Poisson distributions of `means`, from the position `first` on. means: [n] -> y: [n].

    Values above `most`, which the dtype of the result does not hold, are drawn again.
    """
    streams = _Streams(xp, generator, first, means.size)
    result = xp.zeros(means.size)
    _small_means(xp, streams, means, result)
    infinite = xp.isinf(means) & (means > 0)
    result[infinite] = xp.inf
    _large_means(xp, streams, xp.where(infinite, 0.0, means), result, most)
    return result


def _small_means(xp: Any, streams: _Streams, means: Any, result: Any) -> None:
    """Count the uniform numbers whose product stays above exp(-mean)."""
    rows = xp.flatnonzero(means < _SMALL_MEAN)
    product = xp.ones(rows.size)
    while rows.size:
        product = product * streams.uniform(rows)
        rows, product = _where(product > xp.exp(-means[rows]), rows, product)
        result[rows] += 1


def _large_means(xp: Any, streams: _Streams, means: Any, result: Any, most: float) -> None:
    rows = xp.flatnonzero(means >= _SMALL_MEAN)
    while rows.size:
        mean = means[rows]
        b = 0.931 + 2.53 * xp.sqrt(mean)
        a = -0.059 + 0.02483 * b
        u = streams.uniform(rows) - 0.5
        v = streams.uniform(rows)
        edge = 0.5 - xp.abs(u)
        k = xp.floor((2 * a / edge + b) * u + mean + 0.43)
        inside = (edge >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
        tried = (k >= 0) & ((edge >= 0.013) | (v <= edge))
        chance = xp.log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (edge * edge) + b))
        likely = chance <= -mean + k * xp.log(mean) - lgamma(xp, xp.maximum(k, 0.0) + 1)
        taken = (k <= most) & (inside | (tried & likely))
        result[rows[taken]] = k[taken]
        rows = rows[~taken]


def _where(mask: Any, *arrays: Any) -> tuple[Any, ...]:
    return tuple(array[mask] for array in arrays)
