"""Symbolic gradients: registered gradient functions, inlined from the outputs to the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphcore.attrs import TensorValue
from graphcore.graph import Graph, Node, Tensor
from graphcore.passes.functions.defining import sweep
from graphcore.passes.gradients.control_flow import ControlFlowGradients
from graphcore.passes.gradients.node_gradients import DIFFERENTIABLE, NUMBERS, NodeGradients
from graphcore.passes.gradients.overrides import gradient_kind
from graphcore.passes.gradients.trace import GradientTrace
from graphcore.plumbing import CONTROL_FLOW
from graphcore.support.gc_pause import paused_collector


def build_gradients(
    graph: Graph,
    ys: Sequence[Tensor],
    xs: Sequence[Tensor],
    grad_ys: Sequence[Tensor | None],
    *,
    name: str = "gradients",
    stop_gradients: Sequence[Tensor] = (),
    simplify: bool = True,
    trace: GradientTrace | None = None,
) -> list[Tensor | None]:
    """Add the nodes that compute d sum(ys) / d xs.

    Args:
        ys, xs: tensors of `graph`.
        grad_ys: the incoming gradients of `ys`; ones for None.
        name: the name scope of the new nodes.
        stop_gradients: tensors that gradients do not flow through.
        simplify: False inlines the plain registered bodies.
        trace: records the origins of nodes.

    Returns:
        One gradient for each x, None if no y depends on it.

    Raises:
        NotFoundError: an op has no registered gradient.
        InvalidArgumentError: an argument of the wrong shape.
    """
    seeds = [(y, seed) for y, seed in zip(ys, grad_ys, strict=True) if y.dtype in (NUMBERS if seed is None else DIFFERENTIABLE)]
    if not seeds:
        return [None] * len(xs)
    ys, grad_ys = [y for y, _ in seeds], [seed for _, seed in seeds]
    # In the body of a function, the surrounding trace handles this, including captures.
    whole = graph.transaction() if graph.outer is None else graph.lock
    with paused_collector(), whole, graph.name_scope(name):
        gradients = _Backpropagation(graph, xs, stop_gradients, simplify=simplify, trace=trace).run(ys, grad_ys)
        if graph.outer is None:
            sweep(graph)
    return gradients


class _Backpropagation(NodeGradients):
    """The backward pass through one graph."""

    pops_stacks = False
    """True if a pop takes values pushed in a loop, a dependency without an edge."""

    def run(self, ys: Sequence[Tensor], grad_ys: Sequence[Tensor | None]) -> list[Tensor | None]:
        """See `build_gradients`."""
        self.given.update([grad_y for grad_y in grad_ys if grad_y is not None])
        order = self._between(ys)
        for i, (y, grad_y) in enumerate(zip(ys, grad_ys, strict=True)):
            self.arrive(y, grad_y if grad_y is not None else self._ones(y, f"grad_ys_{i}"), None, 0)
        useful = set(order)
        arrived, stop = self.arrived, self.stop
        if self.pops_stacks or any(node.op in CONTROL_FLOW for node in order):
            ControlFlowGradients(self, ys).run()
            order = []
        for node in order:
            for tensor in node.outputs:
                if tensor in arrived and tensor not in stop:
                    self.differentiate(node, useful)
                    break
        return [self.total(x) if x in arrived else None for x in self.xs]

    def within(
        self, graph: Graph, ys: Sequence[Tensor], xs: Sequence[Tensor], grad_ys: Sequence[Tensor], *, keeps_all: bool = False
    ) -> list[Tensor | None]:
        """See `NodeGradients.within`."""
        with graph.name_scope("gradients"):
            return _Backpropagation(graph, xs, (), simplify=self.simplify, keeps_all=keeps_all).run(ys, grad_ys)

    def _between(self, ys: Sequence[Tensor]) -> list[Node]:
        """The nodes on a path from an x to a y, consumers first."""
        depends: dict[Node, bool | None] = {}  # None while its inputs are being visited
        x_set, stop = self.x_set, self.stop
        x_nodes = {x.node for x in self.xs}
        order: list[Node] = []
        pending = [y.node for y in ys]
        pending.reverse()
        while pending:
            node = pending[-1]
            if node not in depends:
                depends[node] = None
                if node.op == "StackPopV2":
                    self.pops_stacks = True
                pending += [tensor.node for tensor in node.inputs if tensor.node not in depends]
                continue
            pending.pop()
            if depends[node] is not None:
                continue
            depends[node] = node in x_nodes
            if gradient_kind(node) == "stop":
                if depends[node]:
                    order.append(node)
                continue
            for tensor in node.inputs:
                if tensor in x_set or (depends[tensor.node] and tensor not in stop):
                    depends[node] = True
                    break
            if depends[node]:
                order.append(node)
        order.reverse()
        return order

    def _ones(self, y: Tensor, name: str) -> Tensor:
        shape = y.shape
        if not (shape.is_fully_defined and shape.num_elements <= 1024):
            return self.writer.ones_like(self.scope + name, y, y.node.name)
        numpy: Any = y.dtype.base.as_numpy
        value = TensorValue(np.ones([size or 0 for size in shape.as_list()], numpy), y.dtype.base)
        return self.writer.constant(self.scope + name, value, (y.node.name, None, {}, "seed"))
