"""The placer: assigns a device to each node of a graph."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Final

from graphcore.errors import FailedPreconditionError, GraphError
from graphcore.graph import Graph, Node, Tensor, get_default_graph
from graphcore.graph.attached import Attached
from graphcore.placement.colocation_graph import ColocationGraph
from graphcore.placement.conflict import conflict_text, minimal_conflict
from graphcore.placement.constraints import PlacementOptions
from graphcore.placement.device import LOCAL, Device, DeviceSet
from graphcore.placement.explanation import PlacementExplanation, explain
from graphcore.placement.placement import Placement, choose_devices
from graphcore.support.critical_section import critical_contextmanager

_log: Final = logging.getLogger("graphcore.placement")


class Placer:
    """Assigns a device to each node, by the nodes' requests, kernels and colocation constraints.

    Args:
        graph: the graph; its nodes get their `assigned_device`.
        device_set: the devices to choose from.
        allow_soft_placement: replace a requested device that does not exist or has no kernel, and drop impossible `_class` constraints.
        default_local_device: a device that goes before all others a node can be on.
        log_device_placement: log the device of each node to the logger `graphcore.placement`.
    """

    def __init__(
        self,
        graph: Graph,
        device_set: DeviceSet,
        allow_soft_placement: bool = False,
        default_local_device: Device | str | None = None,
        log_device_placement: bool = False,
    ) -> None:
        self.graph = graph
        local = device_set.require(default_local_device) if isinstance(default_local_device, str) else default_local_device
        log = _log if log_device_placement else None
        self.options = PlacementOptions(device_set, graph.library, allow_soft_placement, local, log)
        self.placement: Placement | None = None
        self.placed_version = -1

    def run(self) -> Placement:
        """Place all nodes. After an error no node has changed.

        Raises:
            FailedPreconditionError: there are no devices.
            InvalidArgumentError: a constraint cannot be met.
            InternalError: an assigned device is malformed, does not exist or has no kernel.
            UnimplementedError: a function that handles resources calls itself.
        """
        last_placer.set(self.graph, self)
        self.placement = None
        colocation = self._colocation()
        try:
            placement = self._choose(colocation)
        except GraphError as error:
            error.message += conflict_text(minimal_conflict(colocation.nodes, self.options))
            error.args = (error.message,)
            raise
        self.placement, self.placed_version = placement, self.graph.version
        for node, device in placement.devices.items():
            node.assigned_device = device.name
        if self.options.log is not None:
            for node, device in placement.devices.items():
                self.options.log.info("%s: (%s): %s", node.name, node.op, device)
        return placement

    def explain(self, node: Node) -> PlacementExplanation:
        """Explain the device of a node, or why the graph cannot be placed; assigns nothing."""
        if self.placement is not None and node in self.placement.devices and self.placed_version == self.graph.version:
            return self.placement.explain(node)
        with without_placement(self.graph):
            colocation = self._colocation()
            try:
                return self._choose(colocation).explain(node)
            except GraphError as error:
                return explain(node, colocation, {}, {}, error, minimal_conflict(colocation.nodes, self.options))

    def choose(self) -> Placement:
        """Choose devices without assigning them.

        Raises:
            GraphError: as `run`, without the minimal conflicting set.
        """
        with without_placement(self.graph):
            return self._choose(self._colocation())

    def _colocation(self) -> ColocationGraph:
        if not len(self.options.devices):
            raise FailedPreconditionError("No devices are registered")
        self.graph.settle()
        return ColocationGraph(self.graph.nodes, self.options)

    def _choose(self, colocation: ColocationGraph) -> Placement:
        colocation.initialize()
        return choose_devices(self.graph, colocation)


last_placer: Final[Attached[Placer]] = Attached()
"""The placer that ran last on a graph."""


def last_placement(graph: Graph) -> Placement | None:
    """The placement of the placer that ran last, None without one."""
    placer = last_placer.of(graph)
    return None if placer is None else placer.placement


def withdraw_placement(graph: Graph) -> dict[Node, str]:
    """Take back the devices that the last placement chose, not those assigned by the user; return them."""
    placement = last_placement(graph)
    devices = {node: node.assigned_device for node in (placement.chosen() if placement else ())}
    for node in devices:
        node.assigned_device = ""
    return devices


@critical_contextmanager
def without_placement(graph: Graph) -> Iterator[None]:
    """Take back the devices that the last placement chose, for the time of the block."""
    devices = withdraw_placement(graph)
    try:
        yield
    finally:
        for node, device in devices.items():
            node.assigned_device = device


def explain_placement(node: Any, devices: DeviceSet | None = None, *, allow_soft_placement: bool = False) -> PlacementExplanation:
    """Explain the device of a node: the candidates, what removed each, and the rule that chose.

    A graph that cannot be placed is explained too: by the error and a minimal set of nodes that cannot be placed together.

    Args:
        node: the node, a tensor of it, a variable, or the name of one in the default graph.
        devices: the devices to choose from; by default those of the last placement of the graph, or else the CPU of this process.
        allow_soft_placement: replace requested devices that do not exist or have no kernel; counts with `devices` only.

    Raises:
        FailedPreconditionError: there are no devices.
        InvalidArgumentError: it is none of these, or was removed.
        NotFoundError: no such name.

    Example:
        >>> a = gc.constant([1.0, 2.0], name="a")
        >>> print(gc.explain_placement(a))
        a (Const) is on /job:localhost/replica:0/task:0/device:CPU:0
          requested: nothing
          rule: best device of its group: ...
          devices:
            /job:localhost/replica:0/task:0/device:CPU:0: chosen
    """
    target = node_behind(node)
    return placer_for(target.graph, devices, allow_soft_placement).explain(target)


def node_behind(value: Any) -> Node:
    """The node behind a node, a tensor, a variable, or a name in the default graph.

    Raises:
        InvalidArgumentError: it is none of these, or was removed.
        NotFoundError: no such name.
    """
    graph = getattr(value, "graph", None)
    graph = graph if isinstance(graph, Graph) else get_default_graph()
    graph.settle()
    element = graph.as_graph_element(value)
    return element.node if isinstance(element, Tensor) else element


def placer_for(graph: Graph, devices: DeviceSet | None, allow_soft_placement: bool) -> Placer:
    """The placer for some devices, by default those of the last placement or the CPU of this process."""
    last = last_placer.of(graph)
    if devices is None and last is not None:
        return last
    return Placer(graph, DeviceSet([LOCAL]) if devices is None else devices, allow_soft_placement)
