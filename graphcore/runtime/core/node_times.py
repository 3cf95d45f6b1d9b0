"""Times of nodes in a recorded run, which add up to the times of its devices."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from graphcore.runtime.core.events import SKIPPED
from graphcore.runtime.core.trace_timeline import NodeRun

_REPEAT: Final = re.compile(r"#\d+(?= >|$)")
"""The mark of a further run of the same function by a node in `Event.call`."""


class NodeTime(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of one node in a recorded run. Times are in nanoseconds.

    Each moment of a device belongs to one node: of those that run there, to the one that began last. So the `own` times of all nodes add up
    to the busy times of all devices. A node that calls a function has as `total` its own time and those of all nodes in the function.

    Args:
        node: the node.
        call: the surrounding function calls as in `Event.call`, without the marks of repeated runs; "" outside of functions.
        runs: the number of its runs.
        own: the time without functions that it calls.
        total: the time with functions that it calls.
        lasting: the sum of the durations of its runs, in which others may have run too.
        shortest, longest: the least and the greatest duration of a run.
        bytes: the bytes of its outputs in all runs.
        devices: the total time on each device, by name.
        threads: the number of its threads.
    """

    node: str
    call: str
    runs: int
    own: int
    total: int
    lasting: int
    shortest: int
    longest: int
    bytes: int
    devices: dict[str, int]
    threads: int


def without_repeats(call: str) -> str:
    """An `Event.call` without the marks of repeated runs of functions."""
    return _REPEAT.sub("", call)


class _Sum:
    """The times of one node while they are added up."""

    __slots__ = ("bytes", "durations", "own", "threads", "total")

    def __init__(self) -> None:
        self.own: dict[str, int] = {}
        self.total: dict[str, int] = {}
        self.durations: list[int] = []
        self.threads: set[int] = set()
        self.bytes = 0


def times_of(runs: Iterable[NodeRun], local: str) -> tuple[NodeTime, ...]:
    """The times of all nodes that ran, in the order of their first ends.

    Args:
        runs: the start and the end of each kernel.
        local: the device of events without one.
    """
    taken = [run for run in runs if run[1].how not in SKIPPED]
    sums: dict[tuple[str, str], _Sum] = defaultdict(_Sum)
    plain: dict[str, str] = {}
    for (start, end), own in zip(taken, _own_times(taken), strict=True):
        call = plain.get(end.call)
        if call is None:
            call = plain[end.call] = without_repeats(end.call)
        summed, device = sums[call, end.node], end.device or local
        summed.own[device] = summed.own.get(device, 0) + own
        summed.durations.append(end.ns - start.ns)
        summed.threads.add(start.thread)
        summed.bytes += end.bytes
    for (call, node), summed in sums.items():
        for place in ((call, node), *_callers(call)):
            if place in sums:
                total = sums[place].total
                for device, own in summed.own.items():
                    total[device] = total.get(device, 0) + own
    return tuple([_node_time(call, node, summed) for (call, node), summed in sums.items()])


def _node_time(call: str, node: str, summed: _Sum) -> NodeTime:
    return NodeTime(
        node=node,
        call=call,
        runs=len(summed.durations),
        own=sum(summed.own.values()),
        total=sum(summed.total.values()),
        lasting=sum(summed.durations),
        shortest=min(summed.durations),
        longest=max(summed.durations),
        bytes=summed.bytes,
        devices=summed.total,
        threads=len(summed.threads),
    )


def _callers(call: str) -> Iterator[tuple[str, str]]:
    """The nodes whose calls surround those in `call`, with their own calls, outermost first."""
    around = ""
    for segment in call.split(" > ") if call else ():
        yield around, segment.partition(":")[0]
        around = f"{around} > {segment}" if around else segment


def _own_times(runs: Sequence[NodeRun]) -> list[int]:
    """The own time of each run: while no run that began later is under way on the same device."""
    own = [0] * len(runs)
    starts = [start.ns for start, _ in runs]
    ends = [end.ns for _, end in runs]
    depths = [end.call.count(" > ") + bool(end.call) for _, end in runs]
    by_device: dict[str, list[int]] = defaultdict(list)
    for place, (_, event) in enumerate(runs):
        by_device[event.device].append(place)
    for places in by_device.values():
        # A caller that begins together with a node of its function comes first.
        places.sort(key=lambda place: (starts[place], -ends[place], depths[place]))
        under_way: list[int] = []
        now = 0
        for place in [*places, -1]:
            until = starts[place] if place >= 0 else max(ends[last] for last in places)
            while under_way and now < until:
                latest = under_way[-1]
                end = ends[latest]
                if end > until:
                    own[latest] += until - now
                    break
                if end > now:
                    own[latest] += end - now
                    now = end
                under_way.pop()
            now = until
            under_way.append(place)
    return own
