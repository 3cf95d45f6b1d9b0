"""Proposals of a better placement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from graphcore.graph import Graph, Node, Tensor
from graphcore.placement.colocation_graph import ColocationGraph
from graphcore.placement.constraints import PlacementOptions
from graphcore.placement.cost_model import CostModel
from graphcore.placement.device import Device, DeviceSet
from graphcore.placement.placement import choose_devices, without_placement
from graphcore.placement.step_prediction import StepPrediction, predict_step, step_devices

_MOST_GROUPS: Final = 40
"""The groups of nodes, heaviest first, for which other devices are tried."""
_LEAST_GAIN: Final = 0.01
"""The part of the step that a move must save."""


class Move(msgspec.Struct, frozen=True):
    """A group of nodes that a proposal moves.

    Args:
        nodes: the names of the nodes, which must be on one device.
        source, destination: the names of the devices.
        seconds: the time that the step becomes shorter by; 0 if the move makes it fit into memory.
        reason: the effect of the move in words.
    """

    nodes: tuple[str, ...]
    source: str
    destination: str
    seconds: float
    reason: str

    def __str__(self) -> str:
        more = f" and {len(self.nodes) - 1} colocated nodes" if len(self.nodes) > 1 else ""
        return f"{self.nodes[0]}{more}: {self.source} -> {self.destination}: {self.reason}"


class Proposal(msgspec.Struct, frozen=True):
    """A placement that is predicted to be faster.

    Args:
        devices: the proposed device of each node, by name.
        before, after: the predictions for the placement by the placer, and for this one.
        moves: the changes, in the order in which they were found.
    """

    devices: dict[str, str]
    before: StepPrediction
    after: StepPrediction
    moves: tuple[Move, ...]

    def __str__(self) -> str:
        clock = " on the virtual clock" if self.before.simulated else ""
        head = f"predicted step{clock}: {self.before.makespan * 1e3:,.3f} ms before, {self.after.makespan * 1e3:,.3f} ms after"
        return "\n".join([head, *map(str, self.moves)])


def propose_placement(
    graph: Graph,
    devices: DeviceSet,
    fetches: Iterable[Node | Tensor] | None = None,
    *,
    allow_soft_placement: bool = False,
    measured: Mapping[str, float] | None = None,
) -> Proposal:
    """Propose devices that shorten the predicted step without breaking a constraint.

    The memory limits of devices hold. Groups of colocated nodes are moved one at a time, heaviest first, for as long as each move makes the
    step at least 1 % shorter. Devices that a node has requested or that the user has assigned are kept. The graph is unchanged.

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
    return _Search(colocation, step_devices(placed, fetches), CostModel(measured)).run()


class _Search:
    def __init__(self, colocation: ColocationGraph, devices: Mapping[Node, Device], model: CostModel) -> None:
        self.colocation = colocation
        self.devices = dict(devices)
        self.model = model
        self.limits = {device.name: device.memory_limit_bytes for device in colocation.options.devices if device.memory_limit_bytes}

    def run(self) -> Proposal:
        before = best = predict_step(self.devices, self.model)
        moves: list[Move] = []
        improved = True
        while improved:
            improved = False
            for group in self._groups():
                found = self._better(group, best)
                if found is None:
                    continue
                device, prediction = found
                moves.append(self._move(group, device, best, prediction))
                self.devices.update(dict.fromkeys(group, device))
                best, improved = prediction, True
        names = {node.name: device.name for node, device in self.devices.items()}
        return Proposal(names, before, best, tuple(moves))

    def _groups(self) -> list[list[Node]]:
        """The groups of colocated nodes, heaviest first."""
        groups: dict[int, list[Node]] = {}
        for node in self.devices:
            groups.setdefault(self.colocation.root_of(node), []).append(node)
        return sorted(groups.values(), key=lambda group: -sum(map(self.model.flops, group)))[:_MOST_GROUPS]

    def _better(self, group: list[Node], best: StepPrediction) -> tuple[Device, StepPrediction] | None:
        """The best other device of a group with its prediction; None if no move helps."""
        found = None
        current = self.devices[group[0]]
        for device in self.colocation.devices_for(group[0]):
            if device.name == current.name:
                continue
            prediction = predict_step({**self.devices, **dict.fromkeys(group, device)}, self.model)
            if self._is_better(prediction, best):
                found, best = (device, prediction), prediction
        return found

    def _is_better(self, prediction: StepPrediction, best: StepPrediction) -> bool:
        """Less memory beyond the limits, or as much and less time."""
        excess, before = self._excess(prediction), self._excess(best)
        return excess < before or (excess == before and prediction.makespan < best.makespan * (1 - _LEAST_GAIN))

    def _excess(self, prediction: StepPrediction) -> int:
        return sum(max(0, prediction.peak_bytes.get(name, 0) - limit) for name, limit in self.limits.items())

    def _move(self, group: list[Node], device: Device, before: StepPrediction, after: StepPrediction) -> Move:
        gained = before.makespan - after.makespan
        freed = self._excess(before) - self._excess(after)
        reason = f"{freed:,} bytes less beyond the memory limits" if freed else f"{gained * 1e6:,.1f} us faster"
        names = tuple([node.name for node in group])
        return Move(names, self.devices[group[0]].name, device.name, 0.0 if freed else gained, reason)
