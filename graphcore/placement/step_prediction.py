"""The predicted timeline of a step on a set of devices, and its peak memory."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush

import msgspec

from graphcore.graph import Node, Tensor
from graphcore.graph.model.search import reachable
from graphcore.placement.cost_model import CostModel, model_of
from graphcore.placement.device import Device
from graphcore.placement.node_costs import passes_on
from graphcore.placement.placer import last_placer
from graphcore.placement.step_costs import StepCosts
from graphcore.placement.timeline import ARROW, Held, Span, Timeline, make_timeline, peak


class StepPrediction(msgspec.Struct, frozen=True):
    """The predicted timeline of a step.

    Args:
        spans: the nodes and copies, by start.
        makespan: seconds from the start of the first node to the end of the last.
        peak_bytes: the most bytes of tensors alive at once, by the name of the device. Tensors of unknown size do not count.
        simulated: True if all devices are simulated: the times are then those of a virtual clock.
        notes: the assumptions about loops, branches, functions and sizes, in words.
        memory: the tensors that make the peaks.
        is_bound: True if sizes are unknown: times and bytes are then lower bounds, and `notes` says what is unknown.
    """

    spans: tuple[Span, ...]
    makespan: float
    peak_bytes: dict[str, int]
    simulated: bool
    notes: tuple[str, ...] = ()
    memory: tuple[Held, ...] = ()
    is_bound: bool = False

    @property
    def length(self) -> str:
        """The makespan in words: `1.234 ms`, `at least 0.022 ms` if sizes are unknown."""
        return f"{'at least ' if self.is_bound else ''}{self.makespan * 1e3:,.3f} ms"

    @property
    def clock(self) -> str:
        """The clock of the times in words, "" for real devices."""
        return " on the virtual clock of simulated devices" if self.simulated else ""

    def __repr__(self) -> str:
        return f"<gc.StepPrediction {self.length}{self.clock}, {len(self.spans)} spans>"

    def timeline(self) -> Timeline:
        """The spans by lane."""
        devices = {name for span in self.spans for name in span.lane.split(ARROW)} if self.simulated else ()
        return make_timeline("prediction", self.spans, self.peak_bytes, devices, self.notes, self.memory)


def step_devices(devices: Mapping[Node, Device], fetches: Iterable[Node | Tensor] | None) -> dict[Node, Device]:
    """The devices of the nodes that a step needs for its fetches; of all nodes for None."""
    if fetches is None:
        return dict(devices)
    starts = [fetch.node if isinstance(fetch, Tensor) else fetch for fetch in fetches]
    needed = reachable(starts, lambda node: [tensor.node for tensor in node.inputs] + node.control_inputs)
    return {node: device for node, device in devices.items() if node in needed}


def predict_step(
    devices: Mapping[Node, Device],
    model: CostModel | None = None,
    fetches: Iterable[Node | Tensor] | None = None,
    *,
    one_port: bool = False,
    client: Device | None = None,
) -> StepPrediction:
    """Predict a step by list scheduling: a ready node with the longest way to the end goes first.

    A device runs one node at a time, and a link copies one tensor at a time; each tensor goes to another device once. The nodes
    of a loop take the time of all of their iterations at once, and a call the time of the nodes of its function. Without numbers of runs in the
    model, nodes of loops and branches are assumed to run once, which `notes` of the result says. Sizes that the graph does not know are those of
    the feeds of its last runs; what is still unknown is said in `notes`, and makes the result a lower bound. What is fed is copied from the client
    to the devices that need it.

    Args:
        devices: the device of each node.
        model: the times, and the numbers of runs; by default predicted from shapes, and those of the last recorded run of the graph.
        fetches: the nodes and tensors that the step computes, with all that they need; by default all nodes, initializers included.
        one_port: True if a device sends one tensor at a time and receives one at a time, as machines on a network do; by default each pair of
            devices has a link of its own.
        client: the device of fed values; by default the first CPU of the last placement, or else of `devices`.
    """
    step = step_devices(devices, fetches)
    if model is None:
        model = model_of(next(iter(step)).graph) if step else CostModel()
    return ListScheduler(step, StepCosts(step, model), one_port=one_port, client=client).run()


def client_of(devices: Iterable[Device]) -> Device | None:
    """The device of fed values: the first CPU; None without one."""
    return next((device for device in devices if device.device_type == "CPU"), None)


def _usual_client(devices: Mapping[Node, Device]) -> Device | None:
    """The client of the last placement, if the step is on its devices."""
    placer = last_placer.of(next(iter(devices)).graph) if devices else None
    used = {device.name: device for device in devices.values()}
    available = {} if placer is None else {device.name: device for device in placer.options.devices}
    return client_of((available if used.keys() <= available.keys() else used).values())


class ListScheduler:
    """Schedules the nodes of a step, those with the longest way to its end first."""

    def __init__(self, devices: Mapping[Node, Device], costs: StepCosts, *, one_port: bool = False, client: Device | None = None) -> None:
        self.devices = devices
        self.one_port = one_port
        self.costs = costs
        self.model = costs.model
        self.client = _usual_client(devices) if client is None else client
        self.owners: dict[tuple[Node, int, str], tuple[Node, int, str]] = {}
        self.producers = costs.producers
        self.free: dict[str, float] = defaultdict(float)
        self.ends: dict[Node, float] = {}
        self.arrived: dict[tuple[Node, int, str], float] = {}
        self.spans: list[Span] = []
        self.alive: dict[tuple[Node, int, str], list[float]] = {}

    def run(self) -> StepPrediction:
        """Schedule all nodes."""
        self._schedule_within(math.inf)
        return self._prediction()

    def run_within(self, seconds: float) -> StepPrediction | None:
        """Schedule all nodes; None as soon as the step must take more than so many seconds."""
        return self._prediction() if self._longest_work() <= seconds and self._schedule_within(seconds) else None

    def _longest_work(self) -> float:
        """The time of all nodes on the device with the most work."""
        work: dict[str, float] = defaultdict(float)
        for node, device in self.devices.items():
            work[device.name] += 0.0 if self.costs.is_fed(node) else self._seconds(node)
        return max(work.values(), default=0.0)

    def _schedule_within(self, seconds: float) -> bool:
        ranks, consumers = self._ranks(), self.costs.consumers
        nodes = list(self.devices)
        numbers = {node: number for number, node in enumerate(nodes)}
        left = {node: len(self.producers[node]) for node in nodes}
        ready = [(0.0, -ranks[node], numbers[node]) for node in nodes if not left[node]]
        heapify(ready)
        while ready:
            node = nodes[heappop(ready)[2]]
            self._schedule(node)
            if self.ends[node] + ranks[node] - self._seconds(node) > seconds:
                return False
            for consumer in consumers[node]:
                left[consumer] -= 1
                if not left[consumer]:
                    earliest = max(map(self.ends.__getitem__, self.producers[consumer]))
                    heappush(ready, (earliest, -ranks[consumer], numbers[consumer]))
        return True

    def _prediction(self) -> StepPrediction:
        makespan = max([span.end for span in self.spans], default=0.0)
        simulated = bool(self.devices) and all(device.simulated for device in self.devices.values())
        spans = tuple(sorted(self.spans, key=lambda span: span.start))
        memory = tuple(
            [Held(device, node.name, start, end, int(size)) for (node, _, device), (start, end, size) in self.alive.items() if size]
        )
        return StepPrediction(spans, makespan, self._peaks(), simulated, tuple(self.costs.notes()), memory, is_bound=self.costs.is_bound)

    def _ranks(self) -> dict[Node, float]:
        """The time from the start of each node to the end of the step, without copies."""
        ranks: dict[Node, float] = {}
        for node in reversed(self.costs.order):
            ranks[node] = self._seconds(node) + max(map(ranks.__getitem__, self.costs.consumers[node]), default=0.0)
        return ranks

    def _schedule(self, node: Node) -> None:
        device = self.devices[node]
        runs = self.model.runs(node)
        if not runs:  # on a branch that is not taken: it neither computes nor needs copies
            self.ends[node] = max([self.ends[producer] for producer in self.producers[node] if producer in self.ends], default=0.0)
            return
        times = [self._arrival(tensor, device) for tensor in node.inputs if tensor.node in self.ends]
        times += [self.ends[control] for control in node.control_inputs if control in self.ends]
        if self.costs.is_fed(node):  # it is there when the step begins
            there, size = self.place_of(node).name, self.costs.bytes_of(node.outputs[0])
            self.ends[node] = 0.0
            self.spans.append(Span(there, node.name, 0.0, 0.0, size))
            self.alive[node, 0, there] = [0.0, 0.0, size]
            return
        start = max([self.free[device.name], *times])
        end = start + self._seconds(node)
        self.free[device.name] = self.ends[node] = end
        sizes = [self.costs.bytes_of(tensor) for tensor in node.outputs]
        self.spans.append(Span(device.name, node.name, start, end, sum(sizes), times=runs))
        for index, size in enumerate(sizes):
            self.alive[node, index, device.name] = [start, end, size]
        self._share(node, device)
        for tensor in node.inputs:
            self._keep((tensor.node, tensor.index, device.name), end)

    def _share(self, node: Node, device: Device) -> None:
        """Let the output of a node that only passes its input on hold no memory of its own."""
        if not node.inputs or not passes_on(node):
            return
        key, source = (node, 0, device.name), (node.inputs[0].node, node.inputs[0].index, device.name)
        if key in self.alive and source in self.alive:
            self.owners[key] = self.owners.get(source, source)
            self.alive[key][2] = 0

    def _keep(self, key: tuple[Node, int, str], end: float) -> None:
        """Keep the memory of a tensor until a time."""
        lifetime = self.alive.get(self.owners.get(key, key))
        if lifetime is not None:
            lifetime[1] = max(lifetime[1], end)

    def _seconds(self, node: Node) -> float:
        return self.costs.seconds(node, self.devices[node])

    def place_of(self, node: Node) -> Device:
        """The device that the value of a node is on: the client, if it is fed."""
        return self.client if self.client is not None and self.costs.is_fed(node) else self.devices[node]

    def copy_time(self, tensor: Tensor, device: Device) -> float:
        """The seconds that the copies of a tensor to a device take."""
        return self.model.runs(tensor.node) * self.model.copy_seconds(self.costs.bytes_of(tensor), self.place_of(tensor.node), device)

    def _arrival(self, tensor: Tensor, device: Device) -> float:
        """The time at which a tensor is on a device; it is copied there on first use."""
        there = self.place_of(tensor.node)
        if there.name == device.name or not self.model.runs(tensor.node):
            return self.ends[tensor.node]
        key = (tensor.node, tensor.index, device.name)
        if key not in self.arrived:
            size, lane = self.costs.bytes_of(tensor), f"{there.name} -> {device.name}"
            used = (f"{there.name} ->", f"-> {device.name}") if self.one_port else (lane,)
            start = max([self.ends[tensor.node], *[self.free[lane] for lane in used]])
            end = start + self.copy_time(tensor, device)
            self.free.update(dict.fromkeys(used, end))
            self.arrived[key] = end
            self.spans.append(Span(lane, tensor.name, start, end, size, times=self.model.runs(tensor.node)))
            self.alive[key] = [start, end, size]
            self._keep((tensor.node, tensor.index, there.name), end)
        return self.arrived[key]

    def _peaks(self) -> dict[str, int]:
        intervals_of: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
        for (_, _, device), (start, end, size) in self.alive.items():
            intervals_of[device].append((start, end, int(size)))
        return {device: peak(intervals) for device, intervals in intervals_of.items()}
