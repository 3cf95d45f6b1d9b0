"""The duration of plain Python work, as a unit for comparisons independent of the machine."""

from __future__ import annotations

import time
from functools import cache
from typing import Final

_TURNS: Final = 200_000


def loop_seconds(turns: int) -> float:
    """The approximate processor time of an empty loop of so many iterations, in seconds."""
    return turns * _turn_seconds()


@cache
def _turn_seconds() -> float:
    return max(_loop_of_turns() for _ in range(5)) / _TURNS


def _loop_of_turns() -> float:
    begin = time.process_time()
    for _ in range(_TURNS):
        pass
    return time.process_time() - begin
