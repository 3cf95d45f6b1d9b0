"""The choice of a device for each node, and its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from graphcore.errors import GraphError, InvalidArgumentError, NotFoundError
from graphcore.graph import Graph, Node, Tensor
from graphcore.placement.colocation_graph import ColocationGraph
from graphcore.placement.device import Device
from graphcore.placement.explanation import PlacementExplanation, explain

Rule = Literal["assigned before", "best device of its group", "follows its consumers", "follows its input"]


class Placement:
    """The devices of the nodes of a graph, and the groups and rules that led there.

    Attributes:
        graph: the graph.
        devices: the device of each node.
        rules: the rule that chose it.
        colocation: the groups of nodes that are on one device.
    """

    def __init__(self, graph: Graph, colocation: ColocationGraph, devices: dict[Node, Device], rules: dict[Node, Rule]) -> None:
        self.graph = graph
        self.colocation = colocation
        self.devices = devices
        self.rules = rules

    def __getitem__(self, node: Node | str) -> Device:
        """The device of a node, given itself or by name."""
        found = self.graph.find(node) if isinstance(node, str) else node
        return self.devices[found]  # type: ignore[index]  # an unknown name is a KeyError

    def explain(self, node: Node | Tensor | str) -> PlacementExplanation:
        """Explain the device of a node, given itself, by a tensor of it, or by name.

        Raises:
            NotFoundError: the placement has no such node.
        """
        found = self.graph.find(node) if isinstance(node, str) else node.node if isinstance(node, Tensor) else node
        if found not in self.devices:
            raise NotFoundError(f"Required a node of the placed graph, got {node!r}")
        return explain(found, self.colocation, self.devices, self.rules)

    def __repr__(self) -> str:
        used = len({device.name for device in self.devices.values()})
        return f"<gc.Placement of {len(self.devices)} nodes on {used} of {len(self.colocation.options.devices)} devices>"


def choose_devices(graph: Graph, colocation: ColocationGraph) -> Placement:
    """Choose a device for each node of an initialised colocation graph.

    Raises:
        InvalidArgumentError: no device is left for a node.
    """
    devices: dict[Node, Device] = {}
    rules: dict[Node, Rule] = {}
    generators: list[Node] = []
    find_device = colocation.options.devices.find_device_by_name
    for node in colocation.nodes:
        if node.assigned_device:
            devices[node] = find_device(node.assigned_device)  # type: ignore[assignment]  # the colocation graph has checked it
            rules[node] = "assigned before"
        elif not node.input_types and is_generator(node):
            generators.append(node)
        else:
            choose_one(node, colocation, devices, rules)
    if generators:
        consumers = consumers_of(colocation.nodes, generators)
        for node in generators:
            _follow(node, consumers.get(node, []), colocation, devices, rules)
    return Placement(graph, colocation, devices, rules)


def choose_one(node: Node, colocation: ColocationGraph, devices: dict[Node, Device], rules: dict[Node, Rule]) -> None:
    """Choose the best device of a node, or that of its input for an op that needs only the shape of that."""
    possible = possible_devices(node, colocation)
    rules[node] = "best device of its group"
    devices[node] = possible[0]
    if len(node.inputs) == 1 and node.registration.traits.numbers_from_shapes is not None:
        source = devices.get(node.inputs[0].node)
        if source in possible:
            devices[node] = source
            rules[node] = "follows its input"


def _follow(
    node: Node, consumers: Sequence[Node], colocation: ColocationGraph, devices: dict[Node, Device], rules: dict[Node, Rule]
) -> None:
    """Choose the device of all consumers for a generator, if it can run there; otherwise the best one."""
    possible = possible_devices(node, colocation)
    there = {devices.get(consumer) for consumer in consumers}
    if len(there) == 1:
        device = there.pop()
        if device in possible:
            devices[node] = device
            rules[node] = "follows its consumers"
            return
    devices[node] = possible[0]
    rules[node] = "best device of its group"


def possible_devices(node: Node, colocation: ColocationGraph) -> tuple[Device, ...]:
    """The devices that a node can be on, best first.

    Raises:
        InvalidArgumentError: there is none, `Cannot assign a device for operation ...`.
    """
    try:
        return colocation.devices_for(node)
    except GraphError as error:
        raise InvalidArgumentError.at(node, f"Cannot assign a device for operation {node.name}: {error.message}") from error


def is_generator(node: Node) -> bool:
    """True iff a node has no inputs and one output that is no reference."""
    return not node.input_types and len(node.output_types) == 1 and not node.output_types[0].is_ref


def consumers_of(nodes: Sequence[Node], producers: Sequence[Node]) -> dict[Node, list[Node]]:
    """The nodes among `nodes` that have inputs or control inputs from each of `producers`."""
    found: dict[Node, list[Node]] = {producer: [] for producer in producers}
    for node in nodes:
        for tensor in node.inputs:
            if tensor.node in found:
                found[tensor.node].append(node)
        for control in node.control_inputs:
            if control in found:
                found[control].append(node)
    return found
