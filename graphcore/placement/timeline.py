"""Timelines of a step, predicted or recorded: spans on the lanes of devices and links."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

Clock = Literal["prediction", "wall clock", "virtual clock"]
ARROW: Final = " -> "
"""The separator of the two devices in the name of a link."""


class Span(msgspec.Struct, frozen=True):
    """A node that runs, or a tensor that is copied, in a step.

    Args:
        lane: the name of the device; for a copy `source -> destination`.
        name: the node, or the tensor.
        start, end: seconds from the start of the step.
        bytes: the size of the outputs, or of the tensor; 0 if unknown.
        frame, iteration: its loop in a recorded run, as in `Event`.
        call: the surrounding function calls in a recorded run, as in `Event`.
        times: the number of runs that a predicted span stands for.
    """

    lane: str
    name: str
    start: float
    end: float
    bytes: int = 0
    frame: str = ""
    iteration: int = 0
    call: str = ""
    times: float = 1.0

    @property
    def is_copy(self) -> bool:
        """True for a copy on a link between devices."""
        return ARROW in self.lane


class Held(msgspec.Struct, frozen=True):
    """Memory that a tensor holds on a device for some time of a step.

    Args:
        device: the name of the device.
        name: the node that made the tensor; for one that was copied from another device the tensor.
        start, end: seconds from the start of the step.
        bytes: the size.
        call: the surrounding function calls in a recorded run, as in `Event`.
    """

    device: str
    name: str
    start: float
    end: float
    bytes: int
    call: str = ""


class Lane(msgspec.Struct, frozen=True):
    """A device, or a link from one device to another.

    Args:
        name: as in `Span.lane`.
        busy: the seconds in which something runs there.
        peak_bytes: the most bytes of tensors alive at once on a device, None for a link. Tensors of unknown size do not count.
        simulated: True if the device, or both ends of the link, are simulated.
    """

    name: str
    busy: float
    peak_bytes: int | None = None
    simulated: bool = False

    @property
    def is_link(self) -> bool:
        """True for a link."""
        return ARROW in self.name

    def __str__(self) -> str:
        return f"{self.name} (simulated)" if self.simulated else self.name


class Timeline(msgspec.Struct, frozen=True):
    """The spans of a step on the lanes of devices and links.

    Args:
        clock: the origin of the times: a prediction, the wall clock of a recorded run, or the virtual clock of simulated devices.
        spans: by start.
        lanes: the devices, then the links.
        makespan: seconds from the start of the step to the end of the last span.
        notes: the assumptions behind the times, in words.
        memory: the tensors that make the peaks of the devices, by start.
    """

    clock: Clock
    spans: tuple[Span, ...]
    lanes: tuple[Lane, ...]
    makespan: float
    notes: tuple[str, ...] = ()
    memory: tuple[Held, ...] = ()

    def __repr__(self) -> str:
        count = len(self.spans)
        return f"<gc.Timeline by {self.clock}: {count:,} span{'' if count == 1 else 's'} in {self.makespan * 1e3:,.3f} ms>"

    def __str__(self) -> str:
        rows = [
            f"  {lane}: busy {lane.busy * 1e3:,.3f} ms" + ("" if lane.peak_bytes is None else f", at most {lane.peak_bytes:,} bytes")
            for lane in self.lanes
        ]
        return "\n".join([repr(self), *rows, *[f"  {note}" for note in self.notes]])


def make_timeline(
    clock: Clock,
    spans: Iterable[Span],
    peaks: Mapping[str, int],
    simulated: Iterable[str],
    notes: tuple[str, ...] = (),
    memory: Iterable[Held] = (),
) -> Timeline:
    """Make a timeline, with lanes by name, devices first.

    Args:
        clock, spans, notes, memory: as in `Timeline`; spans and memory in any order.
        peaks: the peaks of memory by device; every device in it has a lane.
        simulated: the names of the simulated devices.
    """
    ordered = tuple(sorted(spans, key=lambda span: span.start))
    busy: dict[str, float] = {**dict.fromkeys(peaks, 0.0), **_busy(ordered)}
    virtual = set(simulated)
    lanes = [
        Lane(name, busy[name], None if ARROW in name else peaks.get(name, 0), virtual.issuperset(name.split(ARROW)))
        for name in sorted(busy, key=lambda name: (ARROW in name, name))
    ]
    return Timeline(
        clock,
        ordered,
        tuple(lanes),
        max([span.end for span in ordered], default=0.0),
        notes,
        tuple(sorted(memory, key=lambda held: held.start)),
    )


def _busy(spans: Iterable[Span]) -> dict[str, float]:
    """The seconds in which anything runs, by lane, of spans by start."""
    busy: dict[str, float] = defaultdict(float)
    until: dict[str, float] = {}
    for span in spans:
        begin = max(span.start, until.get(span.lane, span.start))
        busy[span.lane] += max(0.0, span.end - begin)
        until[span.lane] = max(span.end, until.get(span.lane, span.end))
    return busy


def peak(intervals: Iterable[tuple[float, float, int]]) -> int:
    """The most bytes alive at once, of tensors with start, end and bytes; both ends count."""
    changes = [change for start, end, size in intervals for change in ((start, size), (end, -size))]
    held = most = 0
    for _, size in sorted(changes, key=lambda change: (change[0], -change[1])):
        held += size
        most = max(most, held)
    return most
