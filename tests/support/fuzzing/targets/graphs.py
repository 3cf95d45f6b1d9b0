"""Graphs, functions, signatures and op lists, in all forms that are read."""

from __future__ import annotations

import random
from typing import Final

from tests.support.fuzzing.fuzz import READERS, make_input
from tests.support.fuzzing.target import Target, packed, unpacked

SEED: Final = 1


def make(rng: random.Random) -> bytes:
    """A text or file, and the name of its reader."""
    reader, data = make_input(SEED, rng.getrandbits(48))
    return packed(reader.encode(), data)


def check(given: bytes) -> None:
    """Read it."""
    reader, data = unpacked(given, 2)
    READERS[reader.decode()](data)


GRAPHS: Final = Target(make, check)
