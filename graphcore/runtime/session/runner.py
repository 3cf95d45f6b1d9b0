"""The runner: executes planned runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from graphcore.errors import CancelledError, GraphError
from graphcore.graph import Graph
from graphcore.graph.saved_values import with_absent_values
from graphcore.kernel_context import ResourceManager
from graphcore.runtime.backends.backend import Backend
from graphcore.runtime.backends.work import RecordedRun
from graphcore.runtime.core import arguments
from graphcore.runtime.core.options import RunMetadata, RunOptions
from graphcore.runtime.core.program import Program, Step
from graphcore.runtime.core.recorder import Recorder
from graphcore.runtime.core.rendezvous import Rendezvous
from graphcore.runtime.core.timed_run import run_watched
from graphcore.runtime.core.tracing import Trace
from graphcore.runtime.core.value_records import ValueRecorder
from graphcore.runtime.functions.function_runtime import FunctionLibraryRuntime
from graphcore.runtime.session.prepared import Prepared
from graphcore.runtime.stepping.stepped_run import last_stepped_run
from graphcore.support.critical_section import critical_section
from graphcore.support.forking import new_lock

_NO_RUN_OPTIONS: Final = RunOptions()


class Runner:
    """Executes prepared runs.

    Args:
        graph: the graph, with the functions that nodes may call.
        timeout_in_ms: the time limit of runs without one in their options; 0 for none.
        backend: where they happen.

    Attributes:
        backend: as given.
        rendezvous: passes values between `_Send` and `_Recv` nodes and the client.
        trace: the last recorded run.
    """

    def __init__(self, graph: Graph, timeout_in_ms: int, backend: Backend) -> None:
        self.graph = graph
        self.timeout_in_ms = timeout_in_ms
        self.backend = backend
        self.rendezvous = Rendezvous()
        self.resources.channel = self.rendezvous
        self.trace: Trace | None = None
        self._rendezvous_lock = new_lock()

    @property
    def resources(self) -> ResourceManager:
        """The variables, queues and the like."""
        return self.backend.kernels.resources

    @property
    def functions(self) -> FunctionLibraryRuntime:
        """The runtime of the functions that nodes call."""
        return self.backend.kernels.functions

    def execute(self, prepared: Prepared, values: Sequence[Any]) -> list[Any]:
        """Run `prepared` on checked values.

        Returns:
            The raw results, in the order of its fetches.

        Raises:
            GraphError: the run failed; the error names the node.
        """
        if prepared.open_feeds:
            self._note_shapes(prepared, values)
        if self.timeout_in_ms or self.graph.recording is not None:
            return self.execute_watched(prepared, values, None, None)
        program = prepared.program if prepared.specialised is None else prepared.specialised.plan_for(values)
        try:
            with np.errstate(all="ignore"):
                return program.run(*values)
        except BaseException as error:  # noqa: BLE001 - a kernel may raise anything, and the user needs its node
            raise self._explained(prepared, program, error)  # noqa: B904 - `_explained` sets the cause
        finally:
            self.graph.run_count += 1

    def _note_shapes(self, prepared: Prepared, values: Sequence[Any]) -> None:
        """Keep the shapes of the feeds that the graph does not know.

        Predictions are of steps like the last one.
        """
        shapes = self.graph.fed_shapes
        for place, name in prepared.open_feeds:
            shape = getattr(values[place], "shape", None)
            if shape is not None and shapes.get(name) != shape:
                self.graph.fed_shapes = shapes = {**shapes, name: tuple(shape)}

    def execute_watched(
        self, prepared: Prepared, values: Sequence[Any], options: RunOptions | None, metadata: RunMetadata | None, begun: float = 0.0
    ) -> list[Any]:
        """Run with recording and a time limit according to `options` and `Graph.recording`.

        `metadata` gets the trace.
        """
        arguments.check_run(None, options, metadata)
        chosen = (options or _NO_RUN_OPTIONS).over(self.graph.recording)
        recorder = None
        if chosen.is_traced:
            recorder = Recorder(fed_values(prepared, values, chosen.patterns) if chosen.values else None)
        return self.execute_step(prepared, values, Step(recorder), chosen.timeout_in_ms or self.timeout_in_ms, metadata, begun)

    def execute_step(
        self,
        prepared: Prepared,
        values: Sequence[Any],
        step: Step,
        timeout_in_ms: int = 0,
        metadata: RunMetadata | None = None,
        begun: float = 0.0,
    ) -> list[Any]:
        """Run as `step`, whose record becomes the trace.

        `metadata` gets the trace.
        """
        if metadata is not None:
            metadata.trace = None
        if prepared.open_feeds:
            self._note_shapes(prepared, values)
        program = prepared.program_for(values)
        try:
            with np.errstate(all="ignore"):
                return run_watched(program, values, step, timeout_in_ms, begun)
        except BaseException as error:  # noqa: BLE001 - a kernel may raise anything, and the user needs its node
            raise self._explained(prepared, program, error)  # noqa: B904 - `_explained` sets the cause
        finally:
            self.graph.run_count += 1
            if step.recorder is not None:
                self.graph.trace = self.trace = self._trace(prepared, program, values, step, step.recorder)
                stepped = last_stepped_run.of(self.graph)
                if stepped is not None and stepped.is_over:
                    last_stepped_run.set(self.graph, None)  # this run is newer
                if metadata is not None:
                    metadata.trace = self.trace

    def _trace(self, prepared: Prepared, program: Program, values: Sequence[Any], step: Step, recorder: Recorder) -> Trace:
        """The trace of a run that has ended."""
        recorder.argument_bytes[""] = {
            tensor.node.name: getattr(value, "nbytes", 0) for tensor, value in zip(prepared.feeds, values, strict=True)
        }
        records = None if recorder.values is None else recorder.values.end(program.nodes)
        return self.backend.trace(RecordedRun(program, prepared.device, recorder, step.peak_bytes, records))

    def _explained(self, prepared: Prepared, program: Program, error: BaseException) -> BaseException:
        """The error to raise instead of `error`."""
        explained = program.explain(error)
        explained = with_absent_values(explained, self.graph, self.graph.absent_values)
        if explained is not error:
            explained.__cause__ = error
        if prepared.uses_rendezvous:
            self.abort_rendezvous(explained)
        return explained

    def abort_rendezvous(self, error: BaseException) -> None:
        """Abort waiting sends and receives with `error`; later runs get a new rendezvous."""
        status = error if isinstance(error, GraphError) else CancelledError(f"The run was stopped: {error!r}")
        with critical_section:
            with self._rendezvous_lock:  # two concurrent failures abort one rendezvous each
                ended, self.rendezvous = self.rendezvous, Rendezvous()
                self.resources.channel = self.rendezvous
            ended.start_abort(status)

    def close(self) -> None:
        """End waiting runs, and release the variables."""
        self.graph.run_count += 1
        self.abort_rendezvous(CancelledError("The session was closed"))
        self.backend.close()


def fed_values(prepared: Prepared, values: Sequence[Any], patterns: Sequence[str]) -> ValueRecorder:
    """The record of the values of a run, with those that are fed.

    Args:
        patterns: glob patterns of the names of nodes with full statistics.
    """
    recorder = ValueRecorder(patterns)
    for tensor, value in zip(prepared.feeds, values, strict=True):
        recorder.record_output(tensor.node.name, tensor.index, value)
    return recorder
