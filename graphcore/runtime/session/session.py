"""Session: runs subgraphs with feeds and fetches, and keeps the variables."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Final, Literal

import numpy as np

from graphcore.definitions import GraphDef
from graphcore.errors import FailedPreconditionError, GraphError, UnimplementedError
from graphcore.graph import Graph, Node, get_default_graph
from graphcore.graph.default_session import default_sessions
from graphcore.kernel_context import ResourceManager
from graphcore.placement.device import Device, DeviceSet
from graphcore.runtime.backends.backend import Cluster, checked_cluster, checked_devices, open_backend
from graphcore.runtime.core import arguments
from graphcore.runtime.core.fetches import plan_key
from graphcore.runtime.core.options import RunMetadata, RunOptions, SessionOptions
from graphcore.runtime.core.rendezvous import Rendezvous
from graphcore.runtime.core.rewrite import DeviceAttributes
from graphcore.runtime.core.sizes import PeakMemory
from graphcore.runtime.core.timed_run import planning_within
from graphcore.runtime.core.tracing import Trace
from graphcore.runtime.engines import check_engine
from graphcore.runtime.functions.function_runtime import FunctionLibraryRuntime
from graphcore.runtime.plan.plan import Plan
from graphcore.runtime.session.callables import SessionCallable
from graphcore.runtime.session.default_session import DefaultSession
from graphcore.runtime.session.partial_run import PartialRuns
from graphcore.runtime.session.planner import Planner
from graphcore.runtime.session.runner import Runner, fed_values
from graphcore.runtime.session.variable_files import read_checkpoint, restore_values
from graphcore.runtime.stepping.gate import Gate
from graphcore.runtime.stepping.stepped_run import SteppedRun, last_stepped_run
from graphcore.source import caller_location
from graphcore.support.critical_section import critical_section

_STRICT: Final = SessionOptions(allow_soft_placement=False)


class Session(DefaultSession):
    """Runs a graph on NumPy, or on CuPy where nodes are on a GPU.

    Graphs that show models of other frameworks run in these.

    Args:
        graph_or_target: the graph to run, or TensorFlow's first argument, the target. The graph may also be given by its name.
        devices: a DeviceSet, or devices or their names, which are simulated unless they are CPUs; None for the CPU of this process; "gpu" for
            the CPU and the GPUs of this machine (see `gc.gpu_devices`). With several, nodes are placed by `Placer`, and each device has an
            executor of its own.
        options: the options. With `devices` and without options, a requested device must exist.
        engine: "plan" runs one generated Python function, "dataflow" tokens, frames and iterations; "auto" uses a plan if possible.
        cluster: the tasks to run on, a `gc.DaskCluster` or `gc.LocalCluster`; each is a device, and holds the variables placed on it.
        graph: the graph to run; the default graph if None.
        target: "" or "local", for this process.
        config: TensorFlow 1's form of the options, see `gc.ConfigProto`.

    Raises:
        NotFoundError: no such target.
        InvalidArgumentError: no such engine, or an argument of another kind.
        FailedPreconditionError: there are no devices, no GPU although one is asked for, or a worker of the cluster has another version of the package.
        AbortedError: the cluster is lost.

    The graph may grow and change between runs: a run is planned again when a node that it depends on has changed. Used as a
    context manager it is the default session, and its graph the default graph, within the block. Several threads may run it at once.

    Attributes:
        target, options, graph, engine, cluster: as given.
        source: the line that made it.
        planner: prepares its runs, and caches them.
        runner: executes them, and holds its variables.

    Example:
        >>> x = gc.placeholder(gc.float32, [2], name="x")
        >>> with gc.Session() as session:
        ...     total, twice = session.run([gc.reduce_sum(x), 2 * x], {x: [1, 2]})
        >>> print(total, twice)
        3.0 [2. 4.]
    """

    def __init__(
        self,
        graph_or_target: Graph | str | None = None,
        /,
        devices: DeviceSet | Iterable[Device | str] | Literal["gpu"] | Graph | None = None,
        config: Any = None,
        *,
        graph: Graph | None = None,
        options: SessionOptions | None = None,
        engine: str = "auto",
        target: str = "",
        cluster: Cluster | None = None,
    ) -> None:
        super().__init__()
        graph, target = arguments.graph_and_target(graph_or_target, devices, graph, target)
        if isinstance(devices, Graph):  # TensorFlow's second argument
            devices = None
        options, devices = arguments.configured(options, devices, config)
        self.target = arguments.checked_target(target)
        device_set = checked_devices(devices)
        self.cluster = checked_cluster(cluster, device_set)
        is_local = device_set is None and cluster is None
        self.options = arguments.checked_session(graph, options if is_local or options is not None else _STRICT)
        self.graph = get_default_graph() if graph is None else graph
        self.engine = check_engine(engine)
        self.source = caller_location()
        backend = open_backend(self.graph, self.options, device_set, self.cluster)
        self.runner = Runner(self.graph, self.options.operation_timeout_in_ms, backend)
        self.planner = Planner(self.graph, self.options, self.engine, self.runner)
        self._partial_runs = PartialRuns(self.planner, self.runner)
        self._restored = 0
        self._stepped_runs: weakref.WeakSet[SteppedRun] = weakref.WeakSet()
        _live[next(_numbers)] = self
        for listener in tuple(_listeners):
            listener(self)

    @property
    def resources(self) -> ResourceManager:
        """The variables, queues and other resources."""
        return self.runner.resources

    @property
    def rendezvous(self) -> Rendezvous:
        """The rendezvous of its `_Send` and `_Recv` nodes and the client."""
        return self.runner.rendezvous

    @property
    def functions(self) -> FunctionLibraryRuntime:
        """The runtime of the functions that its nodes call."""
        return self.runner.functions

    @property
    def trace(self) -> Trace | None:
        """The last recorded run."""
        return self.runner.trace

    @property
    def last_fetches(self) -> list[Node]:
        """The nodes that the last planned run fetches, as far as they still exist."""
        fetched = self.planner.last_fetches
        if fetched is None:
            return []
        names = dict.fromkeys([tensor.node.name for tensor in fetched.tensors] + [node.name for node in fetched.targets])
        return [node for node in map(self.graph.find, names) if node is not None]

    @property
    def devices(self) -> DeviceSet | None:
        """The devices that it runs on; None for the CPU of this process."""
        return self.runner.backend.devices

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
                The result of a node is None. In the graph of a model of another framework a node stands for its value, and None for all results.
            feed_dict: values for tensors, by tensor or name; each is checked against dtype and shape first. A tuple of tensors, such as the
                state of a recurrent cell, takes a tuple of values.
            options: a time limit, a trace.
            run_metadata: gets the trace.

        Raises:
            InvalidArgumentError: a fetch or feed that does not belong to the graph or does not fit, or an argument of another kind.
            FailedPreconditionError: an uninitialised variable, or the session is closed.
            DeadlineExceededError: the time limit was exceeded.
        """
        try:
            key = plan_key(fetches, feed_dict)
            prepared = self.planner.plans.get(key)
        except (TypeError, ValueError):  # unhashable arguments cannot be a key
            key = prepared = None
        begun = 0.0
        if prepared is None or prepared.version != self.graph.version:
            arguments.check_run(feed_dict, options, run_metadata)
            flat = arguments.flat_feeds(feed_dict)
            if flat is not feed_dict:
                return self.run(fetches, flat, options, run_metadata)
            self._restore_saved()
            begun = time.monotonic()
            with planning_within(options.timeout_in_ms if options else 0):
                prepared = self.planner.prepare(fetches, feed_dict or (), key)
        try:
            values = [feed(value) for feed, value in zip(prepared.feeders, feed_dict.values(), strict=True)] if feed_dict else ()
        except (AttributeError, TypeError):  # there was a mapping with the same keys before
            arguments.check_feed_dict(feed_dict)
            raise
        if options is None:
            if run_metadata is not None:
                arguments.check_run(None, None, run_metadata)
                run_metadata.trace = None
            return prepared.finish(self.runner.execute(prepared, values))
        return prepared.finish(self.runner.execute_watched(prepared, values, options, run_metadata, begun))

    def _restore_saved(self) -> None:
        """Restore the values that lie beside the files of the graph, once.

        Raises:
            FailedPreconditionError: they cannot be restored.
        """
        waiting = self.graph.saved_values[self._restored :]
        if not waiting or self.is_closed:
            return
        self._restored += len(waiting)  # for the runs below, too
        for saved in waiting:
            try:
                self.run(self.graph.get_operation_by_name(saved.restore_op), {saved.filename_tensor: saved.prefix})
                for name in saved.init_ops:
                    self.run(self.graph.get_operation_by_name(name.partition(":")[0]))
            except GraphError as error:
                raise FailedPreconditionError(
                    f"The values beside the loaded graph ('{saved.prefix}') cannot be restored: {error.message}"
                ) from error

    def plan(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Plan:
        """The plan that `run` uses for these arguments, with its code in `source`.

        Raises:
            UnimplementedError: the run does not use a plan.
        """
        arguments.check_feed_dict(feed_dict)
        program = self.planner.prepare(fetches, feed_dict or ()).program
        program = getattr(program, "on_device", program)
        if not isinstance(program, Plan):
            raise UnimplementedError(
                "Required a run without control flow, which is done by a plan; this one is done by the dataflow engine"
            )
        return program

    def predicted_peak(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> PeakMemory:
        """The predicted peak of live arrays of such a run, from shapes; nothing is run.

        Feeds, constants, values of variables and scalars are not counted: they exist anyway, or are negligible. `Trace.peak_bytes` is the
        measured peak of a recorded run.

        Raises:
            InvalidArgumentError, NotFoundError: as `run`.
        """
        arguments.check_feed_dict(feed_dict)
        return self.planner.predicted_peak(fetches, feed_dict or {})

    def predicted_peak_bytes(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> int | None:
        """The bytes of `predicted_peak`, None if unknown."""
        return self.predicted_peak(fetches, feed_dict).bytes

    def make_callable(
        self, fetches: Any, feed_list: Sequence[Any] | None = None, connections: Iterable[tuple[str, str]] = ()
    ) -> SessionCallable:
        """Prepare a function of feed values that returns the results of `run`, with less overhead.

        Args:
            fetches: those of `run`.
            feed_list: tensors or names, one for each value.
            connections: pairs of tensor names: in this callable the second takes the value of the first.

        Raises:
            InvalidArgumentError, NotFoundError: a fetch or feed that does not belong to the graph, or an impossible connection.
        """
        self._restore_saved()
        return SessionCallable(
            self, fetches, tuple(arguments.listed("feed_list", "tensors or names", feed_list)), arguments.checked_connections(connections)
        )

    def partial_run_setup(self, fetches: Any, feeds: Iterable[Any] = ()) -> str:
        """Begin a run in several steps.

        Args:
            fetches: the fetches of all steps, as for `run`.
            feeds: the feeds of all steps: tensors or names.

        Returns:
            The handle for `partial_run`.

        Raises:
            InvalidArgumentError, NotFoundError: a fetch or feed that does not belong to the graph.
        """
        self._restore_saved()
        return self._partial_runs.set_up(fetches, arguments.listed("feeds", "tensors or names", feeds))

    def partial_run(self, handle: str, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Continue a partial run: take some of its feeds, return some of its fetches.

        Raises:
            InvalidArgumentError: the handle is unknown or its run over; a feed or fetch was not set up or was used before;
                a fetch cannot be computed from the feeds so far.
            GraphError: a node failed, or the session's time limit was exceeded, which ends the run.
        """
        arguments.check_feed_dict(feed_dict)
        if not isinstance(handle, str):
            arguments.refuse("handle", "what partial_run_setup gave", handle)
        return self._partial_runs.step(handle, fetches, feed_dict or {})

    def step_through(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> SteppedRun:
        """Begin a run by the dataflow engine that goes on one node at a time; time limits do not apply.

        Views of the graph show it in their stepper. A run of the same graph that was begun before is closed.

        Args:
            fetches, feed_dict: those of `run`.

        Raises:
            InvalidArgumentError, NotFoundError, FailedPreconditionError: as `run`.
        """
        arguments.check_run(feed_dict, None, None)
        feed_dict = arguments.flat_feeds(feed_dict)
        prepared = self.planner.prepare(fetches, feed_dict or (), engine="dataflow")
        values: list[Any] = [_kept(feed(value)) for feed, value in zip(prepared.feeders, (feed_dict or {}).values(), strict=True)]
        before = last_stepped_run.of(self.graph)
        if before is not None:
            before.close()
        gate = Gate(fed_values(prepared, values, ()))
        fed = dict.fromkeys([tensor.node.name for tensor in prepared.feeds])
        self._restore_saved()
        begun = SteppedRun(
            prepared.program.nodes, list(fed), gate, lambda step: prepared.finish(self.runner.execute_step(prepared, values, step))
        )
        last_stepped_run.set(self.graph, begun)
        self._stepped_runs.add(begun)
        return begun

    def recover(self, checkpoint: str | os.PathLike[str], cluster: Cluster | None = None) -> None:
        """Begin the tasks of a session on a cluster again after a loss, with the values of a checkpoint.

        All tasks begin again, those that were not lost too: variables that the checkpoint lacks have no values, queues are empty, and
        random numbers start anew.

        Args:
            checkpoint: the file of `gc.save_variables` or `gc.train.CheckpointSaver`, or the path of a checkpoint of `gc.train.Saver`.
            cluster: another cluster, for example after its scheduler was lost; the same one by default, whose workers are looked up
                again by name.

        Raises:
            FailedPreconditionError: the session is closed, or not on a cluster.
            NotFoundError: there is no such checkpoint; nothing has changed.
            InvalidArgumentError: the checkpoint does not fit the graph, or a worker is missing.
            AbortedError: the scheduler is lost, or a worker does not answer.
        """
        self.planner.list_devices()
        if self.cluster is None:
            raise FailedPreconditionError("Required a session on a cluster to recover; this one runs in this process")
        values = read_checkpoint(self.graph, checkpoint)
        chosen = checked_cluster(cluster, None) or self.cluster
        opened = chosen.open(self.graph, self.options)
        with critical_section:
            before, self.cluster = self.runner.backend, chosen
            self.planner.move(opened)
        before.close()
        restore_values(self.graph, opened.kernels.resources, values)

    @property
    def graph_def(self) -> GraphDef:
        """The graph as a GraphDef, as it is now."""
        return self.graph.as_graph_def()

    def list_devices(self) -> list[DeviceAttributes] | list[Device]:
        """The available devices.

        Raises:
            FailedPreconditionError: it is closed.
        """
        return self.planner.list_devices()

    def finalize(self) -> None:
        """Forbid new runs: only runs that are planned already may be repeated.

        Fetches that are not planned, and changes of the graph, are errors from then on.
        """
        self.planner.is_finalized = True

    def reset(self, containers: Sequence[str] = ()) -> None:
        """Clear the variables and queues in `containers`, by default those in the default container."""
        self.resources.reset(frozenset(arguments.checked_names("containers", containers) or ("",)))

    def close(self) -> None:
        """Release variables and plans; waiting runs end."""
        self.planner.close(self._close_runs)

    def _close_runs(self) -> None:
        self._partial_runs.clear()
        for stepped in list(self._stepped_runs):
            stepped.close()
        self.runner.close()

    def variables_with_other_initial_values(self) -> list[str]:
        """The names of the variables that keep their values although their initial values have changed."""
        return self.planner.variables_with_other_initial_values()

    def variables_that_lost_their_values(self) -> list[str]:
        """The names of the variables that have other types or shapes now, which their values do not fit."""
        return self.planner.variables_that_lost_their_values()

    @property
    def is_closed(self) -> bool:
        """True after `close` was called."""
        return self.planner.is_closed

    def __repr__(self) -> str:
        if self.is_closed:
            return "<gc.Session closed>"
        where = "" if self.cluster is None else f" on {self.cluster!r}"
        return f"<gc.Session{where} {len(self.resources.initialised())} variables initialised>"


def _kept(value: Any) -> Any:
    """A value that stays as it is when the caller changes the array."""
    return value.copy() if isinstance(value, np.ndarray) else value


_numbers: Final = count()
_live: Final[weakref.WeakValueDictionary[int, Session]] = weakref.WeakValueDictionary()


def live_sessions() -> list[Session]:
    """All sessions that are referenced and not closed, in the order in which they were made."""
    return [session for session in list(_live.values()) if not session.is_closed]


def get_default_session() -> Session | None:
    """The innermost session entered with `with`, None if there is none."""
    sessions: tuple[Session, ...] = default_sessions.get()
    return sessions[-1] if sessions else None


_listeners: Final[list[Callable[[Session], None]]] = []


def listen_to_sessions(listener: Callable[[Session], None]) -> Callable[[], None]:
    """Call `listener` with each session that is made from now on. Returns a function that ends this."""
    _listeners.append(listener)
    return lambda: _listeners.remove(listener)
