"""The planner: prepares runs of a graph, and caches them until a node they depend on changes."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from graphcore.errors import FailedPreconditionError, UnimplementedError
from graphcore.graph import Graph
from graphcore.graph.editing.changes import Change
from graphcore.graph.model.node import Node, Tensor
from graphcore.kernel_context import KernelContext
from graphcore.placement.body_requests import remark_body_requests
from graphcore.placement.device import Device
from graphcore.registry import Kernel
from graphcore.runtime.core.connections import connect, resolve_connections
from graphcore.runtime.core.devices import check_devices, local_devices, remark_absent_devices
from graphcore.runtime.core.feeds import resolve_feeds
from graphcore.runtime.core.fetches import FetchStructure, parse_fetches
from graphcore.runtime.core.options import SessionOptions
from graphcore.runtime.core.program import Program
from graphcore.runtime.core.prune import needed_nodes
from graphcore.runtime.core.rewrite import DeviceAttributes, subgraph_to_run
from graphcore.runtime.core.timed_run import planning_within
from graphcore.runtime.dataflow.program import DataflowProgram, build_dataflow
from graphcore.runtime.partitions.program import PartitionedProgram
from graphcore.runtime.plan.peak_memory import PeakMemory
from graphcore.runtime.plan.plan import Plan, build_plan
from graphcore.runtime.session.engines import Engine, build_program
from graphcore.runtime.session.function_memory import peak_for_shapes
from graphcore.runtime.session.initial_values import InitialValues
from graphcore.runtime.session.mild_initializers import mild_initializers
from graphcore.runtime.session.placing import DividedProgram, SessionDevices
from graphcore.runtime.session.prepared import Prepared
from graphcore.runtime.session.runner import Runner
from graphcore.runtime.session.specialise import Specialised
from graphcore.shapes import Shape
from graphcore.support.critical_section import critical_section
from graphcore.support.forking import new_rlock
from graphcore.support.gc_pause import paused_collector

_MAX_PLANS: Final = 256
_What = tuple[list[Tensor], list[Node], list[Tensor]]
"""The fetches, targets and feeds of a run."""
BuildStepwise = Callable[[_What, Sequence[Node]], PartitionedProgram | DataflowProgram]
"""Prepares a run that is fed step by step, given the nodes that it needs."""


class Planner:
    """Prepares the runs of one session.

    Args:
        graph: the graph.
        options: the session's options.
        engine: the engine of the runs.
        runner: makes the kernels.
        devices: the devices to run on; None for the CPU of this process.

    Attributes:
        plans: the prepared runs, by key; the oldest first.
        last_fetches: the fetches of the run that was prepared last.
        lock: held during preparation; acquired after the graph's.
        is_closed: True if nothing may be prepared any more.
        is_finalized: True if nothing new may be prepared.
    """

    def __init__(
        self, graph: Graph, options: SessionOptions, engine: Engine, runner: Runner, devices: SessionDevices | None = None
    ) -> None:
        self.graph = graph
        self.options = options
        self.engine = engine
        self.runner = runner
        self.devices = devices
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
            known = None if key is None else self.plans.get(key)
            if known is not None:
                self.last_fetches = known.structure
                return known
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
        what = (structure.tensors, structure.targets, fed)
        connected = resolve_connections(self.graph, connections, fed)
        if connected:
            what = connect(*what, connected)
        what = subgraph_to_run(*what)
        needed = needed_nodes(*what)
        mild = mild_initializers(what[1], needed)
        program, device = self._build_program(what, needed, engine, mild)
        if self.runner.resources.redeclared:
            self._drop_plans()
        self._initial_values.note_run(needed)
        prepared = Prepared(self.graph.version, program, structure, fed, needed)
        prepared.devices, prepared.device = self.devices, device
        if type(program) is Plan and Specialised.pays(program, fed):
            prepared.specialised = Specialised(program, *what, partial(self._build, mild=mild))
        return prepared

    def _build_program(self, what: _What, needed: Sequence[Node], engine: Engine, mild: Container[str]) -> tuple[Program, str]:
        """The program, and the device that does all of it, "" for several or none."""
        divided = self._divided(what, needed, engine, mild)
        if not isinstance(divided, str):
            if engine == "plan" and len(divided.parts) > 1:
                raise UnimplementedError(f"Required a run on one device for the plan engine; this one is on {len(divided.parts)}")
            return divided, ""
        gpu = None if self.devices is None else self.devices.gpus.get(divided)
        if gpu is None:
            make_kernel = partial(self.runner.make_kernel, mild=mild)
            return build_program(*what, make_kernel, engine, needed, self.options.inter_op_threads), divided
        return gpu.program(
            build_program(*what, self.runner.kernels_on(gpu, mild), engine, needed, threads=1), capture=bool(self.options.capture_on_gpu)
        ), divided

    def build_stepwise(self, what: _What, needed: Sequence[Node]) -> PartitionedProgram | DataflowProgram:
        """The program of a run that is fed step by step.

        Raises:
            UnimplementedError: the devices do not run in steps.
        """
        make_kernel = partial(self._make_kernel, mild=mild_initializers(what[1], needed))
        divided = self._checked_device(needed) if self.devices is None else self.devices.build_stepwise(*what, make_kernel)
        return build_dataflow(*what, make_kernel) if isinstance(divided, str) else divided

    def _divided(self, what: _What, needed: Sequence[Node], engine: Engine, mild: Container[str]) -> DividedProgram | str:
        """The program on several devices, or the device that does all of it, "" for the CPU of this process.

        Raises:
            GraphError: a node cannot be placed, or requests a device that does not exist.
        """
        if self.devices is None:
            return self._checked_device(needed)
        return self.devices.build(*what, partial(self._make_kernel, mild=mild), engine)

    def _make_kernel(self, node: Node, context: KernelContext, mild: Container[str]) -> Kernel:
        """The kernel of a node on its device."""
        gpu = None if self.devices is None else self.devices.gpus.get(node.assigned_device)
        return self.runner.make_kernel(node, context, mild=mild) if gpu is None else self.runner.kernels_on(gpu, mild)(node, context)

    def _checked_device(self, needed: Sequence[Node]) -> str:
        """The empty name of the CPU of this process.

        Raises:
            InvalidArgumentError: a node requests a device that does not exist.
        """
        if self.options.allow_soft_placement:
            remark_absent_devices(needed, local_devices())
        else:
            check_devices(needed, local_devices())
        remark_body_requests(needed, local_devices()[0].name)
        return ""

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
        return list(local_devices()) if self.devices is None else list(self.devices.devices)

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

    def move(self, devices: SessionDevices) -> None:
        """Run on other devices from now on, with plans of their own."""
        with self.graph.lock, self.lock:
            self._drop_plans()
            self.devices = devices

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
            if changed.keys().isdisjoint(prepared.names) and (self.devices is None or prepared.version == version):
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
        make_kernel = partial(self.runner.make_kernel, mild=mild)
        return build_plan(fetches, targets, feeds, make_kernel, threads=self.options.inter_op_threads)


def _add_names_to(changed: dict[str, bool]) -> Callable[[Change], None]:
    """A subscriber that collects the names of changed nodes, without keeping the planner alive."""

    def add(change: Change) -> None:
        changed[change.node] = changed.get(change.node, False) or change.kind != "device"

    return add
