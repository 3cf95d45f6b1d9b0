"""The planner: prepares runs of a graph, and caches them until a node they depend on changes."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from graphcore.errors import FailedPreconditionError, UnimplementedError
from graphcore.graph import Graph
from graphcore.graph.model.changes import Change
from graphcore.graph.model.node import Node, Tensor
from graphcore.placement.device import Device
from graphcore.runtime.backends.backend import Backend
from graphcore.runtime.backends.work import StepwiseProgram, Subgraph
from graphcore.runtime.core.connections import connect, resolve_connections
from graphcore.runtime.core.feeds import resolve_feeds
from graphcore.runtime.core.fetches import FetchStructure, parse_fetches
from graphcore.runtime.core.options import SessionOptions
from graphcore.runtime.core.rewrite import DeviceAttributes
from graphcore.runtime.core.sizes import PeakMemory
from graphcore.runtime.core.timed_run import planning_within
from graphcore.runtime.engines import Engine
from graphcore.runtime.functions.function_memory import peak_for_shapes
from graphcore.runtime.functions.specialise import Specialised
from graphcore.runtime.plan.plan import Plan, build_plan
from graphcore.runtime.session.initial_values import InitialValues
from graphcore.runtime.session.prepared import Prepared
from graphcore.runtime.session.runner import Runner
from graphcore.shapes import Shape
from graphcore.support.critical_section import critical_section
from graphcore.support.forking import new_rlock
from graphcore.support.gc_pause import paused_collector

_MAX_PLANS: Final = 256


class Planner:
    """Prepares the runs of one session.

    Args:
        graph: the graph.
        options: the session's options.
        engine: the engine of the runs.
        runner: executes them, on the backend that prepares them.

    Attributes:
        plans: the prepared runs, by key; the oldest first.
        last_fetches: the fetches of the run that was prepared last.
        lock: held during preparation; acquired after the graph's.
        is_closed: True if nothing may be prepared any more.
        is_finalized: True if nothing new may be prepared.
    """

    def __init__(self, graph: Graph, options: SessionOptions, engine: Engine, runner: Runner) -> None:
        self.graph = graph
        self.options = options
        self.engine = engine
        self.runner = runner
        self.plans: dict[Any, Prepared] = {}
        self.last_fetches: FetchStructure | None = None
        self.is_closed = False
        self.is_finalized = False
        self._first_version = graph.version
        self._initial_values = InitialValues()
        self._changed: dict[str, bool] = {}  # changed nodes: True if their values may differ
        self.lock = new_rlock()
        weakref.finalize(self, graph.subscribe(_add_names_to(self._changed))).atexit = False

    def prepare(
        self,
        fetches: Any,
        feeds: Iterable[Any],
        key: Any = None,
        connections: Iterable[tuple[str, str]] = (),
        engine: Engine | None = None,
    ) -> Prepared:
        """Prepare a run of `fetches` with values for `feeds`.

        Args:
            fetches: those of `Session.run`.
            feeds: tensors or names.
            key: the cache key, None for no caching.
            connections: pairs of tensor names: the second takes the value of the first.
            engine: the engine, that of the session by default.

        Raises:
            FailedPreconditionError: the session is closed or finalized, or its graph should not have changed.
            InvalidArgumentError, NotFoundError: a fetch or feed that does not belong to the graph.
        """
        with self.graph.lock, self.lock, paused_collector(), planning_within(self.options.operation_timeout_in_ms):
            self.graph.settle()
            self._forget_changed()
            cached = None if key is None else self.plans.get(key)
            if cached is not None:
                self.last_fetches = cached.structure
                return cached
            self.check_may_plan()
            prepared = self._prepare(fetches, feeds, connections, engine or self.engine)
            self.last_fetches = prepared.structure
            if key is not None:
                if len(self.plans) >= _MAX_PLANS:
                    self.plans.pop(next(iter(self.plans))).close()
                self.plans[key] = prepared
            return prepared

    def _prepare(self, fetches: Any, feeds: Iterable[Any], connections: Iterable[tuple[str, str]], engine: Engine) -> Prepared:
        structure = parse_fetches(self.graph, fetches)
        fed = resolve_feeds(self.graph, feeds)
        ends = (structure.tensors, structure.targets, fed)
        connected = resolve_connections(self.graph, connections, fed)
        if connected:
            ends = connect(*ends, connected)
        subgraph = Subgraph.of(*ends)
        built = self.runner.backend.build(subgraph, engine)
        if self.runner.resources.redeclared:
            self._drop_plans()
        self._initial_values.note_run(subgraph.nodes)
        prepared = Prepared(self.graph.version, built, structure, fed, subgraph.nodes)
        if type(built.program) is Plan and Specialised.pays(built.program, fed):
            prepared.specialised = Specialised(built.program, *subgraph.ends, partial(self._build, mild=subgraph.mild))
        return prepared

    def build_stepwise(self, fetches: list[Tensor], targets: list[Node], feeds: list[Tensor]) -> StepwiseProgram:
        """The program of a run that is fed step by step.

        Raises:
            UnimplementedError: the devices do not run in steps.
        """
        return self.runner.backend.build_stepwise(Subgraph.of(fetches, targets, feeds))

    def predicted_peak(self, fetches: Any, feed_dict: Mapping[Any, Any]) -> PeakMemory:
        """The predicted peak of live arrays of such a run; see `Session.predicted_peak`."""
        prepared = self.prepare(fetches, feed_dict)
        shapes = [Shape(feed(value).shape) for feed, value in zip(prepared.feeders, feed_dict.values(), strict=True)]
        structure = prepared.structure
        if not structure.tensors and not structure.targets:
            return PeakMemory(0)
        what = structure.tensors, structure.targets, prepared.feeds
        build = None if prepared.specialised is None else self._build
        with self.graph.lock, self.lock:
            try:
                return peak_for_shapes(self.runner.functions, prepared.program, what, shapes, build)
            except UnimplementedError as error:
                return PeakMemory(None, reason=error.message)

    def forget(self, key: Any) -> None:
        """Discard the run under `key`."""
        with self.lock:
            prepared = self.plans.pop(key, None)
        if prepared is not None:
            prepared.close()

    def check_may_plan(self) -> None:
        """Check that the session is neither closed nor finalized.

        Raises:
            FailedPreconditionError: it is.
        """
        if self.is_closed:
            raise FailedPreconditionError("Attempted to use a closed Session.").advise(
                "Open a new session with `session = gc.Session()` and initialize its variables, or move this line up, before `close()`.",
                required="an open session",
                came="one that was closed",
            )
        if self.is_finalized:
            raise FailedPreconditionError("The session has been finalized: only what was run before can be run again")
        if self.options.optimize_for_static_graph and self.graph.version != self._first_version:
            raise FailedPreconditionError(
                "The graph has changed since the session was made, which optimize_for_static_graph promised it would not"
            )

    def list_devices(self) -> list[DeviceAttributes] | list[Device]:
        """The available devices.

        Raises:
            FailedPreconditionError: the session is closed.
        """
        if self.is_closed:
            raise FailedPreconditionError("Attempted to use a closed Session.")
        return self.runner.backend.list_devices()

    def variables_with_other_initial_values(self) -> list[str]:
        """The names of the variables that keep their values although their initial values have changed."""
        with self.graph.lock, self.lock:
            self._forget_changed()
            return list(self._initial_values.outdated.values())

    def variables_that_lost_their_values(self) -> list[str]:
        """The names of the variables whose values do not fit their new types and shapes."""
        with self.graph.lock, self.lock:
            self._forget_changed()
            return list(self._initial_values.lost.values())

    def move(self, backend: Backend) -> None:
        """Run elsewhere from now on, with plans of their own."""
        with self.graph.lock, self.lock:
            self._drop_plans()
            self.runner.backend = backend

    def close(self, also: Callable[[], None]) -> None:
        """Discard all plans, and call `also` before anything can be prepared again."""
        self.is_closed = True
        with self.lock, critical_section:
            self._drop_plans()
            also()

    def _forget_changed(self) -> None:
        """Discard the plans that depend on changed nodes, or do not fit the graph's new version."""
        version = self.graph.version
        changed = self._changed.copy()
        others = {name for name, differs in changed.items() if differs}
        for key, prepared in list(self.plans.items()):
            if changed.keys().isdisjoint(prepared.names) and (prepared.version == version or not self.runner.backend.moves_nodes):
                prepared.version = version
            else:
                self.plans.pop(key).close()
        resources = self.runner.resources
        if changed:
            self._initial_values.note_changes(self.graph, resources, others)
            resources.disown(lambda it: it.owner in changed and getattr(self.graph.find(it.owner), "op", None) != it.op)
        for name, differs in changed.items():  # last, since Ctrl-C may interrupt the lines above
            if self._changed.get(name) == differs:
                self._changed.pop(name)

    def _drop_plans(self) -> None:
        self.runner.resources.redeclared = False
        for prepared in self.plans.values():
            prepared.version = -1  # callables may still hold it
            prepared.close()
        self.plans.clear()

    def _build(self, fetches: Sequence[Tensor], targets: Sequence[Node], feeds: Sequence[Tensor], mild: Container[str] = ()) -> Plan:
        make_kernel = self.runner.backend.kernels.maker(mild)
        return build_plan(fetches, targets, feeds, make_kernel, threads=self.options.inter_op_threads)


def _add_names_to(changed: dict[str, bool]) -> Callable[[Change], None]:
    """A subscriber that collects the names of changed nodes, without keeping the planner alive."""

    def add(change: Change) -> None:
        changed[change.node] = changed.get(change.node, False) or change.kind != "device"

    return add
