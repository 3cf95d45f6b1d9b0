"""The kind of thing that is fuzzed: what makes inputs, and what reads them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, NamedTuple

from tests.support.fuzzing.fuzz_inputs import damaged

UNEXPECTED: Final = "The shape function of op "
"""The text of errors that say that a shape function has a fault of its own."""


class Target(NamedTuple):
    """Something that is fuzzed.

    Attributes:
        make: makes an input from random numbers.
        check: reads it. A GraphError is an answer, any other error is a fault.
    """

    make: Callable[[random.Random], bytes]
    check: Callable[[bytes], object]


def packed(*parts: bytes) -> bytes:
    """Several files in one input."""
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def unpacked(data: bytes, count: int) -> list[bytes]:
    """The files of an input, which may be damaged or cut off."""
    parts, place = [], 0
    for _ in range(count):
        size = int.from_bytes(data[place : place + 4], "big")
        parts.append(data[place + 4 : place + 4 + size])
        place += 4 + size
    return parts


def maybe_damaged(data: bytes, rng: random.Random, share: float = 0.5) -> bytes:
    """The data, in this share of cases after random changes."""
    return damaged(data, data, rng) if rng.random() < share else data
