"""The deadline of the current thread, which long computations check at each node."""

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
    """Limit the time of computations within the block; an earlier outer deadline stays in force.

    Args:
        until: the deadline on the clock of `time.monotonic`.
        text: the error message after the deadline.
    """
    before = _limit.until, _limit.text
    if until < _limit.until:
        _limit.until, _limit.text = until, text
    try:
        yield
    finally:
        _limit.until, _limit.text = before


def has_time_limit() -> bool:
    """True iff a deadline is set."""
    return _limit.until < math.inf


def check_time(name: str, op: str) -> None:
    """Raise if the deadline has passed before node `name`, of op `op`, is processed.

    Raises:
        DeadlineExceededError: the deadline has passed.
    """
    if has_time_limit() and time.monotonic() >= _limit.until:
        raise DeadlineExceededError(f"{_limit.text}; stopped while planning, at node '{name}' (op {op})", op=op, node=name)
