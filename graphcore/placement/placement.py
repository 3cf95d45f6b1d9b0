"""The choice of a device for each node, and its result."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Literal, NamedTuple

from graphcore.errors import GraphError, InvalidArgumentError, NotFoundError
from graphcore.graph import Graph, Node, Tensor
from graphcore.placement.colocation_graph import ColocationGraph
from graphcore.placement.device import Device
from graphcore.placement.explanation import PlacementExplanation, explain

Rule = Literal["assigned before", "best device of its group", "goes with its group", "follows its consumers", "follows its input"]


class NodesTogether(NamedTuple):
    """A colocation group of several nodes, by id, and the constraints that join them in words."""

    nodes: tuple[Node, ...]
    reasons: tuple[str, ...]


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
        placed = self.graph.find(node) if isinstance(node, str) else node
        return self.devices[placed]  # type: ignore[index]  # an unknown name is a KeyError

    def explain(self, node: Node | Tensor | str) -> PlacementExplanation:
        """Explain the device of a node, given itself, by a tensor of it, or by name.

        Raises:
            NotFoundError: the placement has no such node.
        """
        placed = self.graph.find(node) if isinstance(node, str) else node.node if isinstance(node, Tensor) else node
        if placed not in self.devices:
            raise NotFoundError(f"Required a node of the placed graph, got {node!r}")
        return explain(placed, self.colocation, self.devices, self.rules)

    @cached_property
    def groups(self) -> tuple[NodesTogether, ...]:
        """The colocation groups of several nodes, by their first nodes."""
        nodes: dict[int, dict[Node, None]] = {}
        reasons: dict[int, dict[str, None]] = {}
        for link in self.colocation.links:
            for node in (link.first, link.second):
                root = self.colocation.root_of(node)
                nodes.setdefault(root, {})[node] = None
                reasons.setdefault(root, {})[link.detail] = None
        # A call whose resource is elsewhere is in links of that group, but not in the group.
        groups = [
            NodesTogether(tuple(sorted(members, key=_by_id)), tuple(reasons[root])) for root, members in nodes.items() if len(members) > 1
        ]
        return tuple(sorted(groups, key=lambda group: group.nodes[0].id))

    def chosen(self) -> list[Node]:
        """The nodes that still have the device chosen here; not those that were assigned to theirs before."""
        rules = self.rules
        return [node for node, device in self.devices.items() if rules[node] != "assigned before" and node.assigned_device == device.name]

    def __repr__(self) -> str:
        used = len({device.name for device in self.devices.values()})
        return f"<gc.Placement of {len(self.devices)} nodes on {used} of {len(self.colocation.options.devices)} devices>"


def _by_id(node: Node) -> int:
    return node.id


def choose_devices(graph: Graph, colocation: ColocationGraph) -> Placement:
    """Choose a device for each node of an initialised colocation graph.

    Raises:
        InvalidArgumentError: no device is left for a node.
    """
    chooser = _Chooser(colocation)
    generators: list[Node] = []
    for node in colocation.nodes:
        if node.assigned_device:
            chooser.keep(node)
        elif not node.input_types and is_generator(node):
            generators.append(node)
        else:
            chooser.choose(node)
    if generators:
        consumers = consumers_of(colocation.nodes, generators)
        for node in generators:
            chooser.choose_for_generator(node, consumers[node])
    return Placement(graph, colocation, chooser.devices, chooser.rules)


class _Chooser:
    """Chooses the devices of nodes one by one; the first choice in a group holds for all of it.

    Attributes:
        devices: the chosen devices.
        rules: the rules that chose them.
    """

    def __init__(self, colocation: ColocationGraph) -> None:
        self.colocation = colocation
        self.devices: dict[Node, Device] = {}
        self.rules: dict[Node, Rule] = {}
        self._of_group: dict[int, Device] = {}
        self._grouped = bool(colocation.links)
        self._limited = {colocation.root(entry) for entry, _ in colocation.limits}

    def keep(self, node: Node) -> None:
        """Keep an assigned device.

        Raises:
            InvalidArgumentError: the body of a call excludes it.
        """
        if self._limited and self.colocation.root_of(node) in self._limited:
            self.colocation.devices_for(node)
        self.devices[node] = self.colocation.options.devices.require(node.assigned_device)
        self.rules[node] = "assigned before"

    def choose(self, node: Node) -> None:
        """Choose the best device of a node; an op that needs only a shape goes with its input."""
        possible = self._possible(node)
        if len(node.inputs) == 1 and node.registration.traits.numbers_from_shapes is not None:
            source = self.devices.get(node.inputs[0].node)
            if source is not None and source in possible:
                self._set(node, source, "follows its input")
                return
        self._set(node, possible[0], "best device of its group")

    def choose_for_generator(self, node: Node, consumers: Sequence[Node]) -> None:
        """Choose the device of all consumers, if the node can run there; otherwise the best one."""
        possible = self._possible(node)
        there = {self.devices.get(consumer) for consumer in consumers}
        device = there.pop() if len(there) == 1 else None
        if device is not None and device in possible:
            self._set(node, device, "follows its consumers")
        else:
            self._set(node, possible[0], "best device of its group")

    def _set(self, node: Node, device: Device, rule: Rule) -> None:
        self.devices[node] = device
        self.rules[node] = rule
        if self._grouped:
            root = self.colocation.root_of(node)
            if self._of_group.setdefault(root, device) is not self.colocation.devices_for(node)[0] and rule == "best device of its group":
                self.rules[node] = "goes with its group"

    def _possible(self, node: Node) -> tuple[Device, ...]:
        """The devices that a node can be on, best first."""
        try:
            possible = self.colocation.devices_for(node)
        except GraphError as error:
            raise InvalidArgumentError.at(node, f"Cannot assign a device for operation {node.name}: {error.message}").advise(
                error.suggestion, required=error.required, came=error.came
            ) from error
        if self._grouped:
            chosen = self._of_group.get(self.colocation.root_of(node))
            return possible if chosen is None else (chosen,)
        return possible


def is_generator(node: Node) -> bool:
    """True iff a node has no inputs and one output that is no reference."""
    return not node.input_types and len(node.output_types) == 1 and not node.output_types[0].is_ref


def consumers_of(nodes: Sequence[Node], producers: Sequence[Node]) -> dict[Node, list[Node]]:
    """The nodes among `nodes` that have inputs or control inputs from each of `producers`."""
    consumers: dict[Node, list[Node]] = {producer: [] for producer in producers}
    for node in nodes:
        for tensor in node.inputs:
            if tensor.node in consumers:
                consumers[tensor.node].append(node)
        for control in node.control_inputs:
            if control in consumers:
                consumers[control].append(node)
    return consumers
