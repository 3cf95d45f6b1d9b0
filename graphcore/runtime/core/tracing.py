"""Traces of runs: events, step statistics, and files for trace viewers."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from graphcore.errors import FailedPreconditionError
from graphcore.graph import Graph
from graphcore.graph.model.node import Node
from graphcore.placement.timeline import Clock, Timeline
from graphcore.runtime.core.events import Around, ArrayLife, Event, loop_iterations
from graphcore.runtime.core.node_times import NodeTime, times_of, without_repeats
from graphcore.runtime.core.tokens import is_transfer
from graphcore.runtime.core.trace_timeline import NodeRun, recorded_timeline
from graphcore.runtime.core.value_records import ValueRecords
from graphcore.support.replacing import write_file

CPU: Final = "/job:localhost/replica:0/task:0/device:CPU:0"
_Run = tuple[str, str, int, Around, str]
_INSTANTS: Final = frozenset({"dead", "sent", "received"})


class NodeExecStats(msgspec.Struct, frozen=True):
    """The times of a node, in nanoseconds of one clock; `*_rel_*` are relative to `all_start`.

    Args:
        node_name: the node.
        scheduled_nanos: the time its inputs were available.
        all_start_nanos: the start of its processing.
        op_start_rel_nanos, op_end_rel_nanos: the start and the end of its kernel.
        all_end_rel_nanos: the end of the delivery of its outputs.
        thread_id: its thread.
        output_bytes: the bytes of its outputs.
        frame, iteration: its loop.
        call: the surrounding function calls; see `Event.call`.
        how: the reason if its kernel did not run, "" if it did; see `Event.how`.
        around: the loops around that of `frame`; see `Event.around`.
    """

    node_name: str
    scheduled_nanos: int
    all_start_nanos: int
    op_start_rel_nanos: int
    op_end_rel_nanos: int
    all_end_rel_nanos: int
    thread_id: int = 0
    output_bytes: int = 0
    frame: str = ""
    iteration: int = 0
    call: str = ""
    how: str = ""
    around: Around = ()

    @property
    def iterations(self) -> tuple[int, ...]:
        """The iterations of all surrounding loops, outermost first; () outside of loops."""
        return loop_iterations(self.around, self.frame, self.iteration)

    @property
    def scheduled_micros(self) -> int:
        """In whole microseconds."""
        return self.scheduled_nanos // 1000

    @property
    def all_start_micros(self) -> int:
        """In whole microseconds."""
        return self.all_start_nanos // 1000

    @property
    def op_start_rel_micros(self) -> int:
        """In whole microseconds."""
        return self.op_start_rel_nanos // 1000

    @property
    def op_end_rel_micros(self) -> int:
        """In whole microseconds."""
        return self.op_end_rel_nanos // 1000

    @property
    def all_end_rel_micros(self) -> int:
        """In whole microseconds."""
        return self.all_end_rel_nanos // 1000


class DeviceStepStats(msgspec.Struct, frozen=True):
    """The statistics of one device.

    Args:
        device: its full name.
        node_stats: one entry for each execution of a node, by start.
        simulated: True if the device is simulated.
    """

    device: str
    node_stats: tuple[NodeExecStats, ...]
    simulated: bool = False


class StepStats(msgspec.Struct, frozen=True):
    """The statistics of all devices that were used."""

    dev_stats: tuple[DeviceStepStats, ...]


class Trace:
    """A recorded run.

    Attributes:
        nodes: the nodes of the run.
        peak_bytes: the peak of live arrays made by nodes, in functions too. Feeds, constants, values of variables and scalars do not count.
        arrays: the arrays that `peak_bytes` counts, with the times for which they were alive; none on the virtual clock.
        simulated: True for a run on simulated devices: the times of its events are then those of a virtual clock, from 0.
        simulated_devices: the names of the simulated devices.
    """

    __slots__ = ("_events", "_node_times", "_values", "arrays", "nodes", "peak_bytes", "simulated", "simulated_devices")

    def __init__(
        self,
        events: Sequence[Event] | Callable[[], Sequence[Event]],
        nodes: Sequence[Node] = (),
        peak_bytes: int = 0,
        arrays: Sequence[ArrayLife] = (),
        *,
        simulated: bool = False,
        simulated_devices: Sequence[str] = (),
        values: ValueRecords | Callable[[], ValueRecords] | None = None,
    ) -> None:
        self._values = values
        self._events = events
        self.nodes = nodes
        self.peak_bytes = peak_bytes
        self.arrays = arrays
        self.simulated = simulated
        self.simulated_devices = simulated_devices
        self._node_times: tuple[NodeTime, ...] | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        """The events in the order in which they came; made when they are first asked for."""
        if not isinstance(self._events, tuple):
            events = self._events() if callable(self._events) else self._events
            self._events = tuple(sorted(events, key=lambda event: event.ns))  # threads may record events slightly late
        return self._events

    @property
    def values(self) -> ValueRecords | None:
        """The recorded values, None if they were not requested."""
        if callable(self._values):
            self._values = self._values()
        return self._values

    @property
    def has_values(self) -> bool:
        """True iff the values were recorded, which takes time between the nodes."""
        return self._values is not None

    def __repr__(self) -> str:
        runs = sum(1 for event in self.events if event.kind == "end")
        clock = " on the virtual clock of simulated devices" if self.simulated else ""
        return f"<gc.Trace {runs:,} node run{'' if runs == 1 else 's'} in {self.length / 1e6:,.3f} ms{clock}, at most {self.peak_bytes:,} bytes at once>"

    def timeline(self) -> Timeline:
        """The node runs and copies by device and link, in seconds from the first event.

        The memory of a device is that of `arrays`. On the virtual clock it counts each output from the start of its node to the end of the last node
        that takes it, and a view as a copy.
        """
        clock: Clock = "virtual clock" if self.simulated else "wall clock"
        return recorded_timeline(self._pairs(), self.events, self.nodes, clock, self.simulated_devices, CPU, self.arrays)

    def node_times(self) -> tuple[NodeTime, ...]:
        """The times of all nodes that ran, those in functions too.

        Their own times add up to the busy times of the devices.
        """
        if self._node_times is None:
            transfers = {node.name for node in self.nodes if is_transfer(node)}
            kernels = [run for run in self._pairs() if run[1].call or run[1].node not in transfers]
            self._node_times = times_of(kernels, CPU)
        return self._node_times

    @property
    def length(self) -> int:
        """The nanoseconds from the first to the last event."""
        return self.events[-1].ns - self.events[0].ns if self.events else 0

    def node_seconds(self) -> dict[str, float]:
        """The mean seconds of each node outside of functions, by name: measured times for a `CostModel`.

        Raises:
            FailedPreconditionError: the run was on simulated devices, whose virtual clock is itself a prediction.
        """
        if self.simulated:
            raise FailedPreconditionError(
                "Required a run on real devices: simulated ones have only the virtual clock, which measures nothing"
            )
        taken: dict[str, list[int]] = {}
        for start, end in self._pairs():
            if not end.call and not end.how:
                taken.setdefault(end.node, []).append(end.ns - start.ns)
        return {node: sum(times) / len(times) / 1e9 for node, times in taken.items()}

    def node_runs(self) -> dict[str, int]:
        """The number of runs of each node outside of functions, by name; 0 for dead nodes."""
        runs: dict[str, int] = {}
        for event in self.events:
            if not event.call and event.kind in {"end", "dead"}:
                runs[event.node] = runs.get(event.node, 0) + (event.kind == "end")
        return runs

    def call_runs(self) -> dict[str, int]:
        """The number of runs of each called function, by `Event.call` without the marks of repeats."""
        called: set[str] = set()
        for call in {event.call for event in self.events if event.call}:
            segments = call.split(" > ")
            called.update(" > ".join(segments[: count + 1]) for count in range(len(segments)))
        return dict(Counter(map(without_repeats, called)))

    def step_stats(self) -> StepStats:
        """The times of each node, by device."""
        by_device: dict[str, list[NodeExecStats]] = {}
        for device, stats in self._runs():
            by_device.setdefault(device or CPU, []).append(stats)
        entries = [DeviceStepStats(device, tuple(stats), device in self.simulated_devices) for device, stats in by_device.items()]
        return StepStats(tuple(entries))

    def chrome_trace(self) -> dict[str, Any]:
        """The run in the Trace Event Format of `chrome://tracing` and Perfetto.

        Times are in microseconds from the first event.
        """
        origin = min([event.ns for event in self.events], default=0)
        ops = {node.name: node.op for node in self.nodes}
        devices = {device: number for number, device in enumerate(dict.fromkeys([event.device or CPU for event in self.events]))}
        entries: list[dict[str, Any]] = [
            {"ph": "M", "name": "process_name", "pid": number, "args": {"name": self.label(device)}} for device, number in devices.items()
        ]
        for device, stats in self._runs():
            entries.append(
                {
                    "ph": "X",
                    "name": f"{stats.call} > {stats.node_name}" if stats.call else stats.node_name,
                    "cat": "op" if stats.call else ops.get(stats.node_name, "op"),
                    "pid": devices[device or CPU],
                    "tid": stats.thread_id,
                    "ts": (stats.all_start_nanos + stats.op_start_rel_nanos - origin) / 1000,
                    "dur": (stats.op_end_rel_nanos - stats.op_start_rel_nanos) / 1000,
                    "args": {"bytes": stats.output_bytes, **_place(stats)},
                }
            )
        entries += [
            {
                "ph": "i",
                "s": "t",
                "name": f"{event.kind} {event.path}",
                "cat": event.kind,
                "pid": devices[event.device or CPU],
                "tid": event.thread,
                "ts": (event.ns - origin) / 1000,
                "args": {"bytes": event.bytes, **_place(event)},
            }
            for event in self.events
            if event.kind in _INSTANTS
        ]
        return {"traceEvents": entries, "displayTimeUnit": "ns"}

    def label(self, device: str) -> str:
        """The name of a device, marked if it is simulated."""
        return f"{device} (simulated)" if device in self.simulated_devices else device

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `chrome_trace()` to a JSON file.

        Raises:
            FailedPreconditionError: it cannot be written.
        """
        write_file(Path(path), json.dumps(self.chrome_trace()).encode())

    def _runs(self) -> Iterator[tuple[str, NodeExecStats]]:
        """The statistics of each node run, with its device."""
        scheduled: dict[_Run, int] = {}
        for event in self.events:
            if event.kind == "scheduled":
                scheduled[_run(event)] = event.ns
        for start, event in self._pairs():
            taken = event.ns - start.ns
            yield (
                event.device,
                NodeExecStats(
                    node_name=event.node,
                    scheduled_nanos=min(start.ns, scheduled.get(_run(event), start.ns)),
                    all_start_nanos=start.ns,
                    op_start_rel_nanos=0,
                    op_end_rel_nanos=taken,
                    all_end_rel_nanos=taken,
                    thread_id=event.thread,
                    output_bytes=event.bytes,
                    frame=event.frame,
                    iteration=event.iteration,
                    call=event.call,
                    how=event.how,
                    around=event.around,
                ),
            )

    def _pairs(self) -> Iterator[NodeRun]:
        """The start and end events of each node run. A node whose kernel failed has no end and is left out."""
        open_runs: dict[tuple[_Run, int], Event] = {}
        for event in self.events:
            if event.kind == "start":
                open_runs[_run(event), event.thread] = event
            elif event.kind == "end":
                started = open_runs.pop((_run(event), event.thread), None) or _elsewhere(open_runs, _run(event))
                if started is not None:
                    yield started, event


def last_trace(graph: Graph) -> Trace | None:
    """The last recorded run of a graph, None without one."""
    return graph.trace if isinstance(graph.trace, Trace) else None


def _run(event: Event) -> _Run:
    return event.node, event.frame, event.iteration, event.around, event.call


def _place(run: Event | NodeExecStats) -> dict[str, Any]:
    """The loops and calls of an event for trace viewers, without empty entries."""
    fields: dict[str, Any] = {"frame": run.frame, "iteration": run.iteration}
    if run.around:
        fields |= {"frame": "/".join([*[frame for frame, _ in run.around], run.frame]), "iteration": list(run.iterations)}
    return fields | {name: value for name, value in (("call", run.call), ("how", run.how)) if value}


def _elsewhere(open_runs: dict[tuple[_Run, int], Event], run: _Run) -> Event | None:
    """Remove and return the start of a run that waited, and so ended in another thread."""
    waited = next((key for key in open_runs if key[0] == run), None)
    return None if waited is None else open_runs.pop(waited)
