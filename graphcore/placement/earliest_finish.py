"""Devices for a step by the heuristic of the earliest finish."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final

from graphcore.graph import Node
from graphcore.graph.model.search import post_order, reachable
from graphcore.placement.colocation_graph import ColocationGraph
from graphcore.placement.device import Device
from graphcore.placement.step_costs import StepCosts
from graphcore.placement.step_prediction import ListScheduler
from graphcore.plumbing import IDENTITY


def earliest_finish(
    colocation: ColocationGraph,
    devices: Mapping[Node, Device],
    costs: StepCosts,
    together: Iterable[tuple[Node, Node]] = (),
    client: Device | None = None,
) -> dict[Node, Device]:
    """Choose devices by list scheduling: each node goes where it ends first, copies included.

    The first node of a colocation group chooses for all of it. Sources, such as variables and constants, and nodes that only read one go with
    their first consumer. (Topcuoglu, Hariri and Wu: Performance-effective and low-complexity task scheduling for heterogeneous computing,
    2002.)

    Args:
        colocation: the constraints, initialised.
        devices: a first device for each node of the step.
        costs: the times and sizes.
        together: pairs of nodes to keep on one device where their groups can be on it.
        client: the device of fed values, as for `predict_step`.
    """
    scheduler = _EarliestFinish(colocation, devices, costs, together, client)
    scheduler.run()
    return scheduler.chosen


class _EarliestFinish(ListScheduler):
    def __init__(
        self,
        colocation: ColocationGraph,
        devices: Mapping[Node, Device],
        costs: StepCosts,
        together: Iterable[tuple[Node, Node]],
        client: Device | None,
    ) -> None:
        self.chosen = dict(devices)
        super().__init__(self.chosen, costs, client=client)
        self.colocation: Final = colocation
        links: dict[Node, list[Node]] = defaultdict(list)
        first: dict[int, Node] = {}
        pairs = [(first.setdefault(colocation.root_of(node), node), node) for node in devices]
        for node, other in chain(pairs, together):
            links[node].append(other)
            links[other].append(node)
        self._clusters: dict[Node, Node] = {}
        self._members: dict[Node, list[Node]] = defaultdict(list)
        for node in devices:
            if node not in self._clusters:
                self._clusters.update(dict.fromkeys(reachable([node], links.__getitem__), node))
            self._members[self._clusters[node]].append(node)
        self._decided: set[Node] = set()
        self._load: dict[str, float] = defaultdict(float)
        self._deferred: set[Node] = set()

    def _schedule(self, node: Node) -> None:
        if not self._is_decided(node):
            if self._can_wait(node):
                self._deferred.add(node)
                self.ends[node] = max([self.ends[producer] for producer in self.producers[node]], default=0.0)
                self.ends[node] += 0.0 if self.costs.is_fed(node) else self._seconds(node)
                return
            self._decide(node, min(self.colocation.devices_for(node), key=lambda device: self._finish(node, device)))
        self._schedule_inputs(node)
        super()._schedule(node)

    def _is_decided(self, node: Node) -> bool:
        return self._clusters[node] in self._decided

    def _can_wait(self, node: Node) -> bool:
        """True iff a node is a source or only reads one."""
        root = self.colocation.root_of(node)
        sources = [tensor.node for tensor in node.inputs]
        reads = node.op == IDENTITY or all(self.colocation.root_of(source) == root for source in sources if source in self.devices)
        return reads and all(producer in self._deferred for producer in self.producers[node])

    def _decide(self, node: Node, device: Device) -> None:
        """Choose a device for all nodes that are kept with a node; those that cannot be there keep theirs."""
        root = self._clusters[node]
        self._decided.add(root)
        self._load[device.name] += self._work(root, device)
        for member in self._members[root]:
            if device in self.colocation.devices_for(member):
                self.chosen[member] = device

    def _schedule_inputs(self, node: Node) -> None:
        """Schedule the deferred producers of a node, on its device if they can be there."""
        wanted = self.chosen[node]
        for producer in post_order([node], self._deferred_producers)[:-1]:
            self._deferred.discard(producer)
            if not self._is_decided(producer):
                possible = self.colocation.devices_for(producer)
                self._decide(producer, wanted if wanted in possible else possible[0])
            super()._schedule(producer)

    def _deferred_producers(self, node: Node) -> list[Node]:
        return [producer for producer in self.producers[node] if producer in self._deferred]

    def _finish(self, node: Node, device: Device) -> float:
        """The time at which all that is kept with a node would end on a device, after all that is on it."""
        start = max(self.free[device.name], self._load[device.name])
        lanes: dict[str, float] = {}
        for tensor in dict.fromkeys(node.inputs):
            if tensor.node not in self.ends:
                continue
            there = self.place_of(tensor.node)
            arrival = self.ends[tensor.node]
            is_there = tensor.node not in self._deferred or self._is_decided(tensor.node) or self.costs.is_fed(tensor.node)
            if there.name != device.name and is_there:
                arrived_at = self.arrived.get((tensor.node, tensor.index, device.name))
                lane = f"{there.name} -> {device.name}"
                begin = max(arrival, lanes.get(lane, self.free[lane]))
                arrival = lanes[lane] = begin + self.copy_time(tensor, device) if arrived_at is None else arrived_at
            start = max(start, arrival)
        return start + self._work(self._clusters[node], device)

    def _work(self, root: Node, device: Device) -> float:
        return sum([self.costs.seconds(member, device) for member in self._members[root]])
