"""The ways that a gradient takes from y to x."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count

from graphcore.graph import Node, Tensor
from graphcore.passes.gradient_flow import Flow, passes


class GradientPaths:
    """All ways from `x` to `y` along which the gradient flows. A loop's body counts as one way, however often it runs.

    Attributes:
        tensors: what lies on any of them.
        nodes: the nodes on them except that of `x`, from `y` on, consumers before producers.
        count: how many there are.
    """

    def __init__(self, x: Tensor, y: Tensor, flow: Flow) -> None:
        self.x = x
        self.y = y
        self.flow = flow
        order = _producers_first(x, y, flow)
        ways: dict[Tensor, int] = {x: 1}
        distance: dict[Tensor, int] = {x: 0}
        self._slots: dict[Node, tuple[int, ...]] = {}
        for node in order:
            slots = [slot for slot, tensor in enumerate(node.inputs) if tensor in ways and passes(node, slot)]
            if not slots or node is x.node:
                continue
            self._slots[node] = tuple(slots)
            total = sum(ways[node.inputs[slot]] for slot in slots)
            nearest = 1 + min(distance[node.inputs[slot]] for slot in slots)
            for tensor in node.outputs:
                if tensor in flow.reached and tensor not in flow.stop:
                    ways[tensor], distance[tensor] = total, nearest
        self.count = ways.get(y, 0)
        self.tensors = frozenset(ways)
        self._distance = distance
        self.nodes = [node for node in reversed(order) if node in self._slots]

    def slots(self, node: Node) -> tuple[int, ...]:
        """The inputs of `node` through which the gradient goes on to x."""
        return self._slots[node]

    def shortest(self, most: int) -> list[tuple[Node, ...]]:
        """The shortest ways, from x to y."""
        found: list[tuple[Node, ...]] = []
        ticket = count()
        # Of ways of equal length the one begun last goes on first, so that one is finished before the next is begun.
        waiting: list[tuple[int, int, Tensor, tuple[Node, ...]]] = [(0, next(ticket), self.y, (self.y.node,))]
        while waiting and len(found) < most:
            _, _, tensor, way = heappop(waiting)
            if tensor is self.x:
                found.append(way)
                continue
            for slot in reversed(self._slots.get(tensor.node, ())):
                source = tensor.node.inputs[slot]
                if source in self.tensors and source.node not in way:
                    heappush(waiting, (len(way) + self._distance[source], -next(ticket), source, (source.node, *way)))
        return found


def _producers_first(x: Tensor, y: Tensor, flow: Flow) -> list[Node]:
    order: list[Node] = []
    done: dict[Node, bool] = {}
    pending = [y.node]
    while pending:
        node = pending[-1]
        if node not in done:
            done[node] = False
            if node is not x.node:
                pending += [t.node for slot, t in enumerate(node.inputs) if t.node not in done and t in flow.reached and passes(node, slot)]
            continue
        pending.pop()
        if not done[node]:
            done[node] = True
            order.append(node)
    return order
