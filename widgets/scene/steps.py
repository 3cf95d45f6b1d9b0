"""The recorded run of a graph, node by node, with the values that passed between the nodes."""

from __future__ import annotations

import math
from itertools import count, takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphcore.frontends.record import foreign_of
from graphcore.plumbing import FEEDABLE, WHILE
from graphcore.runtime.core.events import CONSTANT, MERGED, PASSED, Event
from graphcore.runtime.core.node_times import without_repeats
from graphcore.runtime.core.tokens import Tokens
from graphcore.runtime.core.tracing import last_trace
from graphcore.runtime.stepping.stepped_run import last_stepped_run
from widgets.scene.run_names import RunNames, names_of_unfinished, run_names
from widgets.steps import RecordedSteps, StepRuns

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Mapping

    from graphcore.graph import Graph
    from graphcore.runtime import Trace
    from graphcore.runtime.core.tensor_stats import TensorStats
    from graphcore.runtime.core.value_records import Key

MAX_RUNS: Final = 50_000
"""The most runs of nodes in a view."""
MAX_PAGE_RUNS: Final = 10_000
"""The most runs of nodes in a page."""
MOST_SHOWN: Final = 60
"""The most characters of a value."""
MOST_OUTPUTS: Final = 2
"""The most outputs of a node whose values are shown."""
NO_VALUES: Final = "without values: run with options=gc.RunOptions(values=True) to record them"
RAN, DEAD, FAILED, FED, RUNNING = range(5)
"""The end of a node run: it ran, it is on a branch that was not taken, its kernel failed, its value was fed, or it still runs."""


def steps_of(graph: Graph, most: int = MAX_RUNS) -> RecordedSteps | None:
    """The last recorded run of a graph, or the one that is stepped through; None if there is none.

    Args:
        graph: the graph.
        most: the most runs of nodes; later ones are left out.
    """
    stepped = last_stepped_run.of(graph)
    if stepped is not None:
        reader = StepReader(graph, names_of_unfinished(graph, stepped.nodes), most, stepped.feeds, same=stepped.same)
        reader.read(stepped.events_from(0), stepped.stats_from(0)[0])
        return reader.steps(is_over=stepped.is_over)
    trace = last_trace(graph)
    if trace is None:
        return None
    same = {} if trace.values is None else trace.values.same
    reader = StepReader(graph, run_names(graph, trace), most, _fed(graph, trace), same=same)
    reader.read(trace.events, trace.values or ())
    return reader.steps(notes=[] if trace.values is not None else [NO_VALUES])


def page_steps(graph: Graph) -> RecordedSteps | None:
    """The recorded run that a page carries."""
    return steps_of(graph, MAX_PAGE_RUNS)


def _fed(graph: Graph, trace: Trace) -> list[str]:
    """The names of the fed nodes of a run: its nodes take their values, and they have no events."""
    foreign = foreign_of(graph)
    inputs = {name for name, node in foreign.nodes.items() if node.kind == "input"} if foreign is not None else set()
    nodes = {node.name: node for node in graph.op_nodes()}
    seen = {event.node for event in trace.events if not event.call}
    sources = [tensor.node for name in seen if name in nodes for tensor in nodes[name].inputs]
    return sorted({source.name for source in sources if (source.op in FEEDABLE or source.name in inputs) and source.name not in seen})


class StepRow:
    """One run of a node.

    Attributes:
        event: its start.
        name: the node as views name it.
        op: its op, "" if unknown.
        state: what became of it.
        last: the last run within its call; -1 before its end.
        takes: the runs whose values and control it takes.
        given: those whose values it takes, in the order of its inputs.
        values: the statistics of its outputs, once they are known.
    """

    __slots__ = ("event", "given", "how", "last", "name", "op", "state", "takes", "text", "values")

    def __init__(self, event: Event, name: str, op: str, state: int) -> None:
        self.event = event
        self.how = ""
        self.name = name
        self.op = op
        self.state = state
        self.last = -1
        self.takes: list[int] = []
        self.given: list[int] = []
        self.values: list[TensorStats] | None = None
        self.text = ""

    @property
    def first(self) -> TensorStats | None:
        """The statistics of its first output."""
        return self.values[0] if self.values else None

    @property
    def nans(self) -> int:
        """The number of NaNs in its outputs."""
        return sum([value.nan for value in self.values or ()])

    @property
    def infs(self) -> int:
        """The number of infinities in its outputs."""
        return sum([value.inf for value in self.values or ()])


