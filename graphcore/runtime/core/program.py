"""What a session runs: a subgraph made ready by one of the engines, and one run of it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from graphcore.graph.model.node import Node
from graphcore.runtime.core.cancellation import CancellationManager
from graphcore.runtime.core.events import Around, Recorder

if TYPE_CHECKING:
    from graphcore.runtime.plan.peak_memory import PeakMemory, Sizes


class Step:
    """One run that somebody watches: who records it, and what can stop it.

    Args:
        recorder: gets the events of the run; None if nobody wants them.
        cancellation: cancelling it stops the run before the next node, with CancelledError, and ends what waits.
        frame, iteration: of the loop whose body is run.

    Attributes:
        around: the loops around that of `frame`, as `Event.around`.
        call: the calls of functions that it is in; see `Event.call`.
        caller: the node that runs now, and may call functions.
        peak_bytes: the most that the arrays of the run held at once, where it is recorded.
        node: the innermost node that the run came to last, where it can be cancelled.
        deadline: when its time is over, on the clock of `time.monotonic`.
    """

    __slots__ = (
        "_calls",
        "_held",
        "_lock",
        "_whole",
        "around",
        "call",
        "caller",
        "cancellation",
        "deadline",
        "frame",
        "iteration",
        "node",
        "peak_bytes",
        "recorder",
    )

    def __init__(
        self,
        recorder: Recorder | None = None,
        cancellation: CancellationManager | None = None,
        *,
        frame: str = "",
        iteration: int = 0,
    ) -> None:
        self.recorder = recorder
        self.cancellation = cancellation
        self.frame = frame
        self.iteration = iteration
        self.around: Around = ()
        self.call = ""
        self.caller = ""
        self.peak_bytes = 0
        self._calls: dict[str, int] = {}
        self.node: Node | None = None
        self.deadline = math.inf
        self._held = 0
        self._whole = self
        self._lock = threading.RLock()  # an array may be given free, and told of here, while another is counted

    def beside(self, cancellation: CancellationManager) -> Step:
        """The part of this run that another thread makes, which `cancellation` stops."""
        part = Step(self.recorder, cancellation, frame=self.frame, iteration=self.iteration)
        part.around, part.call, part.caller, part.deadline = self.around, self.call, self.caller, self.deadline
        part._whole = self._whole
        return part

    def within(self) -> Around:
        """All loops that the run is in, outermost first."""
        return (*self.around, (self.frame, self.iteration)) if self.frame else self.around

    def is_late(self) -> bool:
        """Whether its time is over: who waits for it may notice later than the run itself."""
        return time.monotonic() >= self.deadline

    def hold(self, count: int) -> None:
        """Count `count` bytes more (or fewer) that arrays of the run hold."""
        whole = self._whole
        with whole._lock:
            whole._held += count
            whole.peak_bytes = max(whole.peak_bytes, whole._held)

    def begin(self, node: str) -> None:
        """`node` begins to run, and may call functions."""
        self.caller = node
        if self._calls:
            self._calls = {}

    @contextmanager
    def calling(self, function: str) -> Iterator[None]:
        """What runs in here is the body of `function`, which the node that runs now calls."""
        before = self.call, self.caller, self._calls
        called = f"{self.caller}:{function}" if self.caller else function
        count = self._calls[called] = self._calls.get(called, 0) + 1
        self.call = f"{self.call}{' > ' if self.call else ''}{called}{f'#{count}' if count > 1 else ''}"
        self.caller, self._calls = "", {}
        try:
            yield
        finally:
            self.call, self.caller, self._calls = before


class _Current(threading.local):
    step: Step | None = None


current: Final = _Current()
"""`current.step` is the watched run that this thread is in, None in a run that nobody watches."""


class Executor(Protocol):
    """Runs one graph, as often as it is asked to. Several threads may run it at once."""

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
        """Give free what it holds."""


class Program(Executor, Protocol):
    """A subgraph that an engine made ready to run."""

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes that really run."""

    def peak_memory(self, sizes: Sizes = ...) -> PeakMemory:
        """The most that the arrays of a run will hold at once, as the shapes tell.

        Args:
            sizes: how large things are; as the program's own shapes say unless given.
        """
