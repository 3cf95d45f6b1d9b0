"""Programs: subgraphs prepared by an engine, and single runs of them."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

from graphcore.graph.model.node import Node
from graphcore.runtime.core.cancellation import CancellationManager
from graphcore.runtime.core.events import Around
from graphcore.runtime.core.recorder import Recorder
from graphcore.runtime.core.sizes import OWN_SIZES, PeakMemory, Sizes


class Step:
    """A run with a recorder or a cancellation.

    Args:
        recorder: records the events of the run, if given.
        cancellation: cancelling it stops the run before the next node, with CancelledError, and ends waiting operations.
        frame, iteration: those of the loop whose body is run.

    Attributes:
        around: the loops around that of `frame`, as `Event.around`.
        call: the surrounding function calls; see `Event.call`.
        caller: the running node, which may call functions.
        peak_bytes: the peak of live-array accounting, for recorded runs.
        node: the innermost node reached last, for cancellable runs.
        deadline: the deadline on the clock of `time.monotonic`.
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
        self._lock = threading.RLock()  # reentrant: an array may be released while the release of another is reported

    def for_thread(self, cancellation: CancellationManager) -> Step:
        """A step for another thread of this run, stopped by `cancellation`."""
        part = Step(self.recorder, cancellation, frame=self.frame, iteration=self.iteration)
        part.around, part.call, part.caller, part.deadline = self.around, self.call, self.caller, self.deadline
        part._whole = self._whole
        return part

    def within(self) -> Around:
        """All surrounding loops, outermost first."""
        return (*self.around, (self.frame, self.iteration)) if self.frame else self.around

    def is_late(self) -> bool:
        """True iff the deadline has passed."""
        return time.monotonic() >= self.deadline

    def hold(self, count: int) -> None:
        """Count `count` more (or fewer) bytes of live arrays."""
        whole = self._whole
        with whole._lock:
            whole._held += count
            whole.peak_bytes = max(whole.peak_bytes, whole._held)

    def begin(self, node: str) -> None:
        """Set `node` as the running node."""
        self.caller = node
        if self._calls:
            self._calls = {}

    @contextmanager
    def calling(self, function: str) -> Iterator[None]:
        """Attribute the block to the body of `function`, called by the running node."""
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
"""`current.step` is the watched run of this thread, None in an unwatched run."""


class Executor(Protocol):
    """Runs one graph repeatedly. Thread-safe."""

    @property
    def run(self) -> Callable[..., list[Any]]:
        """Run without recording: fed arrays in, fetched arrays out."""

    def run_step(self, step: Step, values: Sequence[Any]) -> list[Any]:
        """Run with recording and cancellation.

        Raises:
            CancelledError: the step was cancelled.
        """

    def explain(self, error: BaseException) -> BaseException:
        """Convert `error` to a GraphError with node, inputs and the user's line.

        Other exceptions than `Exception` (Ctrl-C) are returned with a note.
        """

    def close(self) -> None:
        """Release resources."""


class Program(Executor, Protocol):
    """A subgraph prepared by an engine."""

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes that are run."""

    def peak_memory(self, sizes: Sizes = OWN_SIZES) -> PeakMemory:
        """The predicted peak of live-array accounting, from shapes.

        Args:
            sizes: the sizes of arrays; those of the program's shapes by default.
        """
