"""The run that the stepper of a view shows: the one recorded last, or one that is stepped through."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from graphcore.runtime.stepping.stepped_run import last_stepped_run
from widgets.messages import StepsMessage
from widgets.requests import LiveStepRequest
from widgets.scene.run_names import names_of_unfinished
from widgets.scene.steps import DEAD, FAILED, MAX_RUNS, StepReader, StepRow, steps_of
from widgets.scene.timelines import box_around
from widgets.steps import LiveRun, RecordedSteps, StepTest

if TYPE_CHECKING:
    from graphcore.graph import Graph
    from graphcore.runtime import SteppedRun

SLICE_SECONDS: Final = 0.1
"""A run that goes on to a breakpoint reports after this time."""
_OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


class Stepping:
    """The steps of a graph's run, for one view."""

    def __init__(self) -> None:
        self._key = ""
        self._steps: RecordedSteps | None = None
        self._live: _Live | None = None

    def has_begun(self, graph: Graph) -> bool:
        """True once for each run that is stepped through."""
        run = last_stepped_run.of(graph)
        if run is None or run.is_over or (self._live is not None and self._live.run is run):
            return False
        self._follow(graph)
        return True

    def message(self, graph: Graph, held_key: str) -> StepsMessage:
        """The run of a graph, without the boxes of its nodes.

        Args:
            graph: the graph.
            held_key: the key of the steps that the viewer has.
        """
        live = self._follow(graph)
        source = graph.trace if live is None else live.run
        size = "" if live is None else f" {live.size} {live.run.is_over}"
        key = f"{id(graph)} {graph.version} {id(source)}{size}"
        if key != self._key:
            self._key, self._steps = key, steps_of(graph) if live is None else live.reader.steps(is_over=live.run.is_over)
        return StepsMessage(
            key=key, run=str(id(source)), steps=None if key == held_key else self._steps, live=None if live is None else live.state()
        )

    def go(self, graph: Graph, boxes: Mapping[str, str], request: LiveStepRequest) -> bool:
        """Let the run go on as a request says, at most for a moment. True if the run has ended by that."""
        live = self._follow(graph)
        if live is None or live.run.is_over:
            return False
        live.go(request, boxes)
        return live.run.is_over

    def _follow(self, graph: Graph) -> _Live | None:
        """The run that is stepped through, read up to now; None if there is none."""
        run = last_stepped_run.of(graph)
        if run is None:
            self._live = None
        elif self._live is None or self._live.run is not run or self._live.version != graph.version:
            self._live = _Live(graph, run)
        if self._live is not None:
            self._live.read()
        return self._live


class _Live:
    """A run that is stepped through."""

    def __init__(self, graph: Graph, run: SteppedRun) -> None:
        self.run = run
        self.version = graph.version
        self.reader = StepReader(graph, names_of_unfinished(graph, run.nodes), MAX_RUNS, run.feeds, run.nodes, same=run.same)
        self._row = -1
        self._is_on_way = False
        self._over = (0, "")
        self._events = 0
        self._stats = 0

    @property
    def size(self) -> int:
        """A number that grows with each event."""
        return self._events

    def read(self) -> list[int]:
        """Read what has happened since the last call. Returns the rows that have ended."""
        events = self.run.events_from(self._events)
        stats, self._stats = self.run.stats_from(self._stats)
        self._events += len(events)
        rows, before = len(self.reader.rows), len(self.reader.ended)
        self.reader.read(events, stats)
        ended = self.reader.ended[before:]
        begun = range(rows, len(self.reader.rows))
        seen = [number for number in (*begun, *ended) if self.reader.rows[number].how == ""]
        self._row = seen[-1] if seen else self._row
        return ended

    def state(self) -> LiveRun:
        """The state of the run for viewers."""
        if self.run.is_over:
            error = self.run.error
            return LiveRun(state="over", row=self._row, error="" if error is None else str(error).partition("\n")[0].strip())
        place = self.run.place
        return LiveRun(
            state="runs" if place is None else "waits",
            row=self._row,
            is_on_way=self._is_on_way,
            next="" if place is None else self.reader.name_of(*place),
            waiting=self.reader.waiting,
        )

    def go(self, request: LiveStepRequest, boxes: Mapping[str, str]) -> None:
        """Let the run go on, as far as it comes in a moment."""
        end = time.monotonic() + SLICE_SECONDS
        rows = self.reader.rows
        if not self._is_on_way:
            self._over = len(rows), self._next_box(boxes)
        first, box = self._over
        self._is_on_way = False
        while not self.run.is_over:
            self.run.advance(max(0.0, end - time.monotonic()))
            ended = self.read()
            if request.way == "step":
                return
            if request.way == "over":
                is_within = first < len(rows) and rows[first].last < 0
                if not is_within and (not box or self._next_box(boxes) != box):
                    return
            for number in ended if request.way == "run" else ():
                if self._stops(rows[number], request, boxes):
                    self._row = number
                    return
            if time.monotonic() >= end:
                self._is_on_way = True
                return

    def _next_box(self, boxes: Mapping[str, str]) -> str:
        place = self.run.place
        return "" if place is None else box_around(self.reader.name_of(*place), boxes)

    def _stops(self, row: StepRow, request: LiveStepRequest, boxes: Mapping[str, str]) -> bool:
        if row.name in request.stops or box_around(row.name, boxes) in request.stops:
            return True
        if request.on_bad and (row.nans or row.infs):
            return True
        return bool(request.where) and all(self._holds(test, row) for test in request.where)

    def _holds(self, test: StepTest, row: StepRow) -> bool:
        match test.quantity:
            case "name":
                return test.text.lower() in row.name.lower()
            case "dead":
                return row.state == DEAD
            case "failed":
                return row.state == FAILED
            case "iteration":
                loop, turn = self.reader.loop_of(row.event)
                value: float | None = turn if loop else None
            case "nan" | "inf":
                value = row.nans if test.quantity == "nan" else row.infs
            case _:
                value = None if row.first is None else getattr(row.first, test.quantity)
        return isinstance(value, int | float) and _OPERATORS[test.operator](value, test.number)
