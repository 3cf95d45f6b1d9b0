"""The recorded run of a graph, node by node, with the values that passed between the nodes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphcore.plumbing import FEEDABLE
from graphcore.runtime.core.events import MERGED, PASSED, Event
from graphcore.runtime.core.node_times import without_repeats
from graphcore.runtime.core.tokens import Tokens
from widgets.scene.run_names import run_names
from widgets.steps import RecordedSteps, StepRuns

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from graphcore.graph import Graph
    from graphcore.runtime import Trace
    from graphcore.runtime.core.tensor_stats import TensorStats

MAX_RUNS: Final = 50_000
"""The most runs of nodes in a view."""
MAX_PAGE_RUNS: Final = 10_000
"""The most runs of nodes in a page."""
MOST_SHOWN: Final = 60
"""The most characters of a value."""
NO_VALUES: Final = "without values: run with options=gc.RunOptions(values=True) to record them"
RAN, DEAD, FAILED, FED = range(4)
"""The end of a node run: it ran, it is on a branch that was not taken, its kernel failed, or its value was fed."""


def steps_of(graph: Graph, most: int = MAX_RUNS) -> RecordedSteps | None:
    """The last recorded run of a graph's sessions, None if there is none.

    Args:
        graph: the graph.
        most: the most runs of nodes; later ones are left out.
    """
    trace: Trace | None = graph.trace
    return None if trace is None else _Steps(graph, trace, most).made()


def page_steps(graph: Graph) -> RecordedSteps | None:
    """The recorded run that a page carries."""
    return steps_of(graph, MAX_PAGE_RUNS)


class _Run:
    """One run of a node. `values` are the statistics of its outputs."""

    __slots__ = ("event", "last", "name", "op", "state", "takes", "values")

    def __init__(self, event: Event, name: str, op: str, state: int) -> None:
        self.event = event
        self.name = name
        self.op = op
        self.state = state
        self.last = -1
        self.takes: list[int] = []
        self.values: list[TensorStats] = []


class _Steps:
    """Reads a trace."""

    def __init__(self, graph: Graph, trace: Trace, most: int) -> None:
        self._trace = trace
        self._names = run_names(graph, trace)
        self._most = most
        self._tokens = Tokens(graph.op_nodes())
        self._runs: list[_Run] = []
        self._open: dict[Hashable, int] = {}
        self._made: dict[Hashable, int] = {}
        self._values: dict[Hashable, list[TensorStats]] = {}
        self._again: set[str] = set()

    def made(self) -> RecordedSteps:
        """The columns of the run."""
        for stats in self._trace.values or ():
            self._values.setdefault((stats.node, stats.frame, stats.iteration, stats.around, stats.call), []).append(stats)
        events = [event for event in self._trace.events if event.kind in {"start", "end", "dead"}]
        self._feed(events)
        for event in events:
            self._add(event)
        for run in self._runs:
            if run.last < 0:  # its kernel has started and not ended
                run.state, run.last = FAILED, len(self._runs) - 1
        return self._columns()

    def _feed(self, events: Iterable[Event]) -> None:
        """Add the fed nodes, which have no events, before all others."""
        seen = {event.node for event in events if not event.call}
        readers = [node for node in {event.node: self._tokens.node_of(event) for event in events}.values() if node is not None]
        for source in dict.fromkeys([tensor.node for node in readers for tensor in node.inputs]):
            if source.op not in FEEDABLE or source.name in seen:
                continue
            number = len(self._runs)
            fed = _Run(Event("start", source.name, 0), source.name, source.op, FED)
            fed.last, fed.values = number, self._values.get((source.name, "", 0, (), ""), [])
            self._made[source.name, ("", 0, ())] = number
            self._runs.append(fed)

    def _add(self, event: Event) -> None:
        key = event.node, event.frame, event.iteration, event.around, event.call
        if event.kind == "end":
            number = self._open.pop(key, -1)
            if number >= 0:
                self._end(self._runs[number], number)
            return
        if len(self._runs) >= self._most:
            return
        number = len(self._runs)
        name, _ = self._names.name_of(without_repeats(event.call), event.node)
        run = _Run(event, name, self._names.op_of(without_repeats(event.call), event.node), DEAD if event.kind == "dead" else RAN)
        run.takes = sorted({self._made[token] for token in self._sources(event) if token in self._made})
        self._runs.append(run)
        if event.kind == "dead":
            run.last = number
            self._give(run, number)
        else:
            self._open[key] = number

    def _end(self, run: _Run, number: int) -> None:
        event = run.event
        run.last = number
        if number + 1 < len(self._runs) and self._runs[number + 1].event.call.startswith(_path(event)):
            run.last = len(self._runs) - 1
        own = self._values.get((event.node, event.frame, event.iteration, event.around, event.call))
        if own is not None:
            run.values = own
        elif event.how in {PASSED, MERGED}:
            given = [self._runs[source].values for source in run.takes if self._runs[source].state != DEAD]
            run.values = next((values[:1] for values in given if values), [])
        self._give(run, number)

    def _give(self, run: _Run, number: int) -> None:
        """Keep where the value of a run is now."""
        node = self._tokens.node_of(run.event)
        if node is not None:
            self._made[self._tokens.output(node, run.event)] = number
        else:
            self._made[run.event.call, run.event.node] = number

    def _sources(self, event: Event) -> list[Hashable]:
        node = self._tokens.node_of(event)
        if node is not None:
            return list(self._tokens.inputs(node, event))
        return [(event.call, source) for source in self._names.inputs_of(without_repeats(event.call), event.node)]

    def _columns(self) -> RecordedSteps:
        runs = self._runs
        self._again = _repeated(run.event.call for run in runs)
        labels: dict[tuple[str, str], int] = {}
        loops: dict[str, int] = {}
        texts: dict[str, int] = {}
        places = [self._loop(run.event) for run in runs]
        first = [run.values[0] if run.values else None for run in runs]
        words = ["; ".join([_words(value) for value in run.values[:2]]) for run in runs]
        notes = [] if self._trace.values is not None else [NO_VALUES]
        if len(runs) >= self._most:
            notes.append(f"the first {self._most:,} runs of nodes")
        return RecordedSteps(
            runs=StepRuns(
                labels=[labels.setdefault((run.name, run.op), len(labels)) for run in runs],
                states=[run.state for run in runs],
                lasts=[run.last for run in runs],
                loops=[loops.setdefault(loop, len(loops)) if loop else -1 for loop, _ in places],
                turns=[turn for _, turn in places],
                texts=[texts.setdefault(text, len(texts)) if text else -1 for text in words],
                lows=[_number(value and value.min) for value in first],
                highs=[_number(value and value.max) for value in first],
                means=[_number(value and value.mean) for value in first],
                nans=[sum(value.nan for value in run.values) for run in runs],
                infs=[sum(value.inf for value in run.values) for run in runs],
                counts=[len(run.takes) for run in runs],
                takes=[source for run in runs for source in run.takes],
            ),
            nodes=[name for name, _ in labels],
            ops=[op for _, op in labels],
            loops=list(loops),
            texts=list(texts),
            notes=notes,
        )

    def _loop(self, event: Event) -> tuple[str, int]:
        """The innermost loop of an event in words, and its iteration: "" outside of loops."""
        if event.frame:
            outer = ", ".join([f"{frame} {turn}" for frame, turn in event.around])
            place = f"{event.frame} in iteration {outer}" if outer else event.frame
            return (f"{place} of {event.call}" if event.call else place), event.iteration
        call = event.call
        while call:
            around, _, segment = call.rpartition(" > ")
            if _first_of(call) in self._again:
                caller = segment.partition(":")[0]
                return (f"{around} > {caller}" if around else caller), _turn(segment)
            call = around
        return "", 0


def _words(stats: TensorStats) -> str:
    """A tensor in words: its type, shape and value, the whole value of a small one."""
    detail = None if stats.detail is None else stats.detail.values
    value = stats.words
    if detail is not None and detail.size <= MOST_SHOWN:
        text = " ".join(np.array2string(detail, precision=4, threshold=MOST_SHOWN).split())
        value = text if len(text) <= MOST_SHOWN else value
    shape = f"[{','.join(map(str, stats.shape))}]"
    if stats.dtype == "bool" and not stats.shape and stats.mean is not None:
        return "True" if stats.mean else "False"
    return " ".join([part for part in ("" if stats.shape == () else f"{stats.dtype} {shape}", value) if part]) or stats.dtype


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _path(event: Event) -> str:
    """The beginning of the calls of all nodes within a call."""
    return f"{event.call} > {event.node}:" if event.call else f"{event.node}:"


def _first_of(call: str) -> str:
    """The first of the calls that repeat this one."""
    around, arrow, segment = call.rpartition(" > ")
    return around + arrow + segment.partition("#")[0]


def _turn(segment: str) -> int:
    number = segment.rpartition("#")[2]
    return int(number) - 1 if number.isdigit() and "#" in segment else 0


def _repeated(calls: Iterable[str]) -> set[str]:
    """The first ones of calls that are repeated."""
    found: set[str] = set()
    for call in set(calls):
        inner = call
        while inner:
            around, _, segment = inner.rpartition(" > ")
            if "#" in segment:
                found.add(_first_of(inner))
            inner = around
    return found
