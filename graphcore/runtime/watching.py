"""Runs that are recorded, or that may not take longer than so long."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from graphcore.errors import CancelledError, DeadlineExceededError
from graphcore.runtime.cancellation import CancellationManager
from graphcore.runtime.program import Program, Step, current


def run_watched(program: Program, values: Sequence[Any], step: Step, timeout_in_ms: int) -> list[Any]:
    """Run `program` as `step`, for `timeout_in_ms` milliseconds at most (0: for as long as it takes).

    Raises:
        DeadlineExceededError: the time ran out; it names the node that was about to run.
    """
    if not timeout_in_ms:
        with under_way(step):
            return program.run_step(step, values)
    cancellation = step.cancellation = step.cancellation or CancellationManager()
    timer = threading.Timer(timeout_in_ms / 1000, cancellation.start_cancel)
    timer.daemon = True
    timer.start()
    try:
        with under_way(step):
            return program.run_step(step, values)
    except CancelledError as error:
        raise DeadlineExceededError(
            f"Required to be done within {timeout_in_ms} ms, which have passed; stopped at node '{error.node}'",
            op=error.op,
            node=error.node,
            source=error.source,
        ) from error
    finally:
        timer.cancel()
        timer.join()


@contextmanager
def under_way(step: Step) -> Iterator[None]:
    """Make `step` the watched run of this thread: calls of functions and waits within it belong to it."""
    before, current.step = current.step, step
    try:
        yield
    finally:
        current.step = before
