"""Philox4x32-10, the counter-based generator of TensorFlow's random ops, and distributions.

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011). A block is one counter mapped to four 32-bit numbers.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.kernel_context import KernelContext
from graphcore.support.forking import new_lock

_MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
_WEYL: Final = (0x9E3779B9, 0xBB67AE85)
_ROUNDS: Final = 10
_CHUNK: Final = 8192
"""The number of blocks computed at a time, so that the arrays in between stay in the processor's cache."""
_LOW: Final = np.uint64(0xFFFFFFFF)
_HIGH: Final = np.uint64(32)
_SCRAMBLING_KEY: Final = 0x3EC8F720 | 0x02461E29 << 32
_SMALLEST_UNIFORM: Final = 1e-7
_TRUNCATED_AT: Final = 2.0
RESERVED_PER_OUTPUT: Final = 256
"""The 128-bit blocks that a run reserves for each number, so that rejected numbers never overlap with the next run's."""


class Generator:
    """A position in the stream of a key; each run reserves its share.

    Attributes:
        quick: for numbers that need not be the same again, drawn with NumPy; None for a seeded generator.
    """

    def __init__(self, key: int, stream: int, quick: np.random.Generator | None = None) -> None:
        self.key = key
        self.stream = stream
        self.quick = quick
        self.position = 0
        self._lock = new_lock()

    def reserve(self, blocks: int) -> int:
        """Reserve the next `blocks` blocks exclusively. Returns their position."""
        with self._lock:
            first = self.position
            self.position += blocks
            return first


def random_blocks(xp: Any, key: int, stream: int, positions: Any) -> Any:
    """The blocks at `positions`: uint64 [n] -> uint64 [n, 4], each below 2**32."""
    positions = positions.astype(np.uint64, copy=False)
    if xp is not np or len(positions) <= _CHUNK:
        return _random_blocks(xp, key, stream, positions)
    blocks = np.empty((len(positions), 4), np.uint64)
    for begin in range(0, len(positions), _CHUNK):
        blocks[begin : begin + _CHUNK] = _random_blocks(np, key, stream, positions[begin : begin + _CHUNK])
    return blocks


def _random_blocks(xp: Any, key: int, stream: int, positions: Any) -> Any:
    counter = [positions & _LOW, positions >> _HIGH, xp.full_like(positions, stream & 0xFFFFFFFF), xp.full_like(positions, stream >> 32)]
    keys = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(_ROUNDS):
        first, second = (counter[i] * np.uint64(multiplier) for i, multiplier in zip((0, 2), _MULTIPLIERS, strict=True))
        high = [second >> _HIGH, first >> _HIGH]
        for half, mixed, part in zip(high, (counter[1], counter[3]), keys, strict=True):
            half ^= mixed
            half ^= np.uint64(part)
        first &= _LOW
        second &= _LOW
        counter = [high[0], second, high[1], first]
        keys = [(part + step) & 0xFFFFFFFF for part, step in zip(keys, _WEYL, strict=True)]
    return xp.stack(counter, -1)


def group_size(dtype: np.dtype[Any]) -> int:
    """The amount of numbers of this type from one block."""
    return 2 if dtype.itemsize == 8 else 4


def uniform(blocks: Any, dtype: np.dtype[Any]) -> Any:
    """Numbers in [0, 1): uint64 [n, 4] -> dtype [n, group]. The random bits become the fraction of a number in [1, 2)."""
    if dtype == np.float64:
        return _unit_doubles(blocks[:, 0::2], blocks[:, 1::2])
    if dtype == np.float32:
        return _unit_floats(blocks)
    bits = 10 if dtype == np.float16 else 7
    one = (15 << 10) if dtype == np.float16 else (127 << 7)
    return ((blocks & np.uint64((1 << bits) - 1)) | np.uint64(one)).astype(np.uint16).view(dtype) - dtype.type(1)


def _unit_floats(words: Any) -> Any:
    return ((words & np.uint64(0x7FFFFF)) | np.uint64(127 << 23)).astype(np.uint32).view(np.float32) - np.float32(1)


def _unit_doubles(high: Any, low: Any) -> Any:
    fraction = ((high & np.uint64(0xFFFFF)) << _HIGH) | low
    return (fraction | np.uint64(1023 << 52)).view(np.float64) - 1.0


def normal(xp: Any, blocks: Any, dtype: np.dtype[Any]) -> Any:
    """Normally distributed numbers (Box and Muller): uint64 [n, 4] -> dtype [n, group]."""
    if dtype == np.float64:
        radius, angle = _unit_doubles(blocks[:, :1], blocks[:, 1:2]), _unit_doubles(blocks[:, 2:3], blocks[:, 3:])
    else:
        radius, angle = _unit_floats(blocks[:, 0::2]), _unit_floats(blocks[:, 1::2])
    number = radius.dtype.type
    length = xp.sqrt(number(-2) * xp.log(xp.maximum(radius, number(_SMALLEST_UNIFORM))))
    angle = (2 * np.pi * angle.astype(np.float64)).astype(radius.dtype, copy=False)  # rounded once, as TensorFlow does
    pairs = xp.stack([xp.sin(angle) * length, xp.cos(angle) * length], -1)
    return pairs.reshape(len(blocks), -1).astype(dtype, copy=False)


