"""Proposals of a better placement."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from graphcore.graph import Graph, Node, Tensor
from graphcore.graph.model.search import reachable
from graphcore.placement.colocation_graph import ColocationGraph
from graphcore.placement.constraints import PlacementOptions
from graphcore.placement.cost_model import CostModel, model_of
from graphcore.placement.device import Device, DeviceSet
from graphcore.placement.earliest_finish import earliest_finish
from graphcore.placement.placement import choose_devices
from graphcore.placement.placer import without_placement
from graphcore.placement.requests import DeviceLine, request_devices
from graphcore.placement.step_costs import StepCosts
from graphcore.placement.step_prediction import ListScheduler, StepPrediction, client_of, step_devices
from graphcore.support.watched import long_work

_MOST_GROUPS: Final = 40
"""The groups of nodes, heaviest first, for which other devices are tried."""
_MOST_SCHEDULED: Final = 500_000
"""The nodes to schedule in one pass over the groups; of a large graph fewer groups are tried."""
_LEAST_GAIN: Final = 0.01
"""The part of the step that a move must save."""


class Move(msgspec.Struct, frozen=True):
    """Connected nodes that a proposal moves.

    Args:
        nodes: their names.
        source, destination: the names of the devices.
        seconds: the time that the step would be longer by without the move; 0 if the move makes it fit into memory.
        reason: the effect of the move in words.
    """

    nodes: tuple[str, ...]
    source: str
    destination: str
    seconds: float
    reason: str

    def __str__(self) -> str:
        more = f" and {len(self.nodes) - 1} more" if len(self.nodes) > 1 else ""
        return f"{self.nodes[0]}{more}: {self.source} -> {self.destination}: {self.reason}"


class Proposal(msgspec.Struct, frozen=True):
    """A placement that is predicted to be faster.

    Args:
        devices: the proposed device of each node, by name.
        before, after: the predictions for the placement by the placer, and for this one.
        moves: the changes.
    """

    devices: dict[str, str]
    before: StepPrediction
    after: StepPrediction
    moves: tuple[Move, ...]

    def apply(self, graph: Graph) -> tuple[DeviceLine, ...]:
        """Request the devices of all moves; the lines that do so in the cells are returned.

        Raises:
            NotFoundError: a node of the moves is no longer in the graph; nothing has changed then.
            FailedPreconditionError: the graph has been finalized.
        """
        return request_devices(graph, {name: move.destination for move in self.moves for name in move.nodes})

    def __str__(self) -> str:
        head = f"predicted step{self.before.clock}: {self.before.length} before, {self.after.length} after"
        return "\n".join([head, *map(str, self.moves), *[f"note: {note}" for note in self.after.notes]])


def propose_placement(
    graph: Graph,
    devices: DeviceSet,
    fetches: Iterable[Node | Tensor] | None = None,
    *,
    allow_soft_placement: bool = False,
    measured: Mapping[str, float] | None = None,
) -> Proposal:
    """Propose devices that shorten the predicted step without breaking a constraint.

    The memory limits of devices hold. The search starts from the placement by the placer or from that by the heuristic of the earliest finish,
    moves groups of colocated nodes one at a time, heaviest first, and takes back what saves less than 1 % of the step. Devices that a node
    has requested or that the user has assigned are kept. The graph is unchanged. In a notebook a long search shows its progress below the cell.

    Args:
        graph: the graph.
        devices: the devices to choose from.
        fetches: the fetches of the step, as for `predict_step`.
        allow_soft_placement: as for `Placer`.
        measured: the seconds of nodes by name, as for `CostModel`.

    Raises:
        FailedPreconditionError: there are no devices.
        InvalidArgumentError: the graph cannot be placed.
    """
    graph.settle()
    with without_placement(graph):
        colocation = ColocationGraph(graph.nodes, PlacementOptions(devices, graph.library, allow_soft_placement))
        colocation.initialize()
        placed = choose_devices(graph, colocation).devices
    return _Search(colocation, step_devices(placed, fetches), model_of(graph, measured)).run()


class _Search:
    def __init__(self, colocation: ColocationGraph, devices: Mapping[Node, Device], model: CostModel) -> None:
        self.colocation = colocation
        self.placed = dict(devices)
        self.devices = self.placed
        self.costs = StepCosts(devices, model)
        self.client = client_of(colocation.options.devices)
        self.groups: dict[int, list[Node]] = defaultdict(list)
        for node in devices:
            self.groups[colocation.root_of(node)].append(node)
        self.done = self.steps = 0
        self.limits = {device.name: device.memory_limit_bytes for device in colocation.options.devices if device.memory_limit_bytes}

    def run(self) -> Proposal:
        self.steps = 4
        before = best = self._predict(self.placed)
        gradients = self._gradient_pairs()
        for together in ([], gradients, gradients + self._chain_pairs(gradients)):
            self._count()
            other = earliest_finish(self.colocation, self.placed, self.costs, together, self.client)
            if self._is_better(prediction := self._predict(other), best):
                self.devices, best = other, prediction
        best = self._improve(best)
        kept = []
        moved = self._moved()
        self.steps += len(moved)
        for nodes in moved:
            self._count()
            without = self.devices | {node: self.placed[node] for node in nodes}
            prediction = self._predict(without)
            if self._is_better(best, prediction):
                kept.append((nodes, prediction))
            else:
                self.devices, best = without, prediction
        self._count()
        moves = [self._move(nodes, prediction, best) for nodes, prediction in kept]
        return Proposal({node.name: device.name for node, device in self.devices.items()}, before, best, tuple(moves))

    def _count(self) -> None:
        """Publish the progress: the placements that were tried of those that are known to be next."""
        self.done += 1
        long_work.publish("search for a placement", self.done, self.steps, "")

    def _gradient_pairs(self) -> list[tuple[Node, Node]]:
        """The nodes of gradients, each with the node that it differentiates."""
        names = {node.name: node for node in self.placed}
        records = next(iter(self.placed)).graph.gradient_records.items() if self.placed else ()
        return [(names[name], names[record.forward]) for name, record in records if name in names and record.forward in names]

    def _chain_pairs(self, gradients: list[tuple[Node, Node]]) -> list[tuple[Node, Node]]:
        """The edges of chains: the only way from one node to the next, gradients aside."""
        backward = {node for node, _ in gradients}
        forward = [node for node in self.placed if node not in backward]
        producers = {node: {tensor.node for tensor in node.inputs if self._computes(tensor.node)} for node in forward}
        consumers = Counter(producer for node_producers in producers.values() for producer in node_producers)
        only = [(node, next(iter(node_producers))) for node, node_producers in producers.items() if len(node_producers) == 1]
        return [(producer, node) for node, producer in only if consumers[producer] == 1]

    def _computes(self, node: Node) -> bool:
        """False for sources and nodes colocated with one, such as the reads of a variable."""
        return all(other.inputs for other in self.groups.get(self.colocation.root_of(node), ()))

    def _predict(self, devices: Mapping[Node, Device]) -> StepPrediction:
        return ListScheduler(devices, self.costs, client=self.client).run()

    def _predict_better(self, devices: Mapping[Node, Device], best: StepPrediction) -> StepPrediction | None:
        """The prediction; None as soon as it cannot be better."""
        most = math.inf if self._excess(best) else best.makespan * (1 - _LEAST_GAIN)
        return ListScheduler(devices, self.costs, client=self.client).run_within(most)

    def _improve(self, best: StepPrediction) -> StepPrediction:
        """Move one group after the other for as long as that helps."""
        groups = self._heaviest_groups()
        improved = True
        while improved:
            improved = False
            self.steps += len(groups)
            for group in groups:
                self._count()
                better = self._better(group, best)
                if better is not None:
                    device, best = better
                    self.devices = self.devices | dict.fromkeys(group, device)
                    improved = True
        return best

    def _moved(self) -> list[list[Node]]:
        """The nodes that moved between the same devices and are connected, those with the most work first."""
        links = {node: set[Node]() for node, device in self.devices.items() if device.name != self.placed[node].name}
        for node, linked in links.items():
            near = [tensor.node for tensor in node.inputs] + self.groups[self.colocation.root_of(node)]
            for other in near:
                if other in links and self._way(other) == self._way(node):
                    linked.add(other)
                    links[other].add(node)
        moved: list[list[Node]] = []
        left = dict.fromkeys(links)
        while left:
            start = next(iter(left))
            together = reachable([start], links.__getitem__)
            moved.append([node for node in left if node in together])
            left = {node: None for node in left if node not in together}
        return sorted(moved, key=lambda nodes: -sum(map(self.costs.flops, nodes)))

    def _way(self, node: Node) -> tuple[str, str]:
        return self.placed[node].name, self.devices[node].name

    def _heaviest_groups(self) -> list[list[Node]]:
        work = max(1, len(self.placed) * len(self.colocation.options.devices))
        count = min(_MOST_GROUPS, _MOST_SCHEDULED // work)
        return sorted(self.groups.values(), key=lambda group: -sum(map(self.costs.flops, group)))[:count]

    def _better(self, group: list[Node], best: StepPrediction) -> tuple[Device, StepPrediction] | None:
        """The best other device of a group with its prediction; None if no move helps."""
        better = None
        current = self.devices[group[0]]
        for device in self.colocation.devices_for(group[0]):
            if device.name == current.name:
                continue
            prediction = self._predict_better(self.devices | dict.fromkeys(group, device), best)
            if prediction is not None and self._is_better(prediction, best):
                better, best = (device, prediction), prediction
        return better

    def _is_better(self, prediction: StepPrediction, best: StepPrediction) -> bool:
        """Less memory beyond the limits, or as much and less time."""
        excess, before = self._excess(prediction), self._excess(best)
        return excess < before or (excess == before and prediction.makespan < best.makespan * (1 - _LEAST_GAIN))

    def _excess(self, prediction: StepPrediction) -> int:
        return sum(max(0, prediction.peak_bytes.get(name, 0) - limit) for name, limit in self.limits.items())

    def _move(self, nodes: list[Node], without: StepPrediction, best: StepPrediction) -> Move:
        gained = without.makespan - best.makespan
        freed = self._excess(without) - self._excess(best)
        reason = f"{freed:,} bytes less beyond the memory limits" if freed else f"the step is {gained * 1e6:,.1f} us shorter"
        return Move(tuple([node.name for node in nodes]), *self._way(nodes[0]), 0.0 if freed else gained, reason)
