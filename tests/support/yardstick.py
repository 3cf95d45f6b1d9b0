"""How long plain Python takes here: what other work is compared with, so that no verdict depends on how fast the machine is."""

from __future__ import annotations

import time
from functools import cache
from typing import Final

_TURNS: Final = 200_000


def loop_seconds(turns: int) -> float:
    """About how many seconds of the processor an empty loop of so many turns takes."""
    return turns * _turn_seconds()


@cache
def _turn_seconds() -> float:
    return max(_loop_of_turns() for _ in range(5)) / _TURNS


def _loop_of_turns() -> float:
    begin = time.process_time()
    for _ in range(_TURNS):
        pass
    return time.process_time() - begin
