"""The virtual clock of simulated devices: the times of a recorded run by the cost model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from graphcore.graph.model.node import Node, Tensor
from graphcore.placement.cost_model import CostModel
from graphcore.placement.device import Device
from graphcore.plumbing import MERGE, SEND
from graphcore.runtime.core.events import Event
from graphcore.runtime.core.tokens import Token, Tokens, is_transfer, link_of, transfer_key


class VirtualClock:
    """Gives the events of a run the times that they would have on the simulated devices.

    A device runs one node at a time, in the order in which the nodes were run, and a link copies one tensor at a time. A node takes the time of
    the cost model, with the sizes that its arrays really had. Dead nodes take no time. A node that is not found takes that of an elementwise op.

    Args:
        nodes: the nodes of the run.
        devices: the devices by name.
        find: gives the node of an event in the user's graph or in a function, None if it is not found.
        argument_bytes: the bytes of the arguments of each function, and of the feeds under "", by the name of their nodes.
        model: the cost model.
    """

    def __init__(
        self,
        nodes: Iterable[Node],
        devices: Mapping[str, Device],
        find: Callable[[Event], Node | None],
        argument_bytes: Mapping[str, dict[str, int]],
        model: CostModel,
    ) -> None:
        self._tokens = Tokens(nodes)
        self._devices = devices
        self._find = find
        self._model = model
        self._sizes: dict[str, dict[str, int]] = defaultdict(dict, argument_bytes)
        self._free: dict[str, int] = defaultdict(int)
        self._started: dict[tuple[Any, ...], int] = {}
        self._ends: dict[Token, int] = {}
        self._dead: dict[Token, int] = {}
        self._arrivals: dict[tuple[Any, ...], int] = {}

    def replay(self, events: Sequence[Event]) -> list[Event]:
        """The events in their order, with virtual times in nanoseconds from the start of the run."""
        return [msgspec.structs.replace(event, ns=self._time(event)) for event in events]

    def _time(self, event: Event) -> int:
        node = self._tokens.node_of(event)
        match event.kind:
            case "scheduled":
                return self._ready(node, event)
            case "start":
                return self._start(node, event)
            case "end":
                return self._end(node, event)
            case "dead":
                ready = self._ready(node, event, with_dead=True)
                if node is not None:
                    self._dead[self._tokens.output(node, event)] = ready
                return ready
            case "sent":
                return self._send(node, event)
            case "received":
                return self._arrival(node, event)

    def _ready(self, node: Node | None, event: Event, *, with_dead: bool = False) -> int:
        """The time at which the inputs of a node are there."""
        if node is None:
            return self._free[event.device]
        tokens = self._tokens.inputs(node, event)
        times = [self._ends[token] for token in tokens if token in self._ends]
        if with_dead or node.op not in MERGE:
            times += [self._dead[token] for token in tokens if token in self._dead]
        return max(times, default=0)

    def _start(self, node: Node | None, event: Event) -> int:
        time = self._ready(node, event)
        if not is_transfer(node):
            time = self._free[event.device] = max(time, self._free[event.device])
        self._started[_run(event)] = time
        return time

    def _end(self, node: Node | None, event: Event) -> int:
        started = self._started.pop(_run(event), 0)
        self._sizes[function_of(event.call)][event.node] = event.bytes
        if is_transfer(node):
            assert node is not None
            time = started if node.op in SEND else max(started, self._arrival(node, event))
        else:
            free = self._free[event.device]  # later than the start if nodes of a called function, or others during a wait, have run
            time = free if event.how or free > started else started + self._duration(event)
            self._free[event.device] = time
        if node is not None:
            self._ends[self._tokens.output(node, event)] = time
        return time

    def _duration(self, event: Event) -> int:
        device, node = self._devices[event.device], self._find(event)
        if node is None:
            return round(self._model.elementwise_seconds(event.bytes, device) * 1e9)
        sizes = self._sizes[function_of(event.call)]
        return round(self._model.seconds(node, device, lambda tensor: _elements(tensor, sizes)) * 1e9)

    def _send(self, node: Node | None, event: Event) -> int:
        """The start of a copy, which begins when its tensor is there and the link is free."""
        if node is None or not is_transfer(node):
            return self._free[event.device]
        is_dead = _run(event) not in self._started
        ready = self._ready(node, event, with_dead=is_dead)
        key = transfer_key(node, event)
        if is_dead:
            self._arrivals[key] = ready
            return ready
        source, destination = link_of(node)
        link = f"{source} -> {destination}"
        start = max(ready, self._free[link])
        seconds = self._model.copy_seconds(event.bytes, self._devices[source], self._devices[destination])
        self._free[link] = self._arrivals[key] = start + round(seconds * 1e9)
        return start

    def _arrival(self, node: Node | None, event: Event) -> int:
        arrival = None if node is None or not is_transfer(node) else self._arrivals.get(transfer_key(node, event))
        return self._free[event.device] if arrival is None else arrival


def located(events: Iterable[Event], device: str) -> list[Event]:
    """The events with the names of their devices: those in functions run where their caller does.

    Args:
        device: the device of all events; "" if the events outside of functions name their own.
    """
    placed, callers = [], dict[int, str]()
    for event in events:
        where = event.device or device
        if event.call and not event.device:
            where = callers.get(event.thread, device)
        elif event.kind == "start":
            callers[event.thread] = where
        placed.append(event if where == event.device else msgspec.structs.replace(event, device=where))
    return placed


def function_of(call: str) -> str:
    """The innermost function of `Event.call`, "" outside of functions."""
    return call.rpartition(" > ")[2].partition(":")[2].partition("#")[0]


def _elements(tensor: Tensor, sizes: Mapping[str, int]) -> int:
    """The number of elements of a tensor, by its shape or the bytes that its node gave last."""
    elements = tensor.shape.num_elements
    size, count = tensor.dtype.base.size, sizes.get(tensor.node.name)
    return elements if elements >= 0 or not size or count is None or len(tensor.node.output_types) != 1 else count // size


def _run(event: Event) -> tuple[Any, ...]:
    return event.node, event.frame, event.iteration, event.around, event.call
