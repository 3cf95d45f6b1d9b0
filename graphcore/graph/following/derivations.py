"""Derived nodes, rebuilt by rules after changes: gradients, training steps, groups of initializers.

A derivation records the rule that built its nodes. The store of a graph is notified of changes; before the next run or picture it rebuilds what
is affected, under the same names, so that consumers and Python handles keep their nodes. Nodes that cannot be rebuilt are marked with the
reason and refuse to run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Final, TypeVar

from graphcore.errors import FailedPreconditionError, GraphError
from graphcore.graph.building.colocation import colocated_with
from graphcore.graph.building.scopes import (
    container_scope,
    control_dependencies,
    device_scope,
    name_scope,
    only_device,
    variable_scopes,
)
from graphcore.graph.following.marking import mark, unmark
from graphcore.graph.model.changes import Change
from graphcore.graph.model.default_stack import default_graph
from graphcore.graph.model.device_functions import DeviceFunctions
from graphcore.graph.model.node import Node, Tensor
from graphcore.graph.model.reachability import names_downstream
from graphcore.graph.model.scopes import VariableScopes
from graphcore.graph.model.topological_order import renew_stale_ranks
from graphcore.graph.shapes.shaped_graph import ShapedGraph
from graphcore.source import CellRun, RederivedRun, SourceLocation, caller_location, cell_run, current_run
from graphcore.support.critical_section import critical_contextmanager
from graphcore.support.gc_pause import paused_collector

Fingerprint = Callable[[], object]
T = TypeVar("T")
_MOST_ROUNDS: Final = 3
"""A derivation that is still outdated after so many rounds of one settling is marked."""


class Derivation:
    """A call whose nodes are derived from others.

    Args:
        what: a description, such as "the gradients of 'loss'".
        build: builds the nodes in the default graph and returns the result of the call.
        depends_on: the tensors that it depends on, with their producers.
        fingerprint: returns its other dependencies, as a comparable value.
        keeps_result: True iff callers hold the result itself, which must then stay the same.
        check: instead of a rebuild, raises the error to mark the nodes with, if they do not fit any more.
        about: the call itself, for `made_by`.

    Attributes:
        source: the line of user code that made the call.
        number: its index among all derivations of the graph, in the order of the calls.
        names: the node and scope names that it has taken.
        result: the result of the last build.
        parent: the surrounding derivation, None outside of any.
        parts: the derivations built in it.
        error: the reason for which it could not follow the last change, None if it could.
    """

    def __init__(
        self,
        what: str,
        build: Callable[[], Any],
        depends_on: Sequence[Tensor],
        fingerprint: Fingerprint | None,
        *,
        keeps_result: bool = False,
        check: Callable[[], None] | None = None,
        about: object = None,
    ) -> None:
        self.what = what
        self.about = about
        self.build = build
        self.depends_on = [(tensor.node.name, tensor.index) for tensor in depends_on]
        self.fingerprint = fingerprint
        self.keeps_result = keeps_result
        self.check = check
        self.source: SourceLocation | None = None
        self.run: CellRun | None = None
        self.variable_scopes: VariableScopes | None = None
        self.scopes: tuple[str, str, str, DeviceFunctions, bool, tuple[bytes, ...], tuple[str, ...]] = "", "", "", (), False, (), ()
        self.is_entered = False
        self.names: list[str] = []
        self.result: Any = None
        self.seen: object = None
        self.number = 0
        self.parent: Derivation | None = None
        self.parts: list[Derivation] = []
        self.error: GraphError | None = None
        self.is_outdated = False

    def __repr__(self) -> str:
        return f"<Derivation of {self.what}>"


class DerivationStore:
    """The derivations of one graph.

    Attributes:
        count: the number of derivations so far.
    """

    def __init__(self, graph: ShapedGraph) -> None:
        self._graph = graph
        self._all: dict[int, Derivation] = {}
        self._owners: dict[str, Derivation] = {}  # by their names; of nested derivations the outer one
        self._building: list[Derivation] = []
        self._taken: list[str] = []
        self._devices: dict[str, str] = {}  # that the rules have requested; others were requested for single nodes since
        self._is_settling = False
        self.count = 0
        self._is_requested = False
        self._changed: set[str] = set()
        self._version = 0  # of the last known change

    def state(self) -> tuple[Any, ...]:
        """A copy for `restore`."""
        kept = [
            (derivation, derivation.names, derivation.result, derivation.seen, derivation.error, list(derivation.parts))
            for derivation in self._all.values()
        ]
        return dict(self._all), dict(self._owners), dict(self._devices), kept

    def restore(self, state: tuple[Any, ...]) -> None:
        """Restore a copy made by `state`."""
        self._all, self._owners, self._devices, kept = state
        for derivation, names, result, seen, error, parts in kept:
            derivation.names, derivation.result, derivation.seen = names, result, seen
            derivation.error, derivation.parts = error, list(parts)

    # ---- making -----------------------------------------------------------------------------------------------------

    def derive(
        self,
        what: str,
        build: Callable[[], Any],
        *,
        depends_on: Sequence[Tensor] = (),
        fingerprint: Fingerprint | None = None,
        keeps_result: bool = False,
        check: Callable[[], None] | None = None,
        about: object = None,
    ) -> Any:
        """Build nodes for the first time, and record the rule; the arguments are those of `Derivation`.

        Within a derivation that has a fingerprint, another one of that kind is built as part of it.

        Returns:
            The result of `build`.

        Raises:
            FailedPreconditionError: one of its dependencies has an error.
        """
        graph = self._graph
        if graph.outer is not None:  # the function being traced is derived as a whole
            return build()
        derivation = Derivation(what, build, depends_on, fingerprint, keeps_result=keeps_result, check=check, about=about)
        with graph.lock:
            if fingerprint is not None and self._building:
                return build()
            broken = self.problem_of(derivation.depends_on)
            if broken is not None:
                raise broken
            scopes = graph.scopes
            derivation.source, derivation.run = caller_location(2), cell_run()
            derivation.variable_scopes = None if scopes.variables is None else scopes.variables.snapshot()
            waits_for = tuple([node.name for node in scopes.controls])
            devices = scopes.device, scopes.device_functions, scopes.device_is_fixed
            derivation.is_entered = scopes.is_entered
            derivation.scopes = scopes.name, scopes.container, *devices, scopes.colocated, waits_for
            derivation.number = self.count = self.count + 1
            derivation.parent = self._building[-1] if self._building else None
            self._subscribe()
            self._record(derivation)
            if derivation.names:
                self._all[derivation.number] = derivation
                self._own(derivation)
        return derivation.result

    def take_over(self, other: DerivationStore) -> None:
        """Copy the dependencies to a copy of the graph, where affected nodes are marked and not rebuilt."""
        for original in other._all.values():
            if original.depends_on and original.parent is None:
                copy = Derivation(original.what, original.build, (), None, check=_refuse_in_copy)
                copy.depends_on, copy.names, copy.source, copy.number = (
                    original.depends_on,
                    original.names,
                    original.source,
                    original.number,
                )
                self._all[copy.number] = copy
                self._own(copy)
                self._subscribe()
        self._version = self._graph.version

    def _subscribe(self) -> None:
        if self._graph.names.on_taken is None:
            self._graph.subscribe(self._note_change)
            self._graph.names.on_taken = self._note_taken

    def made_by(self, kind: type[T]) -> list[tuple[T, Any]]:
        """The calls of one kind, each with the result of its last build."""
        return [(derivation.about, derivation.result) for derivation in self._all.values() if isinstance(derivation.about, kind)]

    def made_before(self, node: Node, number: int) -> bool:
        """True iff one of the first `number` derivations made `node`."""
        owner = self._owners.get(node.name)
        return owner is not None and owner.number <= number

    def _record(self, derivation: Derivation) -> None:
        with self._recording(derivation):
            derivation.result = derivation.build()
            derivation.names = list(dict.fromkeys(self._taken))
            derivation.seen = None if derivation.fingerprint is None else derivation.fingerprint()
        nodes = [node for name in derivation.names if (node := self._graph.find(name)) is not None]
        self._devices.update({node.name: node.device for node in nodes})

    @critical_contextmanager
    def _recording(self, derivation: Derivation) -> Iterator[None]:
        """Record the names taken while `derivation` is built."""
        outer, self._taken = self._taken, []
        self._building.append(derivation)
        try:
            yield
        finally:
            self._building.pop()
            self._taken = [*outer, *self._taken] if self._building else []

    def _own(self, derivation: Derivation) -> None:
        outermost = derivation if derivation.parent is None else derivation.parent
        self._owners.update(dict.fromkeys(derivation.names, outermost))
        if outermost is not derivation:
            outermost.parts.append(derivation)
            outermost.names = list(dict.fromkeys([*outermost.names, *derivation.names]))

    def _note_taken(self, name: str) -> None:
        owner = self._owners.get(name)
        if owner is not None and not any(owner in (building, building.parent) for building in self._building):
            self._drop(owner)  # its cell has made something else under this name
        if self._building:
            self._taken.append(name)

    def _drop(self, dropped: Derivation) -> None:
        for part in [dropped, *dropped.parts]:
            self._all.pop(part.number, None)
        for name in dropped.names:
            if self._owners.get(name) is dropped:
                del self._owners[name]
                self._devices.pop(name, None)

    def reconsider(self) -> None:
        """Check all derivations before the next run, after a change outside of the graph's nodes."""
        self._is_requested = True
        self._graph.journal.outdate()

    @critical_contextmanager
    def kept(self) -> Iterator[None]:
        """Suspend derivations in a block that rewrites the graph and preserves its results."""
        self.settle()
        try:
            yield
        finally:
            if not self._is_settling:
                self._changed.clear()
                self._version = self._graph.version

    # ---- following --------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Rebuild derivations affected by changes; mark those that cannot be rebuilt."""
        graph = self._graph
        if not self._all or self._is_settling or self._building or graph.finalized:
            return
        with graph.lock, paused_collector(), self._settling():
            if self._notice():
                self._settle()

    @critical_contextmanager
    def _settling(self) -> Iterator[None]:
        """Settle once at a time; after an interruption the rest is settled next time."""
        self._is_settling = True
        try:
            yield
        except BaseException:
            self.reconsider()
            raise
        finally:
            self._is_settling = False

    def _note_change(self, change: Change) -> None:
        if change.version > self._version:
            self._changed.add(change.node)

    def _notice(self, *, nodes_only: bool = False) -> bool:
        """Collect the affected derivations; False if nothing has changed."""
        graph = self._graph
        for change in graph.journal.unpublished_changes():
            self._note_change(change)
        changed, self._changed, self._version = self._changed, set(), graph.version
        if not changed and (nodes_only or not self._is_requested):
            return False
        self._is_requested = nodes_only  # a rebuild may have changed collections and definitions, too
        reached = names_downstream(graph, changed)
        for derivation in self._all.values():
            if any(name in reached or (derivation.error is None and graph.find(name) is None) for name, _ in derivation.depends_on):
                derivation.is_outdated = True
            if (
                not nodes_only
                and derivation.fingerprint is not None
                and derivation.error is None
                and derivation.fingerprint() != derivation.seen
            ):
                derivation.is_outdated = True
        return True

    def _settle(self) -> None:
        self._forget_gone()
        for derivation in self._all.values():
            derivation.is_outdated = derivation.is_outdated or derivation.error is not None
        rounds: dict[Derivation, int] = {}
        is_new = True
        while is_new:
            while outdated := [derivation for derivation in self._all.values() if derivation.is_outdated]:
                following = self._first(outdated)
                rounds[following] = rounds.get(following, 0) + 1
                if rounds[following] > _MOST_ROUNDS:
                    self._mark(following, FailedPreconditionError("it depends on itself"))
                else:
                    self._follow(following)
                following.is_outdated = False
                self._notice(nodes_only=True)
            is_new = self._notice()

    def _forget_gone(self) -> None:
        """Discard derivations without nodes, which were removed or replaced with their cell."""
        find = self._graph.find
        for derivation in list(self._all.values()):
            if all(find(name) is None for name in derivation.names):
                self._drop(derivation)

    def _first(self, outdated: list[Derivation]) -> Derivation:
        """The first derivation in order of dependencies: one whose inputs depend on no other."""
        graph = self._graph
        renew_stale_ranks(graph)

        def order(derivation: Derivation) -> int:
            names = [*(name for name, _ in derivation.depends_on), *derivation.names]
            return max((node.rank for name in names if (node := graph.find(name)) is not None), default=0)

        return min(outdated, key=order)

    def _follow(self, derivation: Derivation) -> None:
        cells = self._graph.cells
        if (
            derivation.run is not None
            and derivation.run.cell in cells.failed
            and cells.last_runs.get(derivation.run.cell) != derivation.run.execution
        ):
            return  # its cell has failed since before it was made again: its nodes are marked
        try:
            if derivation.check is not None:
                derivation.check()
                self._unmark(derivation)
                return
            broken = self.problem_of(derivation.depends_on)
            if broken is not None:
                raise broken
            with self._graph.transaction():
                for part in derivation.parts:
                    self._all.pop(part.number, None)
                derivation.parts = []
                self._build_again(derivation)
                self._own(derivation)
            derivation.error = None
        except GraphError as error:
            if derivation.parent is not None and derivation.parent in self._all.values():
                derivation.parent.is_outdated = True
            self._mark(derivation, error)

    def problem_of(self, tensors: Iterable[tuple[str, int]]) -> GraphError | None:
        """The error of these tensors (node names and indices) or their ancestors; None if there is none."""
        graph = self._graph
        checked: set[Node] = set()
        pending: list[Node] = []
        for name, index in tensors:
            node = graph.find(name)
            if node is None or index >= len(node.outputs):
                return FailedPreconditionError(f"'{name}:{index}' is no longer in the graph")
            pending.append(node)
        while pending:
            node = pending.pop()
            if node in checked:
                continue
            checked.add(node)
            if node not in graph:
                return FailedPreconditionError(f"'{node.name}' is no longer in the graph")
            if node.error is not None:
                return FailedPreconditionError.at(node, f"'{node.name}' has an error: {node.error.message}")
            pending += [tensor.node for tensor in node.inputs if tensor.node not in checked]
        return None

    def _build_again(self, derivation: Derivation) -> None:
        graph, before = self._graph, derivation.result
        running = graph.cells.running
        nodes = {name: node for name in derivation.names if (node := graph.find(name)) is not None}
        requested = {name: node.device for name, node in nodes.items() if node.device != self._devices.get(name, node.device)}
        stale = graph.cells.begin_again(dict(nodes))
        released = graph.names.begin_again(derivation.names)
        name, container, device, device_functions, device_is_fixed, colocated, controls = derivation.scopes
        lost = [control for control in controls if graph.find(control) is None]
        if lost:
            raise FailedPreconditionError(f"'{lost[0]}', which it waits for, is no longer in the graph")
        assert derivation.source is not None
        run = derivation.run
        waited = [graph.get_operation_by_name(control) for control in controls]
        with (
            _made_by(run, derivation.source),
            default_graph(graph),
            name_scope(graph, name or None),
            container_scope(graph, container),
            only_device(graph, "", fixed=False),
            colocated_with(graph, colocated, ignore_existing=True),
            ExitStack() as stack,
            control_dependencies(graph, None),
            control_dependencies(graph, waited),
            variable_scopes(graph, derivation.variable_scopes),
        ):
            graph.scopes.is_entered = derivation.is_entered
            for function, around in device_functions:
                stack.enter_context(device_scope(graph, around or "/"))
                stack.enter_context(device_scope(graph, function))
            stack.enter_context(only_device(graph, device, fixed=True) if device_is_fixed else device_scope(graph, device or "/"))
            self._record(derivation)
        if derivation.keeps_result:
            _require_same(before, derivation.result)
        graph.editor.remove_all(graph.cells.end_again({}))
        graph.names.end_again(released)
        for name, wanted in requested.items():
            if (rebuilt := graph.find(name)) is not None:
                graph.editor.set_requested_device(rebuilt, wanted)
        left = {name: node for name, node in stale.items() if node in graph}
        if running is not None and run is not None and run.cell == running.cell and run.execution != running.execution:
            left.update({name: node for name in derivation.names if (node := graph.find(name)) is not None})
        graph.cells.begin_again(left)

    def _unmark(self, derivation: Derivation) -> None:
        """Remove the marks, since all dependencies are as they were at the last build."""
        derivation.seen = None if derivation.fingerprint is None else derivation.fingerprint()
        was_marked, derivation.error = derivation.error is not None, None
        for name in derivation.names if was_marked else ():
            node = self._graph.find(name)
            if node is not None:
                unmark(self._graph, node)

    def _mark(self, derivation: Derivation, error: GraphError) -> None:
        """Mark the nodes of a call that could not be rebuilt: they refuse to run, with the reason."""
        derivation.error = error
        for name in derivation.names:
            node = self._graph.find(name)
            if node is not None:
                mark(self._graph, node, FailedPreconditionError.at(node, f"{derivation.what} could not follow a change: {error.message}"))


@critical_contextmanager
def _made_by(run: CellRun | None, source: SourceLocation) -> Iterator[None]:
    """Attribute nodes to the call at `source`, made by `run`."""
    cell, execution, label = (run.cell, run.execution, run.label) if run else ("", 0, "")
    token = current_run.set(RederivedRun(cell=cell, execution=execution, label=label, location=source))
    try:
        yield
    finally:
        current_run.reset(token)


def _refuse_in_copy() -> None:
    raise FailedPreconditionError("a copied graph derives nothing anew; build it again in the copy")


def _require_same(before: Any, after: Any) -> None:
    """Refuse a result of other kinds (None, tensors, slices), since its holder would not notice."""
    for number, (old, new) in enumerate(zip(before, after, strict=True)):
        if (old is None) is not (new is None):
            text = "was None and would be a tensor now" if old is None else "would be None now"
            raise FailedPreconditionError(f"result {number} {text}; run its cell again")
        if type(old) is not type(new):
            text = f"was of {type(old).__name__} and would be of {type(new).__name__} now"
            raise FailedPreconditionError(f"result {number} {text}; run its cell again")
