"""The times and sizes of the nodes and tensors of one step."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from graphcore.graph import Node, Tensor
from graphcore.graph.model.search import post_order
from graphcore.placement.called_work import CalledWork, runs_functions
from graphcore.placement.cost_model import CostModel
from graphcore.placement.device import Device
from graphcore.placement.node_costs import FLOPS_PER_MICROSECOND, cost
from graphcore.placement.step_sizes import StepSizes
from graphcore.plumbing import CONTROL_FLOW, FEEDABLE, PLACEHOLDER, is_back_edge

_MOST_NAMED = 3


class StepCosts:
    """The times of nodes on devices, and the sizes of tensors, each worked out once.

    Args:
        nodes: the nodes of the step.
        model: the times.

    Attributes:
        model: the times.
        sizes: the sizes.
    """

    def __init__(self, nodes: Iterable[Node], model: CostModel) -> None:
        self.model = model
        self._nodes = list(nodes)
        self.sizes = StepSizes(self._nodes)
        self._called = model.called_works()
        self._works: dict[Node, CalledWork] = {}
        self._flops: dict[Node, float] = {}
        self._seconds: dict[tuple[Node, str], float] = {}
        self._bytes: dict[Tensor, int] = {}

    def seconds(self, node: Node, device: Device) -> float:
        """The time of all runs of a node in the step."""
        key = node, device.name
        seconds = self._seconds.get(key)
        if seconds is None:
            seconds = self._seconds[key] = self.model.runs(node) * self._of_one_run(node, device)
        return seconds

    def flops(self, node: Node) -> float:
        """The floating-point operations of one run of a node, those of the functions that it runs included."""
        if runs_functions(node):
            return sum([flops * runs for flops, runs in self._work(node).work.items()])
        flops = self._flops.get(node)
        if flops is None:
            flops = self._flops[node] = (
                self.model.flops(node) or cost(node, self.sizes.elements, self.sizes.shape_of) * FLOPS_PER_MICROSECOND
            )
        return flops

    def bytes_of(self, tensor: Tensor) -> int:
        """The bytes of a tensor, 0 if unknown."""
        size = self._bytes.get(tensor)
        if size is None:
            size = self._bytes[tensor] = self.sizes.bytes_of(tensor) or 0
        return size

    @cached_property
    def producers(self) -> dict[Node, list[Node]]:
        """For each node, the nodes of the step that it waits for, each once and not over back edges."""
        step = dict.fromkeys(self._nodes)
        before = {node: dict.fromkeys([tensor.node for tensor in node.inputs] + node.control_inputs) for node in step}
        return {
            node: [producer for producer in producers if producer in step and not is_back_edge(producer.op, node.op)]
            for node, producers in before.items()
        }

    @cached_property
    def consumers(self) -> dict[Node, list[Node]]:
        """For each node, the nodes of the step that wait for it."""
        consumers: dict[Node, list[Node]] = {node: [] for node in self._nodes}
        for node, producers in self.producers.items():
            for producer in producers:
                consumers[producer].append(node)
        return consumers

    @cached_property
    def order(self) -> list[Node]:
        """The nodes of the step, each after those that it waits for."""
        return post_order(self._nodes, self.producers.__getitem__)

    def is_fed(self, node: Node) -> bool:
        """True if the value of a node comes from the caller of the step."""
        return node.op in PLACEHOLDER or (node.op in FEEDABLE and f"{node.name}:0" in node.graph.fed_shapes)

    def _of_one_run(self, node: Node, device: Device) -> float:
        if runs_functions(node) and not self.model.is_measured(node, device):
            work = self._work(node).work
            return max(
                self.model.kernel_seconds(0.0, device),
                sum([self.model.kernel_seconds(flops, device) * runs for flops, runs in work.items()]),
            )
        return (
            self.model.seconds(node, device)
            if self.model.is_measured(node, device)
            else self.model.kernel_seconds(self.flops(node), device)
        )

    def _work(self, node: Node) -> CalledWork:
        work = self._works.get(node)
        if work is None:
            work = self._works[node] = self._called.of(node, self.sizes)
        return work

    @cached_property
    def unknown(self) -> list[Node]:
        """The nodes whose sizes are unknown, so that neither their times nor their copies are."""
        return [node for node in self._nodes if not self.sizes.is_known(node)]

    @property
    def is_bound(self) -> bool:
        """True if a size, a function or the iterations of a loop are unknown.

        Times and bytes are then lower bounds.
        """
        works = self._works.values()
        return bool(self.unknown) or any(work.unknown or not work.is_whole or "loop" in work.assumed for work in works)

    def notes(self) -> list[str]:
        """The assumptions, and what is unknown, in words."""
        notes = []
        if any(node.op in CONTROL_FLOW for node in self._nodes):
            as_traced = "the nodes of loops and branches run as often as in the trace"
            notes.append(as_traced if self.model.knows_runs else "without a trace, each node of a loop or branch is assumed to run once")
        works = [self._work(node) for node in self._nodes if runs_functions(node)]
        assumed = frozenset().union(*[work.assumed for work in works])
        if "loop" in assumed:
            notes.append("without a recorded run, a loop that calls functions is assumed to have one iteration")
        if "branch" in assumed:
            notes.append("without a recorded run, the branch with the most work is assumed to be taken")
        if not all(work.is_whole for work in works):
            notes.append("some functions could not be read, or are too large: their nodes do not count")
        unknown = self.unknown
        inner = sum([work.unknown for work in works])
        if unknown or inner:
            named = ", ".join([f"'{node.name}'" for node in _first(unknown)])
            more = f", such as {named}" if named else ""
            notes.append(
                f"the sizes of {len(unknown) + inner:,} nodes are unknown{more}: each counts as the start of a kernel, and its copies as 0 bytes; "
                "after a run with the feeds of the step they are known"
            )
        return notes


def _first(nodes: list[Node]) -> list[Node]:
    """The nodes to name: first those whose inputs are known, such as placeholders."""
    among = set(nodes)
    sources = [node for node in nodes if not any(tensor.node in among for tensor in node.inputs)]
    return (sources or nodes)[:_MOST_NAMED]
