"""Until when what this thread does may go on: what takes long at many nodes asks at each of them."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator

from graphcore.errors import DeadlineExceededError
from graphcore.support.critical_section import critical_contextmanager


class _Limit(threading.local):
    until = math.inf
    text = ""


_limit = _Limit()


@critical_contextmanager
def time_limit(until: float, text: str) -> Iterator[None]:
    """What asks within the block may go on until then, or less long if that was asked for around it.

    Args:
        until: on the clock of `time.monotonic`.
        text: what to say when the time is over.
    """
    before = _limit.until, _limit.text
    if until < _limit.until:
        _limit.until, _limit.text = until, text
    try:
        yield
    finally:
        _limit.until, _limit.text = before


def has_time_limit() -> bool:
    """Whether there is any need to ask."""
    return _limit.until < math.inf


def check_time(name: str, op: str) -> None:
    """Go on to node `name`, of op `op`, if there is time left.

    Raises:
        DeadlineExceededError: there is none.
    """
    if has_time_limit() and time.monotonic() >= _limit.until:
        raise DeadlineExceededError(f"{_limit.text}; stopped while planning, at node '{name}' (op {op})", op=op, node=name)
