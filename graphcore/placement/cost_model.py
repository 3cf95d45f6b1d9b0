"""The cost model: the times of nodes and copies, predicted from shapes or measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from graphcore.graph import Graph, Node
from graphcore.placement.called_work import CalledWorks
from graphcore.placement.device import Device
from graphcore.placement.node_costs import FLOPS_PER_MICROSECOND, Elements, cost, elementwise_cost, known_elements

LAUNCH: Final = 1e-6
"""Seconds that a kernel takes at least."""
LATENCY: Final = 1e-5
"""Seconds that a transfer takes besides that of its bytes."""
_USUAL_THROUGHPUT: Final = FLOPS_PER_MICROSECOND * 1e6
_USUAL_BANDWIDTH: Final = 1e10


class CostModel:
    """Times of nodes and of copies.

    Args:
        measured: the seconds of a run of each node by name, as `Trace.node_seconds` gives them; they replace predictions on devices that
            are not simulated.
        runs: the number of runs of each node in a step by name, as `Trace.node_runs` gives them; a node that is not in it runs once.
        latency: the seconds of a copy that do not depend on its bytes.
        calls: the number of runs of each function in a step by its call, as `Trace.call_runs` gives them; without them a call runs its function
            once, a loop its body once, and of several branches the one with the most work counts.

    Attributes:
        knows_runs: True if numbers of runs were given.
        latency: as given.
    """

    def __init__(
        self,
        measured: Mapping[str, float] | None = None,
        runs: Mapping[str, float] | None = None,
        latency: float = LATENCY,
        calls: Mapping[str, float] | None = None,
    ) -> None:
        self.latency = latency
        self._measured = dict(measured or {})
        self._runs = dict(runs or {})
        self.knows_runs = runs is not None
        self._flops: dict[Node, float] = {}
        self._calls = dict(calls or {})

    def is_measured(self, node: Node, device: Device) -> bool:
        """True if the time of a node on a device is a measured one."""
        return not device.simulated and node.name in self._measured

    def called_works(self) -> CalledWorks:
        """Adds up the work of the functions that nodes run."""
        return CalledWorks(self._calls)

    def flops(self, node: Node) -> float:
        """The floating-point operations of a node; 0 if shapes are unknown.

        Memory accesses count as the operations that take their time.
        """
        flops = self._flops.get(node)
        if flops is None:
            flops = self._flops[node] = cost(node) * FLOPS_PER_MICROSECOND
        return flops

    def runs(self, node: Node) -> float:
        """The number of runs of a node in a step: more in a loop, 0 on a branch that is not taken."""
        return self._runs.get(node.name, 1.0)

    def seconds(self, node: Node, device: Device, elements: Elements = known_elements) -> float:
        """The time of one run of a node on a device, without the functions that it runs.

        Args:
            elements: the number of elements of a tensor, -1 if unknown; by its shape by default.
        """
        if self.is_measured(node, device):
            return self._measured[node.name]
        return self.kernel_seconds(self.flops(node) or cost(node, elements) * FLOPS_PER_MICROSECOND, device)

    def kernel_seconds(self, flops: float, device: Device) -> float:
        """The time of a kernel with so many floating-point operations."""
        return max(LAUNCH, flops / (device.throughput or _USUAL_THROUGHPUT))

    def elementwise_seconds(self, size: int, device: Device) -> float:
        """The time of an elementwise op that gives `size` bytes."""
        return max(LAUNCH, elementwise_cost(size) * FLOPS_PER_MICROSECOND / (device.throughput or _USUAL_THROUGHPUT))

    def copy_seconds(self, size: int, source: Device, destination: Device) -> float:
        """The time of a copy of `size` bytes, at the smaller of the two bandwidths."""
        return self.latency + size / min(source.bandwidth or _USUAL_BANDWIDTH, destination.bandwidth or _USUAL_BANDWIDTH)


def model_of(graph: Graph, measured: Mapping[str, float] | None = None) -> CostModel:
    """The cost model of a graph: the numbers of runs are those of its last recorded run, if there is one.

    Args:
        graph: the graph.
        measured: as for `CostModel`.
    """
    trace = graph.trace
    return CostModel(measured) if trace is None else CostModel(measured, trace.node_runs(), calls=trace.call_runs())
