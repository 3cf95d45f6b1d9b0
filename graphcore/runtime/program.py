"""What a session runs: a subgraph made ready by one of the engines, and one run of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from graphcore.graph.node import Node
from graphcore.runtime.cancellation import CancellationManager
from graphcore.runtime.events import Recorder


class Step:
    """One run that somebody watches: who records it, and what can stop it.

    Args:
        recorder: gets the events of the run; None if nobody wants them.
        cancellation: cancelling it stops the run before the next node, with CancelledError, and ends what waits.
        frame, iteration: of the loop whose body is run.
        prefix: what stands before the names of nodes in events, for the body of a function.

    Attributes:
        peak_bytes: the most that the arrays of the run held at once, where it is recorded.
    """

    __slots__ = ("_held", "cancellation", "frame", "iteration", "peak_bytes", "prefix", "recorder")

    def __init__(
        self,
        recorder: Recorder | None = None,
        cancellation: CancellationManager | None = None,
        *,
        frame: str = "",
        iteration: int = 0,
        prefix: str = "",
    ) -> None:
        self.recorder = recorder
        self.cancellation = cancellation
        self.frame = frame
        self.iteration = iteration
        self.prefix = prefix
        self.peak_bytes = 0
        self._held = 0

    def hold(self, count: int) -> None:
        """Count `count` bytes more (or fewer) that arrays of the run hold."""
        self._held += count
        self.peak_bytes = max(self.peak_bytes, self._held)


class _Current(threading.local):
    step: Step | None = None


current: Final = _Current()
"""`current.step` is the watched run that this thread is in, None in a run that nobody watches."""


class Program(Protocol):
    """A subgraph that an engine made ready to run. Several threads may run it at once."""

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes that really run."""

    @property
    def run(self) -> Callable[..., list[Any]]:
        """Fed arrays in, fetched arrays out, as fast as can be."""

    def run_step(self, step: Step, values: Sequence[Any]) -> list[Any]:
        """The same, recorded, and stopped when the step is cancelled.

        Raises:
            CancelledError: it was.
        """

    def explain(self, error: BaseException) -> BaseException:
        """`error` as a GraphError that names the node, its inputs and the user's line.

        What is no Exception (Ctrl-C) stays what it is and gets a note that says so.
        """

    def close(self) -> None:
        """Give free what the program holds."""
