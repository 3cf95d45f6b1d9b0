"""Programs of several partitions, one executor for each device."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final

from graphcore.errors import CancelledError, GraphError, InternalError
from graphcore.graph.model.node import Node
from graphcore.runtime.core.cancellation import CancellationManager
from graphcore.runtime.core.program import Step
from graphcore.runtime.core.rendezvous import Rendezvous
from graphcore.runtime.core.sizes import OWN_SIZES, PeakMemory, Sizes
from graphcore.runtime.core.timed_run import under_way
from graphcore.runtime.partitions.partition_run import Inbox, Part, PartitionRun
from graphcore.runtime.partitions.stepwise_run import StepwiseRun
from graphcore.support.thread_pool import Pool

_UNWATCHED: Final = Step()
_pool: Final = Pool(1 << 20)  # every partition of a step needs a thread, or others would wait for it forever


class PartitionedProgram:
    """A subgraph prepared for several devices. Thread-safe.

    Args:
        parts: the partitions.
        fetches: the number of fetches.
        concurrent: True to run each partition in a thread of its own; otherwise one thread runs them in turn.

    Attributes:
        nodes: the nodes of all partitions.
    """

    __slots__ = ("_fetches", "concurrent", "nodes", "parts")

    source: Final = ""

    def __init__(self, parts: Sequence[Part], fetches: int, *, concurrent: bool) -> None:
        self.parts = parts
        self.nodes: list[Node] = [node for part in parts for node in part.table.nodes]
        self.concurrent = concurrent
        self._fetches = fetches

    def __repr__(self) -> str:
        return f"<PartitionedProgram of {len(self.nodes)} nodes on {len(self.parts)} devices>"

    def run(self, *values: Any) -> list[Any]:
        """Fed arrays in, fetched arrays out.

        Raises:
            GraphError: an error of a kernel, with its node and device; the other partitions were stopped.
            InvalidArgumentError: a fetched value is dead.
        """
        return self.run_step(_UNWATCHED, values)

    def run_step(self, step: Step, values: Sequence[Any]) -> list[Any]:
        """Run with recording; cancellation stops all partitions before their next nodes, and ends waits.

        Raises:
            CancelledError: it was cancelled.
        """
        channel = Rendezvous()
        run = self._run_concurrently if self.concurrent else self._run_in_turn
        results: list[Any] = [None] * self._fetches
        for part_run in run(step, values, channel):
            part_run.results_into(results)
        return results

    def begin(self, step: Step | None = None) -> StepwiseRun:
        """Begin a run that is fed step by step; cancelling `step` stops it before the next node."""
        return StepwiseRun(self.parts, 1 + max([number for part in self.parts for number in part.feeds], default=-1), step or _UNWATCHED)

    def peak_memory(self, sizes: Sizes = OWN_SIZES) -> PeakMemory:  # noqa: ARG002 - the signature is Program's
        """Unknown, as it depends on the order in which values arrive."""
        return PeakMemory(None, reason="it runs on several devices, and how much is alive at once depends on when values arrive")

    def explain(self, error: BaseException) -> BaseException:
        """Convert `error` to a GraphError; errors of nodes are converted already."""
        is_plain = isinstance(error, Exception) and not isinstance(error, GraphError)
        return InternalError(f"{type(error).__name__}: {error}") if is_plain else error

    def close(self) -> None:
        """Do nothing: the program holds no resources."""

    def _run_in_turn(self, step: Step, values: Sequence[Any], channel: Rendezvous) -> list[PartitionRun]:
        inbox = Inbox()
        runs = [PartitionRun(part, step, values, channel, inbox) for part in self.parts]
        try:
            inbox.serve(runs)
        finally:
            for run in runs:
                run.close()
        return runs

    def _run_concurrently(self, step: Step, values: Sequence[Any], channel: Rendezvous) -> list[PartitionRun]:
        cancellation = CancellationManager(step.cancellation)
        runs = [PartitionRun(part, step.for_thread(cancellation), values, channel, Inbox()) for part in self.parts]
        first = _FirstError(cancellation, channel)
        tasks = [_pool.submit(first.guard, run) for run in runs]
        try:
            for task in tasks:
                task.result()
        except BaseException:
            cancellation.start_cancel()
            raise
        if first.error is not None:
            raise first.error
        return runs


class _FirstError:
    """The first error of several threads, which stops the others.

    Args:
        cancellation: stops the other partitions.
        channel: ends their waits.
    """

    def __init__(self, cancellation: CancellationManager, channel: Rendezvous) -> None:
        self.error: BaseException | None = None
        self._cancellation = cancellation
        self._channel = channel
        self._lock = threading.Lock()

    def guard(self, run: PartitionRun) -> None:
        """Run a partition in this thread; its error is kept, and stops the others."""
        try:
            with under_way(run.step):
                run.inbox.serve([run])
        except BaseException as error:  # noqa: BLE001 - raised again in the thread of the caller
            with self._lock:
                self.error = self.error or error
            self._channel.start_abort(error if isinstance(error, GraphError) else CancelledError(f"The run was stopped: {error!r}"))
            self._cancellation.start_cancel()
        finally:
            run.close()
