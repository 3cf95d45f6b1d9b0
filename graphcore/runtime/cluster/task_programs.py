"""The partitions of a task, prepared for running."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from graphcore.definitions import FunctionDefLibrary
from graphcore.definitions.wire.files import graph_def_from_bytes
from graphcore.functions import FunctionLibraryDefinition
from graphcore.runtime.cluster.messages import Shipment, checked_to_travel
from graphcore.runtime.core.events import Event
from graphcore.runtime.core.program import Step
from graphcore.runtime.core.rendezvous import Rendezvous
from graphcore.runtime.core.virtual_clock import located
from graphcore.runtime.engines import build_program, check_engine
from graphcore.runtime.partitions.partition_graphs import PartGraph, Partition
from graphcore.runtime.partitions.partition_run import Inbox, PartitionRun
from graphcore.runtime.plan.schedule import MakeKernel


class TaskProgram(Protocol):
    """A partition prepared for running."""

    def run(self, step: Step, values: Mapping[int, Any], channel: Rendezvous) -> dict[int, Any]:
        """Run it, and return the fetched values.

        Raises:
            Exception: a node failed.
        """

    def explain(self, error: BaseException) -> BaseException:
        """The error with its node."""

    def located(self, events: list[Event]) -> list[Event]:
        """The events with their device."""


def build_task_program(shipment: Shipment, library: FunctionLibraryDefinition, make_kernel: MakeKernel) -> TaskProgram:
    """Prepare a partition.

    Args:
        shipment: the partition.
        library: the functions of the task; those of the partition are added, or replace others of the same name.
        make_kernel: makes the kernel of a node.

    Raises:
        GraphError: a node has an error or cannot run.
    """
    graph_def = graph_def_from_bytes(shipment.graph_def)
    _renew(library, graph_def.library)
    partition = Partition(shipment.device, graph_def, shipment.sources, shipment.feeds, shipment.fetches, shipment.targets)
    part = PartGraph(partition, library, shipment.seed)
    return _Alone(part, shipment, make_kernel) if shipment.is_alone else _OneOfMany(part, shipment, make_kernel)


def _renew(library: FunctionLibraryDefinition, others: FunctionDefLibrary) -> None:
    """Replace the functions and gradients of a library by those of another with the same names."""
    gradients = {gradient.function_name: gradient for gradient in others.gradient}
    for function in others.function:
        present = library.find(function.name)
        if present is None:
            library.add_function_def(function)
        elif present != function:
            library.replace_function(function.name, function)
        own, gradient = library.find_gradient(function.name), gradients.get(function.name)
        if own and (gradient is None or gradient.gradient_func != own):
            library.remove_gradient(function.name)
        if gradient is not None:
            library.add_gradient_def(gradient)


class _OneOfMany:
    """A partition that exchanges values with others."""

    def __init__(self, part: PartGraph, shipment: Shipment, make_kernel: MakeKernel) -> None:
        self._part = part.prepared(make_kernel)
        self._num_feeds = shipment.num_feeds
        self._fetches = shipment.fetches

    def run(self, step: Step, values: Mapping[int, Any], channel: Rendezvous) -> dict[int, Any]:
        inbox = Inbox()
        feeds = [values.get(number) for number in range(self._num_feeds)]
        run = PartitionRun(self._part, step, feeds, channel, inbox)
        try:
            inbox.serve([run])
        finally:
            run.close()
        results: list[Any] = [None] * (1 + max(self._fetches, default=-1))
        run.results_into(results)
        return _checked({place: results[place] for place in self._fetches}, self._fetches)

    def explain(self, error: BaseException) -> BaseException:
        return error

    def located(self, events: list[Event]) -> list[Event]:
        return located(events, "")


class _Alone:
    """A partition that does all of a run."""

    def __init__(self, part: PartGraph, shipment: Shipment, make_kernel: MakeKernel) -> None:
        targets = [part.graph.get_operation_by_name(name) for name in shipment.targets]
        engine = check_engine(shipment.engine)
        self._program = build_program(part.fetches, targets, part.feeds, make_kernel, engine, threads=shipment.threads)
        self._feeds = list(shipment.feeds)
        self._fetches = shipment.fetches
        self._device = shipment.device

    def run(self, step: Step, values: Mapping[int, Any], channel: Rendezvous) -> dict[int, Any]:  # noqa: ARG002 - nothing is exchanged
        results = self._program.run_step(step, [values[number] for number in self._feeds])
        return _checked(dict(zip(self._fetches, results, strict=True)), self._fetches)

    def explain(self, error: BaseException) -> BaseException:
        return self._program.explain(error)

    def located(self, events: list[Event]) -> list[Event]:
        return located(events, self._device)


def _checked(results: dict[int, Any], names: Mapping[int, str]) -> dict[int, Any]:
    """Check that fetched values can leave the task."""
    return {place: checked_to_travel(value, f"The fetched value of '{names[place]}'") for place, value in results.items()}