def draw(xp: Any, generator: Generator, distribution: str, count: int, dtype: np.dtype[Any]) -> Any:
    """Draw `count` numbers of `uniform`, `normal` or `truncated` distribution: dtype [count]."""
    if generator.quick is not None and xp is np and dtype.itemsize >= 4:
        return _draw_quickly(generator.quick, distribution, count, dtype)
    return draw_at(xp, generator, generator.reserve(count * RESERVED_PER_OUTPUT), distribution, count, dtype)


def _draw_quickly(quick: np.random.Generator, distribution: str, count: int, dtype: np.dtype[Any]) -> Any:
    if distribution == "uniform":
        return quick.random(count, dtype)
    numbers = quick.standard_normal(count, dtype)
    beyond = np.flatnonzero(np.abs(numbers) >= _TRUNCATED_AT) if distribution == "truncated" else ()
    while len(beyond):
        numbers[beyond] = again = quick.standard_normal(len(beyond), dtype)
        beyond = beyond[np.abs(again) >= _TRUNCATED_AT]
    return numbers


def draw_at(xp: Any, generator: Generator, first: int, distribution: str, count: int, dtype: np.dtype[Any]) -> Any:
    """Draw from the position `first` on, without changing the generator."""
    group = group_size(dtype)
    groups = -(-count // group)
    if distribution == "truncated":
        return _truncated(xp, generator, first, groups, dtype).reshape(-1)[:count]
    blocks = random_blocks(xp, generator.key, generator.stream, first + xp.arange(groups, dtype=np.uint64))
    numbers = uniform(blocks, dtype) if distribution == "uniform" else normal(xp, blocks, dtype)
    return numbers.reshape(-1)[:count]


def _truncated(xp: Any, generator: Generator, first: int, groups: int, dtype: np.dtype[Any]) -> Any:
    """Each group takes the first numbers below 2 standard deviations from its own stretch of blocks."""
    group = group_size(dtype)
    stretch = group * RESERVED_PER_OUTPUT // 4
    wide = np.dtype(np.float64) if dtype == np.float64 else np.dtype(np.float32)
    result = xp.zeros((groups, group), wide)
    missing, depth = xp.arange(groups), 1
    while len(missing):
        positions = first + missing[:, None].astype(np.uint64) * np.uint64(stretch) + xp.arange(depth, dtype=np.uint64)
        blocks = random_blocks(xp, generator.key, generator.stream, positions.reshape(-1))
        candidates = normal(xp, blocks, wide).reshape(len(missing), -1)
        accepted = xp.abs(candidates) < _TRUNCATED_AT
        if depth == 1:  # most often all numbers of the first block are taken
            done = accepted.all(1)
            result[missing[done]] = candidates[done]
        else:
            chosen = xp.argsort(~accepted, 1, kind="stable")[:, :group]
            done = xp.take_along_axis(accepted, chosen, 1).all(1)
            result[missing[done]] = xp.take_along_axis(candidates, chosen, 1)[done]
        missing, depth = missing[~done], depth * 4
    return result.astype(dtype, copy=False)


def words(xp: Any, generator: Generator, first: int, count: int) -> Any:
    """`count` numbers below 2**32, from the position `first` on: uint64 [count]."""
    positions = first + xp.arange(-(-count // 4), dtype=np.uint64)
    return random_blocks(xp, generator.key, generator.stream, positions).reshape(-1)[:count]


def draw_integers(xp: Any, generator: Generator, count: int, low: int, high: int, dtype: np.dtype[Any]) -> Any:
    """Draw `count` whole numbers in [low, high): dtype [count]."""
    if generator.quick is not None and xp is np:
        return generator.quick.integers(low, high, count, dtype)
    return integers(xp, generator, generator.reserve(count * RESERVED_PER_OUTPUT), count, low, high, dtype)


def integers(xp: Any, generator: Generator, first: int, count: int, low: int, high: int, dtype: np.dtype[Any]) -> Any:
    """`count` whole numbers in [low, high), from the position `first` on: dtype [count]."""
    if dtype.itemsize == 4:
        drawn = words(xp, generator, first, count)
    else:
        pairs = words(xp, generator, first, 2 * count).reshape(-1, 2)
        drawn = pairs[:, 0] | (pairs[:, 1] << _HIGH)
    return (drawn % np.uint64(high - low) + np.uint64(low & (1 << 64) - 1)).astype(np.int64).astype(dtype)


def scrambled(first: int, second: int) -> Generator:
    """The generator for a seed of two numbers.

    Key and stream are derived from the seed by a generator of fixed key.
    """
    block = random_blocks(np, _SCRAMBLING_KEY, second, np.array([first], np.uint64))[0]
    mixed = [int(word) for word in block]
    return Generator(mixed[0] | mixed[1] << 32, mixed[2] | mixed[3] << 32)


def node_generator(k: KernelContext) -> Generator:
    """The generator of a node: a seeded one continues over the runs of a session.

    Without a seed it starts at a random position, and has a quick generator of NumPy.
    """
    seeds = [int(str(k.attr(name))) & (1 << 64) - 1 for name in ("seed", "seed2")]

    def make() -> Generator:
        return (
            Generator(seeds[0], seeds[1]) if any(seeds) else Generator(fresh_seed(), fresh_seed(), np.random.Generator(np.random.SFC64()))
        )

    return k.resources.state((k.op, k.node_name, *seeds), make)


def fresh_seed() -> int:
    """64 bits that differ from run to run."""
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
