"""The paths of a gradient from y to x."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final

import msgspec

from graphcore.graph import Node, Tensor
from graphcore.graph.control_flow.analysis import ControlFlow
from graphcore.graph.model.search import post_order
from graphcore.passes.gradients.explanation.flow import Flow
from graphcore.plumbing import EXIT, MERGE, NEXT_ITERATION, SWITCH


class _Hop(msgspec.Struct, frozen=True, eq=False):
    """A step backwards: a tensor, and the input slots through which nodes lead to it, the last one first."""

    source: Tensor
    through: tuple[tuple[Node, int], ...]


_Path = tuple[_Hop, Any] | None
"""A path to y: its first hop, and the rest, which paths may share."""
MOST_COUNTED: Final = 10**18
"""The largest count of paths. Where paths fork and join repeatedly, their number grows exponentially with the graph."""


def _unrolled(path: _Path) -> Iterator[Node]:
    while path is not None:
        hop, path = path
        for step, _ in reversed(hop.through):
            yield step


class GradientPaths:
    """All paths from `x` to `y` along which the gradient flows. A loop counts as traversed at most once.

    Args:
        without: further inputs through which the gradient does not flow.

    Attributes:
        tensors: the tensors on any path.
        nodes: the nodes on any path except that of `x`, from `y` on, consumers before producers.
        count: the number of paths, at most `MOST_COUNTED`.
    """

    def __init__(self, x: Tensor, y: Tensor, flow: Flow, without: Collection[tuple[Node, int]] = ()) -> None:
        self.x = x
        self.y = y
        self.flow = flow
        self._without = frozenset(without)
        self._hops: dict[Node, list[_Hop]] = {}
        order = self._producers_first()
        counts: dict[Tensor, int] = {x: 1}
        distance: dict[Tensor, int] = {x: 0}
        slots: dict[Node, set[int]] = {}
        for node in order:
            hops = [] if node is x.node else [hop for hop in self._hops[node] if hop.source in counts]
            self._hops[node] = hops
            if not hops:
                continue
            for hop in hops:
                for step, slot in hop.through:
                    slots.setdefault(step, set()).add(slot)
            total = min(sum(counts[hop.source] for hop in hops), MOST_COUNTED)
            nearest = min(distance[hop.source] + len(hop.through) for hop in hops)
            for tensor in node.outputs:
                if tensor in flow.reached and tensor not in flow.stop:
                    counts[tensor], distance[tensor] = total, nearest
        self.count = counts.get(y, 0)
        self.tensors = frozenset(counts)
        self._distance = distance
        self._slots = slots
        self.nodes = list(dict.fromkeys([step for node in reversed(order) for hop in self._hops[node] for step, _ in hop.through]))

    def slots(self, node: Node) -> tuple[int, ...]:
        """The inputs of `node` through which the gradient flows to x; () for a node on no path."""
        return tuple(sorted(self._slots.get(node, ())))

    def shortest(self, most: int) -> list[tuple[Node, ...]]:
        """The shortest paths, from x to y."""
        paths: list[tuple[Node, ...]] = []
        ticket = count()
        # Among paths of equal length the latest one is continued first, so that one is complete before the next begins.
        waiting: list[tuple[int, int, Tensor, int, _Path]] = [(0, next(ticket), self.y, 0, None)]
        while waiting and len(paths) < most:
            _, _, tensor, length, path = heappop(waiting)
            if tensor is self.x:
                paths.append((tensor.node, *_unrolled(path)))
                continue
            for hop in reversed(self._hops.get(tensor.node, [])):
                longer = length + len(hop.through)
                heappush(waiting, (longer + self._distance[hop.source], -next(ticket), hop.source, longer, (hop, path)))
        return paths

    def _producers_first(self) -> list[Node]:
        def producers(node: Node) -> list[Node]:
            self._hops[node] = hops = [] if node is self.x.node else [hop for hop in _hops(node, self.flow) if self._is_open(hop)]
            return [hop.source.node for hop in hops]

        return post_order([self.y.node], producers)

    def _is_open(self, hop: _Hop) -> bool:
        return hop.source in self.flow.reached and self._without.isdisjoint(hop.through)


def _hops(node: Node, flow: Flow) -> list[_Hop]:
    if node.op in EXIT and node.inputs[0].node.op in SWITCH:
        switch = node.inputs[0].node
        merge = switch.inputs[0].node
        return [_Hop(tensor, ((node, 0), (switch, 0), (merge, slot))) for slot, tensor in enumerate(merge.inputs)]
    if node.op in SWITCH and ControlFlow.is_loop_switch(node) and node.inputs[0].node.op in MERGE:
        merge = node.inputs[0].node
        entering = [(slot, tensor) for slot, tensor in enumerate(merge.inputs) if tensor.node.op not in NEXT_ITERATION]
        return [_Hop(tensor, ((node, 0), (merge, slot))) for slot, tensor in entering]
    return [_Hop(node.inputs[slot], ((node, slot),)) for slot in flow.slots.get(node, ())]
