"""The timelines of a graph's step, sent in messages and stored in pages."""

from __future__ import annotations

import msgspec


class TimelineLane(msgspec.Struct, frozen=True, kw_only=True):
    """A device, or a link between two.

    `name` is the full name, `text` a short one, marked if it is simulated. `busy` is in nanoseconds; `peak` is the most bytes of tensors alive at
    once on a device, -1 for a link.
    """

    name: str
    text: str
    link: bool = False
    busy: int = 0
    peak: int = -1


class TimelineSpans(msgspec.Struct, frozen=True, kw_only=True):
    """The spans of a timeline by start, as columns of equal length.

    `lanes` and `labels` are places in the lists of the timeline; `starts` and `lasting` are in nanoseconds from the start of the step; `sizes` are in
    bytes; `iterations` are those of the innermost loop, -1 outside of loops.
    """

    lanes: list[int] = []
    labels: list[int] = []
    starts: list[int] = []
    lasting: list[int] = []
    sizes: list[int] = []
    iterations: list[int] = []


class TimelineMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The tensors that are alive on devices in a step, by start.

    They are columns of equal length, as `TimelineSpans`.
    """

    lanes: list[int] = []
    labels: list[int] = []
    starts: list[int] = []
    lasting: list[int] = []
    sizes: list[int] = []


class StepTimeline(msgspec.Struct, frozen=True, kw_only=True):
    """A predicted or recorded step.

    `clock` and `notes` tell where the times come from. `labels` name what runs or is copied, and `nodes` are the nodes that they belong to, those in
    functions by their names in open calls. `length` is in nanoseconds.
    """

    title: str
    clock: str
    notes: list[str] = []
    length: int = 0
    lanes: list[TimelineLane] = []
    labels: list[str] = []
    nodes: list[str] = []
    spans: TimelineSpans = TimelineSpans()
    memory: TimelineMemory = TimelineMemory()
