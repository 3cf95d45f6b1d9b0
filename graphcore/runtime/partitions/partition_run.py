"""The run of one partition, which exchanges values with the others of its step."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

import msgspec

from graphcore.errors import GraphError
from graphcore.graph.model.node import Node
from graphcore.plumbing import RECV_ON_DEVICE
from graphcore.runtime.core.kernel_checks import dead_fetch
from graphcore.runtime.core.program import Step
from graphcore.runtime.core.rendezvous import Rendezvous, RendezvousArgs
from graphcore.runtime.dataflow.dataflow import Arrival, DataflowRun
from graphcore.runtime.dataflow.frames import Iteration
from graphcore.runtime.dataflow.table import Item, Table

if TYPE_CHECKING:
    from graphcore.runtime.gpu.gpu import Gpu

_ANYWHERE: Final = nullcontext()


class Part(msgspec.Struct, frozen=True):
    """A partition prepared for running.

    Args:
        device: the device that runs it.
        table: its nodes.
        feeds, fetches: the positions of its feeds and fetches among those of the whole step.
        transfers: the nodes that exchange values with other partitions.
        gpu: the CUDA device that it is on, None for the host.
    """

    device: str
    table: Table
    feeds: Sequence[int]
    fetches: Sequence[int]
    transfers: frozenset[Node]
    gpu: Gpu | None = None


class Inbox:
    """The ends of waits, with the runs that they belong to; one thread reads it."""

    __slots__ = ("_queue",)

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[PartitionRun, Arrival]] = SimpleQueue()

    def put(self, run: PartitionRun, arrival: Arrival) -> None:
        """Enter the end of a wait of `run`."""
        self._queue.put((run, arrival))

    def serve(self, runs: Sequence[PartitionRun]) -> None:
        """Run some partitions in this thread to the end.

        Raises:
            GraphError: an error of a node or a wait, with its device.
        """
        for run in runs:
            run.begin()
        while any(run.waiting for run in runs):
            run, arrival = self._queue.get()
            run.take(arrival)

    def resume(self, runs: Sequence[PartitionRun]) -> None:
        """Run some partitions in this thread for as long as they can; transfers may go on waiting.

        Raises:
            GraphError: an error of a node or a wait, with its device.
        """
        for run in runs:
            run.advance()
        while not self._queue.empty() or any(run.waits_outside() for run in runs):
            run, arrival = self._queue.get()
            run.take(arrival)


class PartitionRun(DataflowRun):
    """A run of one partition.

    Args:
        part: the partition.
        step: the run as a whole.
        values: the feeds of the whole step.
        channel: the rendezvous of the step.
        inbox: takes the ends of waits.
    """

    __slots__ = ("channel", "inbox", "part", "values")

    def __init__(self, part: Part, step: Step, values: Sequence[Any], channel: Rendezvous, inbox: Inbox) -> None:
        super().__init__(part.table, step, values, part.device)
        self.part = part
        self.values = [values[number] for number in part.feeds]
        self.channel = channel
        self.inbox = inbox

    def begin(self) -> None:
        """Feed the values, and run all nodes that are ready.

        Raises:
            GraphError: an error of a node, with its device.
        """
        self.prepare()
        for number, value in enumerate(self.values):
            self.feed(number, value)
        self.advance()

    def feed(self, number: int, value: Any) -> None:
        """Feed a value, on a GPU by way of pinned memory."""
        gpu = self.part.gpu
        super().feed(number, value if gpu is None else gpu.fed(value))

    def prepare(self) -> None:
        """Make the nodes ready that need no feed, and register the stop of the run on cancellation."""
        if self.cancellation is not None:
            self.watch()
        self.start()

    def waits_outside(self) -> bool:
        """True iff a node waits for something else than another partition."""
        return any(item.node not in self.part.transfers for item, _ in self.waiting)

    def take(self, arrival: Arrival) -> None:
        """Take the end of a wait, and run all nodes that are ready.

        Raises:
            GraphError: an error of a node or the wait, with its device.
        """
        try:
            self.arrive(arrival)
        except GraphError as error:
            raise self._located(error) from error.__cause__
        self.advance()

    def results_into(self, results: list[Any]) -> None:
        """Enter the fetched values into those of the whole step, once all kernels have ended.

        Raises:
            InvalidArgumentError: one is dead.
        """
        for number, feed in self.table.fed_fetches:
            self.results[number] = self.values[feed]
        for number, place in enumerate(self.part.fetches):
            try:
                results[place] = self.result(number)
            except GraphError as error:
                raise self._located(dead_fetch(place, self.table.fetches[number])) from error
        if self.part.gpu is not None:
            self.part.gpu.finish()

    def result(self, number: int) -> Any:
        """A fetched value on the host, once available.

        Raises:
            InvalidArgumentError: it is dead.
        """
        value, gpu = super().result(number), self.part.gpu
        return value if gpu is None else gpu.to_host(value)

    def send(self, item: Item, at: Iteration, value: Any, *, is_dead: bool = False) -> None:
        """Send the value of `item`, or a dead value. It leaves the device by way of the host, unless another GPU takes it."""
        gpu = self.part.gpu
        if gpu is not None and not (item.node in self.part.transfers and gpu.reaches(item.node.attr["recv_device"])):
            value = gpu.to_host(value)
        super().send(item, at, value, is_dead=is_dead)

    def received(self, item: Item, at: Iteration, value: Any) -> tuple[Any, ...]:
        """The checked value of a receive, in the memory that the item is for."""
        gpu = self.part.gpu
        if gpu is None:
            return super().received(item, at, value)
        if item.node.op != RECV_ON_DEVICE:
            return super().received(item, at, gpu.to_host(value))
        return (gpu.to_device(value if gpu.holds(value) else super().received(item, at, value)[0]),)

    def announce(self, arrival: Arrival) -> None:
        """Put the end of a wait into the inbox."""
        self.inbox.put(self, arrival)

    def channel_of(self, item: Item) -> Any:
        """The rendezvous of the step for transfers between partitions, else that of the session."""
        return self.channel if item.node in self.part.transfers else super().channel_of(item)

    def receive_args(self, item: Item) -> RendezvousArgs | None:
        """The arguments of the receive of `item`; transfers end with the step's rendezvous."""
        return None if item.node in self.part.transfers else super().receive_args(item)

    def close(self) -> None:
        """End the recording, and waits."""
        if self.tracer is not None:
            self.tracer.close()
        if self.own is not None:
            self.own.start_cancel()

    def advance(self) -> None:
        """Run all nodes that are ready.

        Raises:
            GraphError: an error of a node, with its device.
        """
        try:
            with _ANYWHERE if self.part.gpu is None else self.part.gpu.running():
                self.run_ready()
        except GraphError as error:
            raise self._located(error) from error.__cause__

    def _located(self, error: GraphError) -> GraphError:
        error.device = error.device or self.part.device
        return error
