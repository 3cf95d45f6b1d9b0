"""The recorder of a run: its events, arrays and values, as they happen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import get_ident
from time import perf_counter_ns
from typing import Any, Final

import msgspec

from graphcore.runtime.core.events import Around, ArrayLife, Event, Kind
from graphcore.runtime.core.value_records import ValueRecorder

_OF_SKIPPED: Final[tuple[Kind, ...]] = ("scheduled", "start", "end")


class Recorder:
    """Collects the events of a run, from any number of threads, in order.

    It records plain tuples, which are converted to events after the run.

    Args:
        values: records the values too, if given.
        now: the clock, in nanoseconds.

    Attributes:
        argument_bytes: the bytes of the arguments of each function at its last call, and of the feeds under "", by the name of their nodes.
    """

    __slots__ = ("_append", "_arrays", "_is_short", "_now", "_records", "argument_bytes", "values")

    def __init__(self, values: ValueRecorder | None = None, now: Callable[[], int] = perf_counter_ns) -> None:
        self.values = values
        self._now = now
        self.argument_bytes: dict[str, dict[str, int]] = {}
        self._records: list[tuple[Any, ...]] = []
        self._arrays: list[list[Any]] = []
        self._is_short = True  # each record is one event
        self._append = self._records.append  # a single call, which the interpreter does not interrupt

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
        """Record an event at the current time.

        Args:
            kind, node, bytes, device, frame, iteration, call, how, around: see `Event`.
        """
        self._append((kind, node, self._now(), bytes, get_ident(), device, frame, iteration, call, how, around))

    def add(self, events: Iterable[Event], arrays: Iterable[ArrayLife]) -> None:
        """Add what another process has recorded, on the clock of this recorder."""
        for event in events:
            self._append(msgspec.structs.astuple(event))
        self._arrays += [list(msgspec.structs.astuple(life)) for life in arrays]

    def record_skipped(self, nodes: Sequence[tuple[str, str, Any, Any]], frame: str, iteration: int, call: str, around: Around) -> None:
        """Record nodes that need no kernel. Their events have one time, and are made after the run.

        Args:
            nodes: tuples that begin with the name of a node and the reason.
            frame, iteration, call, around: see `Event`.
        """
        self._is_short = False
        self._append((nodes, self._now(), get_ident(), frame, iteration, call, around))

    @property
    def events(self) -> tuple[Event, ...]:
        """The events recorded so far."""
        return tuple(self.events_from(0))

    def events_from(self, first: int) -> list[Event]:
        """The events recorded so far without the `first` ones."""
        if self._is_short:
            return [Event(*record) for record in self._records[first:]]
        return [event for record in list(self._records) for event in _events_of(record)][first:]

    def record_array(self, node: str, call: str, device: str, size: int) -> list[Any]:
        """Record an array that is alive from now on.

        Args:
            node, call, device, size: see `ArrayLife`.

        Returns:
            Its record, for `end_array`.
        """
        record = [node, call, device, self._now(), -1, size]
        self._arrays.append(record)
        return record

    def end_array(self, record: list[Any]) -> None:
        """Record that an array is released."""
        record[4] = self._now()

    @property
    def arrays(self) -> tuple[ArrayLife, ...]:
        """The arrays recorded so far; those that are alive end now."""
        now = self._now()
        lives = [ArrayLife(*life) for life in list(self._arrays)]
        return tuple([life if life.end >= 0 else msgspec.structs.replace(life, end=now) for life in lives])

    def __len__(self) -> int:
        return len(self._records)

    def __bool__(self) -> bool:
        return True  # an empty recorder is true too

    def clear(self) -> None:
        """Clear the events."""
        self._records.clear()
        self._arrays.clear()


def _events_of(record: tuple[Any, ...]) -> Iterator[Event]:
    """The events of a record: one, or those of nodes that needed no kernel."""
    if isinstance(record[0], str):
        yield Event(*record)
        return
    nodes, ns, thread, frame, iteration, call, around = record
    for node in nodes:
        for kind in _OF_SKIPPED:
            yield Event(kind, node[0], ns, 0, thread, "", frame, iteration, call, node[1], around)
