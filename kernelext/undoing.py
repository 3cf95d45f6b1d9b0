"""Undo and redo of cell runs: graphs, the user's tensors, and the variables of sessions."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from IPython.core.error import UsageError

from graphcore.api import Function
from graphcore.definitions import FunctionDef
from graphcore.graph import Graph, Node, Tensor
from graphcore.graph.snapshot import Snapshot
from graphcore.kernel_context import RefVariable
from graphcore.runtime import live_sessions
from graphcore.source import CellRun
from graphcore.tf1.variables.variables import Variable
from kernelext.graph_names import seen_graphs

MOST_RUNS: Final = 50
"""The runs of cells that can be undone."""
MOST_NODES: Final = 30_000
"""The nodes of the largest graph whose states are kept; saving a state takes about 3 us a node."""
MOST_BYTES: Final = 64 << 20
"""The bytes of changed variables that one run may leave to restore."""
MOST_KEPT_BYTES: Final = 4 * MOST_BYTES
"""The bytes of former values of variables of all runs together."""
TOO_LARGE: Final = f"the values of variables were not restored: they have more than {MOST_BYTES >> 20} MB"

Values = dict[RefVariable, Any]


@dataclass
class _Moment:
    """The state before a run, as far as that run changed it.

    Attributes:
        label: the run, such as `In [3]`.
        graphs: the states of graphs.
        bindings: the user's names.
        values: the values of variables.
        note: the reason for which values are missing; "" if none are.
    """

    label: str
    graphs: dict[Graph, Snapshot] = field(default_factory=dict)
    bindings: dict[str, Any] = field(default_factory=dict)
    values: Values = field(default_factory=dict)
    note: str = ""

    @property
    def size(self) -> int:
        """The bytes of its values."""
        return sum([int(getattr(value, "nbytes", 0)) for value in self.values.values()])


class Undoing:
    """The last runs of cells, each with what it found.

    Only runs that changed a graph or a variable are kept. Python values other than tensors, nodes, variables and functions are never
    touched.

    Args:
        variables: the user's names.
    """

    def __init__(self, variables: dict[str, Any]) -> None:
        self._variables = variables
        self._past: deque[_Moment] = deque(maxlen=MOST_RUNS)
        self._future: list[_Moment] = []
        self._running: _Moment | None = None
        self._snapshots: dict[Graph, Snapshot] = {}

    def begin(self, run: CellRun) -> None:
        """Note what the run `run` finds. Only changed graphs take time."""
        snapshots, self._snapshots = self._snapshots, {}
        graphs = seen_graphs(self._variables)  # a snapshot of any other one would keep it alive
        self._forget_other_graphs(graphs)
        for graph in graphs:
            if graph.finalized or type(graph) is not Graph or len(graph) > MOST_NODES:
                continue
            snapshot = snapshots.get(graph)
            self._snapshots[graph] = snapshot if snapshot is not None and snapshot.version == graph.version else Snapshot(graph)
        self._running = _Moment(run.label, dict(self._snapshots), dict(self._variables), _values())

    def end(self) -> None:
        """Keep what the run found, if it changed a graph or a variable."""
        moment, self._running = self._running, None
        if moment is None:
            return
        moment.graphs = {graph: snapshot for graph, snapshot in moment.graphs.items() if graph.version != snapshot.version}
        moment.values = {variable: value for variable, value in moment.values.items() if variable.value is not value}
        if not moment.graphs and not moment.values:
            return
        moment.bindings = _rebound(moment.bindings, self._variables)
        if moment.size > MOST_BYTES:
            moment.values, moment.note = {}, TOO_LARGE
        self._past.append(moment)
        self._future.clear()
        self._forget_values()

    def undo(self) -> str:
        """Return to what the last run found. Returns the words for it.

        Raises:
            UsageError: there is nothing to undo, or the running cell has changed something itself.
        """
        if not self._past:
            raise UsageError("%graph undo: no cell has changed a graph or a variable of a session yet, or its change is too long ago.")
        return self._step(self._past, self._future, "undone", "%graph redo brings them back")

    def redo(self) -> str:
        """Return to the state before the last `undo`. Returns the words for it.

        Raises:
            UsageError: there is nothing to redo, or the running cell has changed something itself.
        """
        if not self._future:
            raise UsageError("%graph redo: nothing was undone since the last change.")
        return self._step(self._future, self._past, "there again", "%graph undo takes them back")

    def _step(self, source: deque[_Moment] | list[_Moment], target: deque[_Moment] | list[_Moment], done: str, back: str) -> str:
        running = self._running
        if running is not None and any(graph.version != snapshot.version for graph, snapshot in running.graphs.items()):
            raise UsageError("%graph undo and redo belong into a cell of their own: this one has changed the graph already.")
        moment = source.pop()
        reverse = _Moment(
            moment.label,
            {graph: Snapshot(graph) for graph in moment.graphs},
            {},
            {variable: variable.value for variable in moment.values},
            moment.note,
        )
        reverse.bindings = {name: self._variables.get(name, _MISSING) for name in moment.bindings}
        for snapshot in moment.graphs.values():
            snapshot.restore()
        for name, value in moment.bindings.items():
            if value is _MISSING:
                self._variables.pop(name, None)
                continue
            self._variables[name] = value
            if isinstance(value, Function):
                value.return_to_force()
        for variable, value in moment.values.items():
            with variable.lock:
                variable.value = value
        for session in live_sessions():
            session.graph.run_count += 1
        target.append(reverse)
        self._running = None  # the change of this cell is not one to undo
        return "; ".join(filter(None, [f"The changes of {moment.label} are {done}", moment.note, back]))

    def clear(self) -> None:
        """Forget all runs."""
        self._past.clear()
        self._future.clear()
        self._running = None
        self._snapshots = {}

    def _forget_other_graphs(self, graphs: set[Graph]) -> None:
        """Forget runs up to the last one that changed another graph, such as one that was reset."""
        for moments in (self._past, self._future):
            places = [place for place, moment in enumerate(moments) if not _graphs_of(moment) <= graphs]
            kept = list(moments)[places[-1] + 1 :] if places else None
            if kept is not None:
                moments.clear()
                moments.extend(kept)

    def _forget_values(self) -> None:
        """Drop the oldest values while all together are too large."""
        kept = sum([moment.size for moment in self._past])
        for moment in self._past:
            if kept <= MOST_KEPT_BYTES:
                return
            kept -= moment.size
            moment.values, moment.note = {}, TOO_LARGE


def _graphs_of(moment: _Moment) -> set[Graph]:
    """The graphs that a moment keeps alive."""
    values = [item for value in moment.bindings.values() for item in (value if isinstance(value, list | tuple) else [value])]
    return {*moment.graphs, *[item.graph for item in values if isinstance(item, Tensor | Node | Variable)]}


class _Missing:
    """Stands for a name that is not bound."""


_MISSING: Final = _Missing()


def _values() -> Values:
    """The values of the variables of all open sessions. Arrays are replaced and never changed, so that references are enough."""
    return {variable: variable.value for session in live_sessions() for variable in session.resources.variables.values()}


def _rebound(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The former values of names that were or are bound to tensors, and are bound to something else now."""
    rebound = {
        name: before.get(name, _MISSING) for name, value in now.items() if before.get(name, _MISSING) is not value and _is_handle(value)
    }
    return rebound | {name: value for name, value in before.items() if now.get(name, _MISSING) is not value and _is_handle(value)}


def _is_handle(value: object) -> bool:
    """True iff a value is a tensor, node, variable or function, or a list or tuple of these."""
    if isinstance(value, list | tuple):
        return bool(value) and all(_is_handle(item) for item in value if item is not None)
    return isinstance(value, Tensor | Node | Variable | Function | FunctionDef)
