"""Shortest paths in a graph from x and to y, by one search each."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence

import msgspec

from graphcore.dtypes import DType
from graphcore.graph import Node, Tensor


class Leaving(msgspec.Struct, frozen=True, eq=False):
    """The place where a path leaves differentiable tensors: node, output, and last such input."""

    node: Node
    tensor: Tensor
    given: Tensor


class PathsFrom:
    """Shortest paths from `x` along data edges.

    Args:
        x: the start.
        consumers: returns the consumers of a tensor to visit.
        differentiable: the dtypes that gradients flow through.

    Attributes:
        lengths: for each node that depends on `x`, and for the node of `x`, the number of nodes on the path, both ends included.
    """

    def __init__(self, x: Tensor, consumers: Mapping[Tensor, Sequence[Node]], differentiable: Collection[DType]) -> None:
        self.x = x
        self.lengths: dict[Node, int] = {x.node: 1}
        self._before: dict[Node, Node] = {}
        self._differentiable = differentiable
        self._leaving: dict[Node, Leaving] = {}
        self._given: dict[Node, Tensor] = {}
        waiting = deque([x.node])
        while waiting:
            node = waiting.popleft()
            for tensor in self._outputs(node):
                for consumer in consumers.get(tensor, ()):
                    if consumer not in self.lengths:
                        self.lengths[consumer] = self.lengths[node] + 1
                        self._before[consumer] = node
                        self._step(node, consumer)
                        waiting.append(consumer)

    def __contains__(self, node: Node) -> bool:
        return node in self.lengths

    def path(self, end: Node) -> list[Node]:
        """The nodes from that of `x` to `end`, both included; () if it does not depend on `x`."""
        if end not in self.lengths:
            return []
        path = [end]
        while (before := self._before.get(path[-1])) is not None:
            path.append(before)
        path.reverse()
        return path

    def leaving(self, source: Tensor) -> Leaving | None:
        """The place where the path to `source` leaves differentiable tensors, None if it does not."""
        node = source.node
        if node in self._leaving:
            return self._leaving[node]
        passed = self._given.get(node, self.x)
        return None if source.dtype in self._differentiable else Leaving(node, source, passed)

    def _outputs(self, node: Node) -> Sequence[Tensor]:
        return (self.x,) if node is self.x.node else node.outputs

    def _step(self, producer: Node, consumer: Node) -> None:
        if producer in self._leaving:
            self._leaving[consumer] = self._leaving[producer]
            return
        taken = [self.x] if producer is self.x.node else [tensor for tensor in consumer.inputs if tensor.node is producer]
        passed = next((tensor for tensor in taken if tensor.dtype in self._differentiable), None)
        if passed is None:
            self._leaving[consumer] = Leaving(producer, taken[0], self._given.get(producer, self.x))
        else:
            self._given[consumer] = passed


class PathsTo:
    """Shortest paths to `y` along which gradients flow.

    Args:
        y: the end.
        slots: returns the inputs that a gradient of any output of a node reaches.
        reached: the tensors that gradients reach.
        stop: the tensors that they do not go through.

    Attributes:
        lengths: for each node with such a path the number of nodes on it, both ends included.
    """

    def __init__(self, y: Tensor, slots: Mapping[Node, Sequence[int]], reached: Collection[Tensor], stop: Collection[Tensor]) -> None:
        self.lengths: dict[Node, int] = {y.node: 1}
        self._after: dict[Node, Node] = {}
        waiting = deque([y])
        while waiting:
            tensor = waiting.popleft()
            if tensor in stop:
                continue
            node = tensor.node
            for slot in slots.get(node, ()):
                source = node.inputs[slot]
                if source.node not in self.lengths:
                    self.lengths[source.node] = self.lengths[node] + 1
                    self._after[source.node] = node
                    waiting.extend(other for other in source.node.outputs if other in reached)

    def path(self, start: Node) -> list[Node]:
        """The nodes from `start` to that of `y`, both included; () without a path."""
        if start not in self.lengths:
            return []
        path = [start]
        while (after := self._after.get(path[-1])) is not None:
            path.append(after)
        return path
