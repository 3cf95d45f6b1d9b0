"""Earlier states of live graphs: each as it was before a run of a cell."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final
from weakref import WeakKeyDictionary

import msgspec

from graphcore.difference import GraphDiff, GraphState, compare, state_of_graph
from graphcore.frontends.record import ForeignRecord, foreign_of
from graphcore.graph import Graph
from graphcore.source import CellRun

MOST_RUNS: Final = 100
"""The runs of cells before which the states are kept."""
MOST_NODES: Final = 300_000
"""The nodes in kept states of one graph together, the newest state excepted."""


_OF_ANOTHER: Final = -1
"""The version of a state of another graph, which no graph has."""


class _Before(msgspec.Struct, frozen=True):
    """The state of a graph before a run of a cell; of a traced call with what stood behind it."""

    run: CellRun
    version: int
    state: GraphState
    record: ForeignRecord | None = None


class Comparison(msgspec.Struct, frozen=True, eq=False):
    """The difference of a graph from its state before the run called `label`; "" for the beginning.

    `records` are what stands behind two traces of a call.
    """

    label: str
    diff: GraphDiff
    records: tuple[ForeignRecord, ForeignRecord] | None = None

    @property
    def text(self) -> str:
        """The runs that it spans, and the difference in words."""
        return f"Since before {self.label}: {self.diff}" if self.label else f"Since the beginning: {self.diff}"


class History:
    """The states of all live graphs before the last runs of cells.

    Args:
        graphs: returns the existing graphs.
    """

    def __init__(self, graphs: Callable[[], Iterable[Graph]]) -> None:
        self._graphs = graphs
        self._states: WeakKeyDictionary[Graph, deque[_Before]] = WeakKeyDictionary()

    def begin(self, run: CellRun) -> None:
        """Record the graphs before the run `run`. Unchanged nodes are shared with the state before."""
        for graph in self._graphs():
            if graph.finalized or type(graph) is not Graph:
                continue
            states = self._states.setdefault(graph, deque(maxlen=MOST_RUNS))
            last = states[-1] if states else None
            same = last is not None and last.version == graph.version
            state = last.state if last is not None and same else state_of_graph(graph, None if last is None else last.state)
            states.append(_Before(run, graph.version, state, foreign_of(graph)))
            while not same and len(states) > 1 and _nodes_in(states) > MOST_NODES + len(state.nodes):
                states.popleft()

    def succeed(self, last: Graph, graph: Graph) -> None:
        """Let a graph go on with the earlier states of another one, whose place it has taken."""
        states = self._states.pop(last, None)
        if states is not None:
            earlier = [_Before(entry.run, _OF_ANOTHER, entry.state, entry.record) for entry in states]
            self._states[graph] = deque(earlier, maxlen=MOST_RUNS)

    def changed_by(self, run: CellRun) -> list[Graph]:
        """The graphs that have changed since the beginning of `run`; among them those that it has made."""
        changed = []
        for graph in self._graphs():
            if type(graph) is not Graph or graph.finalized:
                continue
            states = self._states.get(graph)
            if graph.version if states is None else graph.version != states[-1].version:
                changed.append(graph)
        return [graph for graph in changed if self._begun(graph, run)]

    def _begun(self, graph: Graph, run: CellRun) -> bool:
        """Have an empty state before `run` for a graph that this run has made. True iff the state before `run` is known."""
        states = self._states.get(graph)
        if states is None:
            states = self._states[graph] = deque([_Before(run, 0, _empty(graph))], maxlen=MOST_RUNS)
        return states[-1].run is run

    def compare(self, graph: Graph, execution: int = 0) -> Comparison:
        """Compare a graph with its state before a run of a cell.

        Args:
            graph: the graph.
            execution: the number of the run, as in `In [3]`; 0 for the last run that made nodes of it, changed or not.

        Raises:
            KeyError: the state before this run is not known.
        """
        states = self._states.get(graph, deque())
        if execution:
            entry_before = next((entry for entry in reversed(states) if entry.run.execution == execution), None)
            if entry_before is None:
                raise KeyError(execution)
        else:
            entry_before = _last_making(graph, states)
        if entry_before is None:
            return Comparison("", compare(_empty(graph), state_of_graph(graph)))
        after = foreign_of(graph)
        records = None if entry_before.record is None or after is None else (entry_before.record, after)
        return Comparison(entry_before.run.label, compare(entry_before.state, state_of_graph(graph, entry_before.state)), records)

    def runs(self, graph: Graph) -> list[int]:
        """The numbers of the runs before which the state is known."""
        return [entry.run.execution for entry in self._states.get(graph, ())]


def _last_making(graph: Graph, states: Iterable[_Before]) -> _Before | None:
    """The state before the last run that changed the graph, or made its nodes again as they were."""
    version = graph.version
    for entry in reversed([*states]):
        if entry.version != version or graph.cells.nodes_of(entry.run.cell):
            return entry
        version = entry.version
    return None


def _nodes_in(states: Iterable[_Before]) -> int:
    return sum(len(state.nodes) for state in {id(entry.state): entry.state for entry in states}.values())


def _empty(graph: Graph) -> GraphState:
    return GraphState({}, {}, {}, {}, graph.registry)