class StepReader:
    """Reads the events of a run, all at once or as they come.

    Args:
        graph: the graph.
        names: the names in views.
        most: the most runs of nodes; later ones are left out.
        feeds: the names of the fed nodes, which have no events.
        nodes: the names of the nodes of the graph that may run, of a run that has not ended.
        same: for tensors of nodes that needed no kernel, the tensor with the same value, as `ValueRecords.same`.

    Attributes:
        rows: the runs of nodes.
        ended: the runs that have ended, or were dead, in the order of their ends.
    """

    def __init__(
        self,
        graph: Graph,
        names: RunNames,
        most: int,
        feeds: Iterable[str],
        nodes: Collection[str] = (),
        same: Mapping[Key, Key] = MappingProxyType({}),
    ) -> None:
        self.rows: list[StepRow] = []
        self.ended: list[int] = []
        self._names = names
        self._most = most
        self._tokens = Tokens(graph.op_nodes())
        self._open: dict[Hashable, int] = {}
        self._made: dict[Hashable, int] = {}
        self._values: dict[Hashable, list[TensorStats]] = {}
        self._again: set[str] = set()
        self._carried: set[str] = set()
        self._resolved = 0
        self._running = frozenset(nodes)
        self._same = same
        self._constants: dict[tuple[str, str], list[TensorStats]] = {}
        self._consumers: dict[int, set[str]] = {}
        for name in feeds:
            row = StepRow(Event("start", name, 0), name, self._names.op_of("", name), FED)
            row.last = self._made[name, ("", 0, ())] = len(self.rows)
            self.ended.append(row.last)
            self.rows.append(row)
            self._expect(row, row.last)

    def read(self, events: Iterable[Event], stats: Iterable[TensorStats]) -> None:
        """Read further events, and the values that were recorded with them."""
        for value in stats:
            self._values.setdefault((value.node, value.frame, value.iteration, value.around, value.call), []).append(value)
        for event in events:
            if event.kind in {"start", "end", "dead"}:
                self._add(event)
        for number in self.ended[self._resolved :]:
            self._resolve(self.rows[number])
        self._resolved = len(self.ended)

    def name_of(self, call: str, node: str) -> str:
        """The name in views of a node of an event."""
        return self._names.name_of(without_repeats(call), node)[0]

    def _add(self, event: Event) -> None:
        key = event.node, event.frame, event.iteration, event.around, event.call
        if event.kind == "end":
            number = self._open.pop(key, -1)
            if number >= 0:
                self._end(self.rows[number], number, event.how)
            return
        if len(self.rows) >= self._most:
            return
        number = len(self.rows)
        row = StepRow(
            event, self.name_of(event.call, event.node), self._op_of(event.call, event.node), DEAD if event.kind == "dead" else RAN
        )
        if event.call and self._names.is_carried(without_repeats(event.call), event.node):
            self._carried.add(row.name)
        row.given = self._made_by(self._value_sources(event))
        row.takes = sorted(set(self._made_by(self._sources(event))))
        self.rows.append(row)
        for source in row.takes:
            self._consumers.get(source, set()).discard(event.node)
        if event.kind == "dead":
            row.last = number
            self.ended.append(number)
            self._give(row, number)
        else:
            self._open[key] = number

    def _end(self, row: StepRow, number: int, how: str) -> None:
        row.last, row.how = number, how
        if number + 1 < len(self.rows) and self.rows[number + 1].event.call.startswith(_path(row.event)):
            row.last = len(self.rows) - 1
        self.ended.append(number)
        self._give(row, number)
        for inner in range(number + 1, row.last + 1):
            self._consumers.pop(inner, None)
        self._expect(row, number)

    @property
    def waiting(self) -> list[tuple[int, str]]:
        """The runs whose values wait for nodes that have not run, and the names of these nodes in views."""
        rows = self.rows
        return [
            (number, self.name_of(rows[number].event.call, name)) for number, names in self._consumers.items() for name in sorted(names)
        ]

    def _expect(self, row: StepRow, number: int) -> None:
        """Keep the nodes that will take the value of a run."""
        if not self._running:
            return
        call = row.event.call
        names = self._names.consumers_of(without_repeats(call), row.event.node)
        self._consumers[number] = {name for name in names if call or name in self._running}

    def _give(self, row: StepRow, number: int) -> None:
        """Keep where the value of a run is now."""
        node = self._tokens.node_of(row.event)
        if node is not None:
            self._made[self._tokens.output(node, row.event)] = number
        else:
            self._made[row.event.call, row.event.node] = number

    def _resolve(self, row: StepRow) -> None:
        """Find the values of a run that has ended."""
        event = row.event
        own = self._values.get(_key(event.node, event))
        if own is None and row.how in {PASSED, MERGED}:
            own = self._same_values(event) or (self._passed_on(row) if row.how == PASSED else [])
        if row.how == CONSTANT:  # it is recorded once for all iterations of a frame
            own = self._constants.setdefault((event.node, event.call), own or [])
        row.values = own or []
        more = len(row.values) - MOST_OUTPUTS
        row.text = "; ".join([*map(_words, row.values[:MOST_OUTPUTS]), *([f"{more} more"] if more > 0 else [])])

    def _same_values(self, event: Event) -> list[TensorStats]:
        """The values of the tensors that have the values of a node without a kernel."""
        sources = takewhile(bool, (self._same.get((event.call, event.node, output)) for output in count()))
        values = [self._value_of(source, event) for source in sources if source is not None]
        return [value for value in values if value is not None]

    def _value_of(self, tensor: Key, event: Event) -> TensorStats | None:
        """The value of a tensor in the iteration of an event, or in those around it."""
        call, node, output = tensor
        frame, iteration, around = event.frame, event.iteration, event.around
        while True:
            values = self._values.get((node, frame, iteration, around, call), ())
            value_of_output = next((value for value in values if value.output == output), None)
            if value_of_output is not None or not frame:
                return value_of_output
            (frame, iteration), around = (around[-1], around[:-1]) if around else (("", 0), ())

    def _passed_on(self, row: StepRow) -> list[TensorStats]:
        """The value of the input that a node passes on."""
        passed = [self.rows[source].values for source in row.given if self.rows[source].state != DEAD]
        taken = next((values for values in passed if values), [])
        node = self._tokens.node_of(row.event)
        output = node.inputs[0].index if node is not None and node.inputs else 0
        return [value for value in taken if value.output == output] or taken[:1]

    def _op_of(self, call: str, node: str) -> str:
        return self._names.op_of(without_repeats(call), node)

    def _sources(self, event: Event) -> list[Hashable]:
        node = self._tokens.node_of(event)
        if node is not None:
            return list(self._tokens.inputs(node, event))
        return [(event.call, source) for source in self._names.inputs_of(without_repeats(event.call), event.node)]

    def _value_sources(self, event: Event) -> list[Hashable]:
        node = self._tokens.node_of(event)
        if node is not None:
            return list(self._tokens.values(node, event))
        return [(event.call, source) for source in self._names.value_inputs_of(without_repeats(event.call), event.node)]

    def _made_by(self, sources: Iterable[Hashable]) -> list[int]:
        return [self._made[source] for source in sources if source in self._made]

    def steps(self, *, is_over: bool = True, notes: Iterable[str] = ()) -> RecordedSteps:
        """The columns of the runs so far.

        Args:
            is_over: nodes without an end have failed; otherwise they still run.
            notes: what is missing.
        """
        rows = self.rows
        self._again = _repeated(row.event.call for row in rows)
        labels: dict[tuple[str, str], int] = {}
        loops: dict[str, int] = {}
        texts: dict[str, int] = {}
        places = [self.loop_of(row.event) for row in rows]
        first = [row.first for row in rows]
        limit = [f"the first {self._most:,} runs of nodes"] if len(rows) >= self._most else []
        return RecordedSteps(
            runs=StepRuns(
                labels=[labels.setdefault((row.name, row.op), len(labels)) for row in rows],
                states=[row.state if row.last >= 0 else FAILED if is_over else RUNNING for row in rows],
                lasts=[row.last if row.last >= 0 else len(rows) - 1 for row in rows],
                loops=[loops.setdefault(loop, len(loops)) if loop else -1 for loop, _ in places],
                turns=[turn for _, turn in places],
                texts=[texts.setdefault(row.text, len(texts)) if row.text else -1 for row in rows],
                lows=[_number(value and value.min) for value in first],
                highs=[_number(value and value.max) for value in first],
                means=[_number(value and value.mean) for value in first],
                nans=[row.nans for row in rows],
                infs=[row.infs for row in rows],
                counts=[len(row.takes) for row in rows],
                takes=[source for row in rows for source in row.takes],
            ),
            nodes=[name for name, _ in labels],
            carried=[place for place, (name, _) in enumerate(labels) if name in self._carried],
            ops=[op for _, op in labels],
            loops=list(loops),
            texts=list(texts),
            notes=[*notes, *limit],
        )

    def loop_of(self, event: Event) -> tuple[str, int]:
        """The innermost loop of an event in words, and its iteration: "" outside of loops."""
        if event.frame:
            outer = ", ".join([f"{frame} {turn}" for frame, turn in event.around])
            place = f"{event.frame} in iteration {outer}" if outer else event.frame
            return (f"{place} of {event.call}" if event.call else place), event.iteration
        call = event.call
        while call:
            around, _, segment = call.rpartition(" > ")
            caller = segment.partition(":")[0]
            if _first_of(call) in self._again or self._op_of(around, caller) in WHILE:
                return self.name_of(around, caller), _turn(segment)
            call = around
        return "", 0


def _words(stats: TensorStats) -> str:
    """A tensor in words: its type, shape and value, the whole value of a small one."""
    kept = stats.small if stats.detail is None else stats.detail.values
    value = stats.words
    if kept is not None and kept.ndim and kept.size <= MOST_SHOWN:
        text = " ".join(np.array2string(kept, precision=4, threshold=MOST_SHOWN).split()).replace("[ ", "[").replace(" ]", "]")
        value = text if len(text) <= MOST_SHOWN else value
    shape = f"[{','.join(map(str, stats.shape))}]"
    if stats.dtype == "bool" and not stats.shape and stats.mean is not None:
        return "True" if stats.mean else "False"
    return " ".join([part for part in ("" if stats.shape == () else f"{stats.dtype} {shape}", value) if part]) or stats.dtype


def _key(node: str, event: Event) -> Hashable:
    return node, event.frame, event.iteration, event.around, event.call


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
    repeated: set[str] = set()
    for call in set(calls):
        inner = call
        while inner:
            around, _, segment = inner.rpartition(" > ")
            if "#" in segment:
                repeated.add(_first_of(inner))
            inner = around
    return repeated
