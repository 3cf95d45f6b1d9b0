"""The gate of a run that is stepped through: its threads wait before each node."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from time import perf_counter_ns
from typing import Final

import msgspec

from graphcore.errors import CancelledError
from graphcore.runtime.core.events import Around, Event, Kind
from graphcore.runtime.core.recorder import Recorder
from graphcore.runtime.core.value_records import ValueRecorder

PATIENCE: Final = 0.05
"""The seconds that a running node gets while another thread waits at the gate."""

Place = tuple[str, str]
"""The surrounding function calls, and the node."""


class Gate(Recorder):
    """A recorder that makes the threads of its run wait before each node, those of functions included.

    Time spent waiting does not count in the times of events.

    Args:
        values: records the values.
    """

    __slots__ = ("_allowed", "_is_closed", "_is_over", "_moving", "_turn", "_waited", "_waiting")

    def __init__(self, values: ValueRecorder) -> None:
        super().__init__(values, self._time)
        self._turn = threading.Condition()
        self._allowed = 0
        self._waited = 0
        self._waiting: dict[int, Place] = {}
        self._moving: set[int] = set()
        self._is_closed = False
        self._is_over = False

    def record(
        self,
        kind: Kind,
        node: str,
        *,
        bytes: int = 0,
        device: str = "",
        frame: str = "",
        iteration: int = 0,
        call: str = "",
        how: str = "",
        around: Around = (),
    ) -> None:
        """Record an event; wait first if a node begins with it.

        Raises:
            CancelledError: the gate is closed.
        """
        if kind == "start" or (kind == "dead" and not how):
            self.wait_before(call, node)
        super().record(kind, node, bytes=bytes, device=device, frame=frame, iteration=iteration, call=call, how=how, around=around)

    @property
    def next(self) -> Place | None:
        """The node before which the run waits; None if it is over or on its way."""
        with self._turn:
            return next(iter(self._waiting.values()), None)

    @property
    def is_over(self) -> bool:
        """True after the run has ended."""
        return self._is_over

    def allow(self) -> None:
        """Let one more node run."""
        with self._turn:
            self._allowed += 1
            self._turn.notify_all()

    def rest(self, seconds: float | None = None) -> bool:
        """Wait until the run waits at the gate or is over. False if that takes longer than `seconds`."""
        with self._turn:
            if not self._turn.wait_for(lambda: self._is_over or (self._waiting and not self._allowed), seconds):
                return False
            # A node may wait for what a thread will send that waits here.
            self._turn.wait_for(lambda: self._is_over or not self._moving, PATIENCE)
            return True

    def close(self) -> None:
        """Let no node run any more; waiting threads raise CancelledError."""
        with self._turn:
            self._is_closed = True
            self._turn.notify_all()

    def end(self) -> None:
        """The run is over."""
        with self._turn:
            self._is_over = True
            self._turn.notify_all()

    def adopt(self, events: Sequence[Event]) -> None:
        """Add the events that a part of this run in another process has just recorded."""
        if events:
            shift = self._time() - events[-1].ns
            self.add([msgspec.structs.replace(event, ns=event.ns + shift) for event in events], ())

    def leave(self) -> None:
        """The calling thread runs no more nodes."""
        with self._turn:
            self._moving.discard(threading.get_ident())
            self._turn.notify_all()

    def wait_before(self, call: str, node: str) -> None:
        """Wait before a node; of several threads, the one that waits longest goes on first.

        Raises:
            CancelledError: the gate is closed.
        """
        thread, begun = threading.get_ident(), perf_counter_ns()
        with self._turn:
            self._moving.discard(thread)
            self._waiting[thread] = call, node
            self._turn.notify_all()
            self._turn.wait_for(lambda: (self._allowed and next(iter(self._waiting)) == thread) or self._is_closed)
            del self._waiting[thread]
            if self._is_closed:
                raise CancelledError("The run was closed")
            self._allowed -= 1
            self._moving.add(thread)
            self._turn.notify_all()
            self._waited += perf_counter_ns() - begun

    def _time(self) -> int:
        return perf_counter_ns() - self._waited
