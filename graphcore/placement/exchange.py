"""The exchange of parameters and gradients among workers, and the time that it adds to a step."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from itertools import product
from typing import Final, Literal

import msgspec

from graphcore.placement.cost_model import CostModel
from graphcore.placement.device import Device
from graphcore.placement.replica import Parameter, Replica

Variables = Literal["ps", "mirrored"]
Reduce = Literal["auto", "tree", "ring"]
EXCHANGES: Final[tuple[tuple[Variables, Reduce], ...]] = tuple(product(("ps", "mirrored"), ("tree", "ring", "auto")))
"""The places of variables, and the ways to sum gradients."""
_NODES: Final = "nodes of "
_INTO: Final = "into worker 0"
_OUT_OF: Final = "out of worker 0"
"""The ports of the root of trees; those of other workers are in use for as long, or less."""


class Machines(msgspec.Struct, frozen=True):
    """The machines of a step, each with one port: it sends one tensor at a time, and receives one.

    Args:
        worker, server: the devices of their kinds.
        workers, servers: their numbers.
        model: the times.
        slowed: the factor by which work and copies of workers take longer, since they share the cores of a machine.
    """

    worker: Device
    server: Device
    workers: int
    servers: int
    model: CostModel
    slowed: float = 1.0

    @property
    def rounds(self) -> int:
        """The rounds in which pairs of sums become one sum of all workers."""
        return (self.workers - 1).bit_length()

    def to_server(self, size: int) -> float:
        """The time of a copy between a worker and a server."""
        return self.slowed * self.model.copy_seconds(size, self.worker, self.server)

    def to_worker(self, size: int) -> float:
        """The time of a copy between workers."""
        return self.slowed * self.model.copy_seconds(size, self.worker, self.worker)

    def added(self, size: int) -> float:
        """The time in which a worker adds two tensors."""
        return self.slowed * self.model.elementwise_seconds(size, self.worker)


class ExchangedStep(msgspec.Struct, frozen=True):
    """A step with many workers.

    Args:
        seconds: the time of the step.
        links: the seconds in which links are in use, by their names in words.
    """

    seconds: float
    links: dict[str, float]


def exchanged(replica: Replica, machines: Machines, variables: str, reduce: str) -> ExchangedStep:
    """A step with a way to exchange parameters and gradients; see `predict_scaling`."""
    mirrored = variables == "mirrored"
    least = least_of_rings(replica, machines, mirrored=mirrored) if reduce == "auto" else {"tree": math.inf, "ring": 0.0}[reduce]
    return _Ports(replica, machines, least).run(mirrored=mirrored)


def least_of_rings(replica: Replica, machines: Machines, *, mirrored: bool) -> float:
    """The bytes of the smallest gradients that go around rings in the fastest step; infinite without.

    A ring for each gradient that alone would be faster by one can be slower: both ports wait for it, and rings of many small gradients for
    the latency of their copies.
    """
    sizes = {parameter.gradient_bytes for parameter in replica.parameters if not parameter.by_rows}
    return min([math.inf, *sorted(sizes, reverse=True)], key=lambda least: _Ports(replica, machines, least).run(mirrored=mirrored).seconds)


class _Ports:
    """Follows the ports through a step: in which order they are used, and when they are free."""

    def __init__(self, replica: Replica, machines: Machines, least_of_rings: float) -> None:
        self.replica = replica
        self.machines = machines
        self.least = least_of_rings
        self.free: dict[str, float] = defaultdict(float)
        self.busy: dict[str, float] = defaultdict(float)

    def run(self, *, mirrored: bool) -> ExchangedStep:
        servers = {} if mirrored else _servers(self.replica, self.machines.servers)
        begin = sum([parameter.reading for parameter in self.replica.parameters]) if mirrored else self._read(servers)
        end = begin + self.replica.seconds
        for parameter in sorted(self.replica.parameters, key=lambda parameter: parameter.ready):
            ready = begin + parameter.ready
            server = servers.get(parameter.name, "")
            if self.machines.workers > 1:
                ready = self._way(parameter)(parameter, ready, server)
            elif server:
                ready = self._use(f"into {server}", ready, self.machines.to_server(parameter.gradient_bytes))
            if mirrored:
                ready = max(ready, begin + self.replica.seconds)  # a worker updates when it has computed all gradients
            end = max(end, self._use(_NODES + server, ready, parameter.updating))
        return ExchangedStep(end + self.replica.after, {name: busy for name, busy in self.busy.items() if not name.startswith(_NODES)})

    def _use(self, ports: str | tuple[str, ...], earliest: float, seconds: float) -> float:
        """Use ports as soon as they are free; the end is returned."""
        used = (ports,) if isinstance(ports, str) else ports
        end = max([earliest, *[self.free[port] for port in used]]) + seconds
        for port in used:
            self.free[port] = end
            self.busy[port] += seconds
        return end

    def _read(self, servers: dict[str, str]) -> float:
        """Send all parameters to each worker. -> seconds: the time for which the computation waits."""
        wait = 0.0
        for parameter in sorted(self.replica.parameters, key=lambda parameter: parameter.needed):
            server = servers[parameter.name]
            ready = self._use(_NODES + server, 0.0, parameter.reading)
            once = self.machines.to_server(parameter.bytes)
            sent = self._use(f"out of {server}", ready, self.machines.workers * once)
            wait = max(wait, max(sent, self._use(_INTO, ready, once)) - parameter.needed)
        return wait

    def _way(self, parameter: Parameter) -> Callable[[Parameter, float, str], float]:
        """The way to sum the gradients of a parameter."""
        if parameter.by_rows:
            return self._listed
        divides = parameter.elements >= self.machines.workers  # as in `replicate`: no part is empty
        return self._passed_by_ring if divides and parameter.gradient_bytes >= self.least else self._passed_by_tree

    def _listed(self, parameter: Parameter, ready: float, server: str) -> float:
        """List the rows of all workers one after the other, and send the list on."""
        machines, size = self.machines, parameter.gradient_bytes
        others, listed = machines.workers - 1, machines.workers * size
        ready = self._use(_INTO, ready, others * machines.to_worker(size)) + machines.added(listed)
        if server:
            ready = self._use((_OUT_OF, f"into {server}"), ready, machines.to_server(listed))
        else:
            ready = self._use(_OUT_OF, ready, others * machines.to_worker(listed))
        return ready + machines.added(listed)  # the update has as many rows

    def _passed_by_tree(self, parameter: Parameter, ready: float, server: str) -> float:
        """Sum gradients along a binary tree; the sum goes to the server, or back along the tree."""
        machines, size = self.machines, parameter.gradient_bytes
        once = machines.rounds * machines.to_worker(size)
        summed = self._use(_INTO, ready, once) + machines.rounds * machines.added(size)
        if not server:
            return self._use(_OUT_OF, summed, once) + machines.rounds * machines.added(size)
        return self._use((_OUT_OF, f"into {server}"), summed, machines.to_server(size))

    def _passed_by_ring(self, parameter: Parameter, ready: float, server: str) -> float:
        """Sum parts of gradients around a ring; the sums go to the server, or around once more."""
        machines, others = self.machines, self.machines.workers - 1
        part = math.ceil(parameter.gradient_bytes / machines.workers)
        divided = machines.added(parameter.gradient_bytes)  # the node that divides it, or joins it
        once = others * machines.to_worker(part)
        summed = self._use((_INTO, _OUT_OF), ready + divided, once) + others * machines.added(part)
        if server:
            self._use(_OUT_OF, summed, machines.to_server(part))
            return self._use(f"into {server}", summed, machines.workers * machines.to_server(part)) + divided
        return self._use((_INTO, _OUT_OF), summed, once) + others * machines.added(part) + divided


def _servers(replica: Replica, servers: int) -> dict[str, str]:
    """The server of each parameter: the one with the fewest bytes so far."""
    held = [0] * servers
    server_of = {}
    for parameter in replica.parameters:
        number = held.index(min(held))
        held[number] += parameter.size
        server_of[parameter.name] = "the server" if servers == 1 else f"server {number}"
    return server_of
