"""The time lens: the times of a recorded run on boxes, as heat in words and tones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from graphcore.frontends.record import foreign_of, is_earlier
from graphcore.runtime.core.tracing import last_trace
from widgets.scene.run_names import run_names, split_name
from widgets.scene.timelines import CLOCKS, clock_notes, device_text
from widgets.times import RunTimes

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node
    from graphcore.runtime import Trace

NOT_RECORDED: Final = "No run is recorded: use %graph time, or options=gc.RunOptions(trace=True)"
NOT_RUN: Final = "No run is recorded: %graph time model(x), or gc.run(model, x), runs it once"
EARLIER: Final = "The last run is of an earlier version of the model: %graph time records one of this"
WAITING: Final = "No run is recorded yet: the next session.run will be"
_UNITS: Final = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))


class Spent:
    """The recorded times of some nodes together; see `RunTimes`."""

    __slots__ = ("bytes", "lasting", "longest", "nodes", "on", "own", "runs", "shortest", "threads", "total")

    def __init__(self, devices: int) -> None:
        self.nodes = self.runs = self.own = self.total = self.lasting = self.shortest = self.longest = self.bytes = self.threads = 0
        self.on = [0] * devices

    def add(self, runs: int, own: int, total: int, lasting: int, shortest: int, longest: int, size: int, threads: int) -> None:
        """Add the times of one node."""
        self.shortest = min(self.shortest, shortest) if self.nodes else shortest
        self.longest = max(self.longest, longest)
        self.threads = max(self.threads, threads)
        self.nodes += 1
        self.runs += runs
        self.own += own
        self.total += total
        self.lasting += lasting
        self.bytes += size


class RecordedTimes:
    """The recorded times of a graph, by the names of nodes in views."""

    def __init__(self, times: RunTimes) -> None:
        self.times = times
        names = [times.prefixes[place] + name for place, name in zip(times.places, times.names, strict=True)]
        self._rows = {name: row for row, name in enumerate(names)}

    def of(self, nodes: Iterable[Node]) -> Spent:
        """The times of some nodes together."""
        times, spent = self.times, Spent(len(self.times.devices))
        columns = (times.runs, times.own, times.total, times.lasting, times.shortest, times.longest, times.sizes, times.threads)
        for node in nodes:
            row = self._rows.get(node.name)
            if row is None:
                continue
            spent.add(*[column[row] for column in columns])
            for place, taken in enumerate(times.on[row] if times.on else ()):
                spent.on[place] += taken
        return spent

    def words(self, spent: Spent, count: int) -> str:
        """The times of a box of `count` nodes: `12.3 ms, 41 % of the step, self 0.2 ms, 128 runs`."""
        parts = [time_text(spent.total), share_text(spent.total, self.times)]
        if spent.own != spent.total:
            parts.append(f"self {time_text(spent.own)}")
        if count > 1:
            parts.append(f"{spent.runs:,} node run{'' if spent.runs == 1 else 's'}")
        elif spent.runs > 1:
            parts.append(f"{spent.runs:,} runs")
        return ", ".join(parts)


_recorded: WeakKeyDictionary[Graph, tuple[Trace, int, RecordedTimes]] = WeakKeyDictionary()


def recorded_times(graph: Graph) -> RecordedTimes | None:
    """The times of the last recorded run of a graph's sessions, None if there is none."""
    trace = last_trace(graph)
    if trace is None:
        return None
    cached = _recorded.get(graph)
    if cached is None or cached[0] is not trace or cached[1] != graph.version:
        cached = _recorded[graph] = (trace, graph.version, RecordedTimes(run_times(graph, trace)))
    return cached[2]


def run_times(graph: Graph, trace: Trace) -> RunTimes:
    """The times of a recorded run, by the names of nodes in views."""
    names, times = run_names(graph, trace), trace.node_times()
    busy = {device: place for place, device in enumerate(dict.fromkeys([device for time in times for device in time.devices]))}
    sums: dict[str, Spent] = {}
    hidden: dict[str, int] = defaultdict(int)
    for time in times:
        name, is_shown = names.name_of(time.call, time.node)
        if not is_shown:
            hidden[name] += time.own
            continue
        spent = sums.setdefault(name, Spent(len(busy)))
        spent.add(time.runs, time.own, time.total, time.lasting, time.shortest, time.longest, time.bytes, time.threads)
        for device, taken in time.devices.items():
            spent.on[busy[device]] += taken
    for name, own in hidden.items():  # what views do not show is the own time of its caller, whose total has it already
        if name in sums:
            sums[name].own += own
    prefixes: dict[str, int] = {}
    split = [split_name(name) for name in sums]
    rows = list(sums.values())
    several = len(busy) > 1
    return RunTimes(
        clock="; ".join([CLOCKS["virtual clock" if trace.simulated else "wall clock"], *clock_notes(trace)]),
        length=trace.length,
        whole=sum([time.own for time in times]) if several else trace.length,
        devices=[device_text(device, simulated=device in trace.simulated_devices) for device in busy],
        places=[prefixes.setdefault(prefix, len(prefixes)) for prefix, _ in split],
        prefixes=list(prefixes),
        names=[name for _, name in split],
        runs=[row.runs for row in rows],
        own=[row.own for row in rows],
        total=[row.total for row in rows],
        lasting=[row.lasting for row in rows],
        shortest=[row.shortest for row in rows],
        longest=[row.longest for row in rows],
        sizes=[row.bytes for row in rows],
        threads=[row.threads for row in rows],
        on=[row.on for row in rows] if several else [],
    )


def times_note(graph: Graph) -> str:
    """The reason if no times are recorded."""
    if foreign_of(graph) is not None:
        return EARLIER if is_earlier.of(graph) else NOT_RUN
    return NOT_RECORDED if graph.recording is None else WAITING


def time_text(ns: int) -> str:
    """A duration with three digits: `12.3 ms`."""
    size, unit = next(((size, unit) for size, unit in _UNITS if ns >= size), _UNITS[-1])
    digits = 0 if size == 1 or ns >= 100 * size else 1 if ns >= 10 * size else 2
    scale = 10**digits
    rounded = (2 * ns * scale + size) // (2 * size)
    return f"{rounded // scale:,}{f'.{rounded % scale:0{digits}}' if digits else ''} {unit}"


def share_text(time: int, times: RunTimes) -> str:
    """The share of the step, or of the time of all devices."""
    percent = (200 * time + times.whole) // (2 * times.whole) if times.whole else 0
    share = f"{percent} %" if percent or not time else "under 1 %"
    return f"{share} of {'the time of all devices' if len(times.devices) > 1 else 'the step'}"
