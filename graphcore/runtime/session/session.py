"""Session: runs parts of a graph with feeds and fetches; keeps the variables."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from graphcore.errors import CancelledError, FailedPreconditionError, GraphError, InvalidArgumentError, UnimplementedError
from graphcore.graph import Graph, get_default_graph
from graphcore.graph.model.gc_pause import paused_collector
from graphcore.graph.model.node import Node, Tensor
from graphcore.kernel_context import KernelContext, ResourceManager
from graphcore.registry import Kernel
from graphcore.runtime.core import arguments
from graphcore.runtime.core.cancellation import CancellationManager
from graphcore.runtime.core.connections import connect, resolve_connections
from graphcore.runtime.core.devices import check_devices, local_devices
from graphcore.runtime.core.events import Recorder
from graphcore.runtime.core.fed_shapes import inferred_from_feeds
from graphcore.runtime.core.feeds import resolve_feeds
from graphcore.runtime.core.fetches import parse_fetches, plan_key
from graphcore.runtime.core.options import RunMetadata, RunOptions, SessionOptions
from graphcore.runtime.core.plan_checks import checked, is_ours
from graphcore.runtime.core.program import Program, Step
from graphcore.runtime.core.prune import needed_nodes
from graphcore.runtime.core.rendezvous import Rendezvous
from graphcore.runtime.core.rewrite import DeviceAttributes
from graphcore.runtime.core.timed_run import planning_within, run_watched
from graphcore.runtime.core.tracing import Trace
from graphcore.runtime.plan.peak_memory import PeakMemory
from graphcore.runtime.plan.plan import Plan, build_plan
from graphcore.runtime.session.callables import SessionCallable
from graphcore.runtime.session.default_session import DefaultSession
from graphcore.runtime.session.engines import build_program, check_engine
from graphcore.runtime.session.function_memory import peak_for_shapes
from graphcore.runtime.session.function_runtime import FunctionLibraryRuntime
from graphcore.runtime.session.initial_values import InitialValues
from graphcore.runtime.session.partial_run import SET_UP_FIRST, PartialRun
from graphcore.runtime.session.prepared import Prepared, noting
from graphcore.runtime.session.session_rendezvous import renew_rendezvous
from graphcore.runtime.session.specialise import Specialised
from graphcore.shapes import Shape
from graphcore.support.critical_section import critical_section

_MAX_PLANS: Final = 256
_NO_RUN_OPTIONS: Final = RunOptions()


class Session(DefaultSession):
    """Runs a graph on NumPy.

    Args:
        graph: the graph to run; the default graph if None.
        options: how to run.
        engine: "plan" runs one generated Python function, "dataflow" tokens, frames and iterations; "auto" takes a plan where the
            graph allows one.
        target: where it runs: "" or "local" is this process, and the only place that there is.

    Raises:
        NotFoundError: no such target.
        InvalidArgumentError: no such engine, or an argument of another kind.

    The graph may grow and change between runs: a run is planned again when a node that it depends on has changed. Used as a
    context manager it is the default session, and its graph the default graph, within the block. Several threads may run it at once.

    Attributes:
        target: as given.
        rendezvous: where its `_Send` and `_Recv` nodes meet the client and each other.
        resources: its variables.
        trace: the last run that was recorded.
    """

    def __init__(
        self, graph: Graph | None = None, *, options: SessionOptions | None = None, engine: str = "auto", target: str = ""
    ) -> None:
        super().__init__()
        self.target = arguments.checked_target(target)
        self.options = arguments.checked_session(graph, options)
        self.graph = get_default_graph() if graph is None else graph
        self.engine = check_engine(engine)
        self.rendezvous = Rendezvous()
        self.resources = ResourceManager()
        self.resources.channel = self.rendezvous
        self.functions = FunctionLibraryRuntime(self.graph.library, resources=self.resources)
        self._plans: dict[Any, Prepared] = {}
        self._partial_runs: dict[str, PartialRun] = {}
        self._last_handle = 0
        self._kernels: dict[str, tuple[Any, Kernel]] = {}
        self._lock = threading.RLock()
        self._meeting = threading.Lock()
        self._closed = False
        self._finalized = False
        self._is_watched = bool(self.options.operation_timeout_in_ms)
        self.trace: Trace | None = None
        self._changed: set[str] = set()
        self._initial_values = InitialValues()
        self._first_version = self.graph.version
        _live.add(self)
        weakref.finalize(self, self.graph.subscribe(noting(self._changed))).atexit = False

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Compute `fetches` and return them in the same structure.

        Args:
            fetches: a tensor, a node, a variable, a name (`"y:0"`, `"train"`), or nested lists, tuples, dicts of these.
                A node gives None, a tensor its value.
            feed_dict: values for tensors, by tensor or name; each is checked against dtype and shape first.
            options: a time limit, a trace.
            run_metadata: gets the trace.

        Raises:
            InvalidArgumentError: a fetch or feed that does not belong to the graph or does not fit, or an argument of another kind.
            FailedPreconditionError: an uninitialised variable, or the session is closed.
            DeadlineExceededError: it took longer than it may.
        """
        try:
            key = plan_key(fetches, feed_dict)
            prepared = self._plans.get(key)
        except (TypeError, ValueError):  # what has no hash cannot be a key
            key = prepared = None
        begun = 0.0
        if prepared is None or prepared.version != self.graph.version:
            arguments.check_run(feed_dict, options, run_metadata)
            begun = time.monotonic()
            with planning_within(options.timeout_in_ms if options else 0):
                prepared = self.prepare(fetches, feed_dict or (), key)
        try:
            values = [feed(value) for feed, value in zip(prepared.feeders, feed_dict.values(), strict=True)] if feed_dict else ()
        except (AttributeError, TypeError):  # there was a mapping with the same keys before
            arguments.check_feed_dict(feed_dict)
            raise
        if options is None:
            if run_metadata is not None:
                arguments.check_run(None, None, run_metadata)
                run_metadata.trace = None
            return prepared.finish(self.execute(prepared, values))
        return prepared.finish(self._watch(prepared, values, options, run_metadata, begun))

    def plan(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Plan:
        """The plan that `run` with these arguments uses; its `source` shows what happens.

        Raises:
            UnimplementedError: the run is not done by a plan.
        """
        arguments.check_feed_dict(feed_dict)
        program = self.prepare(fetches, feed_dict or ()).program
        if not isinstance(program, Plan):
            raise UnimplementedError(
                "Required a run without control flow, which is done by a plan; this one is done by the dataflow engine"
            )
        return program

    def predicted_peak(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> PeakMemory:
        """The most that the arrays of such a run will hold at once, as their shapes tell; nothing is run.

        What was fed, constants, the values of variables and values without axes are not counted: they are there anyway, or take next
        to nothing. `Trace.peak_bytes` is what a recorded run held.

        Raises:
            InvalidArgumentError, NotFoundError: as `run`.
        """
        arguments.check_feed_dict(feed_dict)
        prepared = self.prepare(fetches, feed_dict or ())
        values = [feed(value) for feed, value in zip(prepared.feeders, (feed_dict or {}).values(), strict=True)]
        structure = prepared.structure
        if not structure.tensors and not structure.targets:
            return PeakMemory(0)
        shapes = [Shape(value.shape) for value in values]
        what = structure.tensors, structure.targets, prepared.feeds
        with self.graph.lock, self._lock:
            try:
                build = None if prepared.specialised is None else self._build
                return peak_for_shapes(self.functions, prepared.program, what, shapes, build)
            except UnimplementedError as error:
                return PeakMemory(None, reason=error.message)

    def predicted_peak_bytes(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> int | None:
        """The bytes of `predicted_peak`, None where it cannot be told."""
        return self.predicted_peak(fetches, feed_dict).bytes

    def make_callable(
        self, fetches: Any, feed_list: Sequence[Any] | None = None, connections: Iterable[tuple[str, str]] = ()
    ) -> SessionCallable:
        """A function of the feeds' values, in their order, that gives what `run` gives, with less work a call.

        Args:
            fetches: as `run` takes them.
            feed_list: tensors or names, one a value.
            connections: names of tensors, from and to: in this callable the second takes the value of the first.

        Raises:
            InvalidArgumentError, NotFoundError: a fetch or feed that does not belong to the graph, or a connection that cannot be.
        """
        return SessionCallable(
            self, fetches, tuple(arguments.listed("feed_list", "tensors or names", feed_list)), arguments.checked_connections(connections)
        )

    def partial_run_setup(self, fetches: Any, feeds: Iterable[Any] = ()) -> str:
        """Begin a run that goes on in several steps.

        Args:
            fetches: all that the steps will fetch, as `run` takes them.
            feeds: all that the steps will feed: tensors or names.

        Returns:
            The handle for `partial_run`.

        Raises:
            InvalidArgumentError, NotFoundError: a fetch or feed that does not belong to the graph.
        """
        limit = self.options.operation_timeout_in_ms
        feeds = arguments.listed("feeds", "tensors or names", feeds)
        with self.graph.lock, self._lock, planning_within(limit):
            self.graph.settle()
            self._check_may_plan()
            watched = Step(None, CancellationManager()) if limit else None
            run = PartialRun(parse_fetches(self.graph, fetches), resolve_feeds(self.graph, feeds), self._make_kernel, watched)
            self._last_handle += 1
            handle = f"partial_run_{self._last_handle}"
            self._partial_runs[handle] = run
            return handle

    def partial_run(self, handle: str, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Go on with a run: take some of the feeds that were set up, give some of the fetches.

        Raises:
            InvalidArgumentError: the handle is unknown or its run over; a feed or fetch was not set up or has been there before;
                a fetch cannot be computed from the feeds so far.
            GraphError: a node failed, or it took longer than a run of this session may, which ends the run.
        """
        arguments.check_feed_dict(feed_dict)
        if not isinstance(handle, str):
            arguments.refuse("handle", "what partial_run_setup gave", handle)
        run = self._partial_runs.get(handle)
        if run is None:
            raise InvalidArgumentError(SET_UP_FIRST)
        structure = parse_fetches(self.graph, fetches)
        feeds = resolve_feeds(self.graph, feed_dict or ())
        values = dict(zip(feeds, (feed_dict or {}).values(), strict=True))
        try:
            return run.step_within(self.options.operation_timeout_in_ms, structure, values)
        except BaseException as error:
            if run.is_over and run.meets:
                self._end_meeting(error)
            raise
        finally:
            if run.is_over:
                self._partial_runs.pop(handle, None)

    def list_devices(self) -> list[DeviceAttributes]:
        """The devices that it can run on.

        Raises:
            FailedPreconditionError: it is closed.
        """
        if self._closed:
            raise FailedPreconditionError("Attempted to use a closed Session.")
        return list(local_devices())

    def finalize(self) -> None:
        """Promise that nothing new will be run: from now on only what has been planned already.

        A fetch that is not planned, and a change of the graph, are errors from then on.
        """
        self._finalized = True

    def reset(self, containers: Sequence[str] = ()) -> None:
        """Forget the values of the variables in `containers`, and the queues there; those in the default container if none is named."""
        self.resources.reset(frozenset(arguments.checked_names("containers", containers) or ("",)))

    def close(self) -> None:
        """Give the variables and plans free; runs that wait for a value end."""
        self._closed = True
        with self._lock, critical_section:
            self._drop_plans()
            self._partial_runs.clear()
            self._kernels.clear()
            renew_rendezvous(self, self._meeting, CancelledError("The session was closed"))
            self.resources.shared.close()
            self.resources = ResourceManager()
            self.functions = FunctionLibraryRuntime(self.graph.library, resources=self.resources)

    def prepare(self, fetches: Any, feeds: Iterable[Any], key: Any = None, connections: Iterable[tuple[str, str]] = ()) -> Prepared:
        """What running `fetches` with values for `feeds` takes.

        Args:
            fetches: as `run` takes them.
            feeds: tensors or names.
            key: what to keep it under, None not to keep it.
            connections: names of tensors, from and to: the second takes the value of the first.

        Raises:
            FailedPreconditionError: the session is closed or finalized, or its graph should not have changed.
            InvalidArgumentError, NotFoundError: a fetch or feed that does not belong to the graph.
        """
        with self.graph.lock, self._lock, paused_collector(), planning_within(self.options.operation_timeout_in_ms):
            self.graph.settle()
            self._forget_changed()
            known = None if key is None else self._plans.get(key)
            if known is not None:
                return known
            self._check_may_plan()
            structure = parse_fetches(self.graph, fetches)
            fed = resolve_feeds(self.graph, feeds)
            what = (structure.tensors, structure.targets, fed)
            connected = resolve_connections(self.graph, connections, fed)
            if connected:
                what = connect(*what, connected)
            what = inferred_from_feeds(*what)
            needed = needed_nodes(*what)
            if not self.options.allow_soft_placement:
                check_devices(needed, self.list_devices())
            program = build_program(*what, self._make_kernel, self.engine, needed, self.options.inter_op_threads)
            if self.resources.redeclared:
                self._drop_plans()
            self._initial_values.note_run(needed)
            prepared = Prepared(self.graph.version, program, structure, fed, needed)
            if type(program) is Plan and Specialised.pays(program, fed):
                prepared.specialised = Specialised(program, *what, self._build)
            if key is not None:
                if len(self._plans) >= _MAX_PLANS:
                    self._plans.pop(next(iter(self._plans))).close()
                self._plans[key] = prepared
            return prepared

    def forget(self, key: Any) -> None:
        """Drop what `prepare` keeps under `key`."""
        with self._lock:
            prepared = self._plans.pop(key, None)
        if prepared is not None:
            prepared.close()

    def execute(self, prepared: Prepared, values: Sequence[Any]) -> list[Any]:
        """Run what `prepare` gave on checked values; the raw results.

        Raises:
            GraphError: whatever went wrong, told with its node.
        """
        if self._is_watched:
            return self._watch(prepared, values, None, None)
        program = prepared.program if prepared.specialised is None else prepared.specialised.plan_for(values)
        try:
            with np.errstate(all="ignore"):
                return program.run(*values)
        except BaseException as error:  # noqa: BLE001 - whatever a kernel raises is told with its node
            raise self._told(prepared, program, error)  # noqa: B904 - `_told` says where it comes from

    def _watch(
        self, prepared: Prepared, values: Sequence[Any], options: RunOptions | None, metadata: RunMetadata | None, begun: float = 0.0
    ) -> list[Any]:
        arguments.check_run(None, options, metadata)
        chosen = options or _NO_RUN_OPTIONS
        step = Step(Recorder() if chosen.is_traced else None)
        if metadata is not None:
            metadata.trace = None
        program = prepared.program_for(values)
        try:
            with np.errstate(all="ignore"):
                return run_watched(program, values, step, chosen.timeout_in_ms or self.options.operation_timeout_in_ms, begun)
        except BaseException as error:  # noqa: BLE001 - whatever a kernel raises is told with its node
            raise self._told(prepared, program, error)  # noqa: B904 - `_told` says where it comes from
        finally:
            if step.recorder is not None:
                self.trace = Trace(step.recorder.events, program.nodes, step.peak_bytes)
                if metadata is not None:
                    metadata.trace = self.trace

    def _told(self, prepared: Prepared, program: Program, error: BaseException) -> BaseException:
        """The error to raise."""
        told = program.explain(error)
        if told is not error:
            told.__cause__ = error
        if prepared.meets:
            self._end_meeting(told)
        return told

    def _end_meeting(self, error: BaseException) -> None:
        """Tell whoever waits for a value of a run that has failed; later runs meet elsewhere."""
        renew_rendezvous(self, self._meeting, error if isinstance(error, GraphError) else CancelledError(f"The run was stopped: {error!r}"))

    def _forget_changed(self) -> None:
        """Drop the plans that depend on nodes that have changed. What has only grown elsewhere stays planned."""
        version = self.graph.version
        changed = self._changed.copy()
        for key, prepared in list(self._plans.items()):
            if changed.isdisjoint(prepared.names):
                prepared.version = version
            else:
                self._plans.pop(key).close()
        self._initial_values.note_changes(self.graph, self.resources, changed)
        self.resources.disown(lambda it: it.owner in changed and getattr(self.graph.find(it.owner), "op", None) != it.op)
        self._changed -= changed  # not before: Ctrl-C may have come in between

    def variables_with_other_initial_values(self) -> list[str]:
        """The names of the variables that keep their value although the graph gives them another initial value by now."""
        with self.graph.lock, self._lock:
            self._forget_changed()
            return list(self._initial_values.outdated.values())

    def _drop_plans(self) -> None:
        self.resources.redeclared = False
        for prepared in self._plans.values():
            prepared.version = -1  # callables may still hold it
            prepared.close()
        self._plans.clear()

    def _check_may_plan(self) -> None:
        if self._closed:
            raise FailedPreconditionError("Attempted to use a closed Session.")
        if self._finalized:
            raise FailedPreconditionError("The session has been finalized: only what was run before can be run again")
        if self.options.optimize_for_static_graph and self.graph.version != self._first_version:
            raise FailedPreconditionError(
                "The graph has changed since the session was made, which optimize_for_static_graph promised it would not"
            )

    def _build(self, fetches: Sequence[Tensor], targets: Sequence[Node], feeds: Sequence[Tensor]) -> Plan:
        return build_plan(fetches, targets, feeds, self._make_kernel, threads=self.options.inter_op_threads)

    def _make_kernel(self, node: Node, context: KernelContext) -> Kernel:
        """The kernel of `node`; one with state lives as long as the session and its node's definition."""
        context.resources = self.resources
        context.functions = self.functions
        if node.registration.is_function:
            return self.functions.function_kernel(node.op, node.node_def.attr)
        factory = node.registration.kernel
        assert factory is not None
        if is_ours(node):
            return factory(context)  # what state our own ops have is among the resources
        if not node.op_def.is_stateful:
            return checked(node, factory(context))
        with self._lock:  # plans for the very shapes that are fed are made while others run
            known = self._kernels.get(node.name)
            if known is None or known[0] != (node.op, node.node_def.attr):
                known = self._kernels[node.name] = ((node.op, node.node_def.attr), checked(node, factory(context)))
            return known[1]

    def __repr__(self) -> str:
        count = sum(1 for variable in self.resources.variables.values() if variable.value is not None)
        return f"<gc.Session {'closed' if self._closed else f'{count} variables initialised'}>"


_live: Final[weakref.WeakSet[Session]] = weakref.WeakSet()


def live_sessions() -> list[Session]:
    """All sessions that somebody holds and that are not closed, in no particular order."""
    return [session for session in list(_live) if not session._closed]
