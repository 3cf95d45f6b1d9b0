"""Symbolic gradients: the registered gradient function of each op on the way, inlined from the outputs to the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphcore import dtypes
from graphcore.attrs import TensorValue
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.graph import GradientRecord, Graph, Node, Tensor, constant_node
from graphcore.passes.gradient_body import GradientBody
from graphcore.passes.gradient_template import GradientTemplate, call_template, gradient_template


def build_gradients(
    graph: Graph,
    ys: Sequence[Tensor],
    xs: Sequence[Tensor],
    grad_ys: Sequence[Tensor | None],
    *,
    name: str = "gradients",
    stop_gradients: Sequence[Tensor] = (),
    simplify: bool = True,
) -> list[Tensor | None]:
    """Add the nodes that compute d sum(ys) / d xs.

    Args:
        ys, xs: tensors of `graph`.
        grad_ys: the gradients that arrive at `ys`; ones where None.
        name: the name scope of the new nodes.
        stop_gradients: tensors that gradients reach but do not go through.
        simplify: False inlines the plain registered bodies.

    Returns:
        One gradient an x, None where no y depends on it.

    Raises:
        NotFoundError: an op on the way has no registered gradient.
        InvalidArgumentError: an argument of a dtype that cannot be differentiated, or of the wrong shape.
    """
    for y in ys:
        if not (y.dtype.base.is_floating or y.dtype.base.is_complex):
            raise InvalidArgumentError(
                f"Only tensors of floating or complex dtype can be differentiated, but '{y.name}' is {y.dtype.name}",
                op=y.node.op,
                node=y.node.name,
                source=y.node.source,
            )
    with graph.name_scope(name):
        return _Backpropagation(graph, xs, stop_gradients, simplify).run(ys, grad_ys)


class _Backpropagation:
    def __init__(self, graph: Graph, xs: Sequence[Tensor], stop: Sequence[Tensor], simplify: bool) -> None:
        self.graph = graph
        self.xs = list(xs)
        self.stop = set(stop)
        self.simplify = simplify
        self.arrived: dict[Tensor, list[Tensor]] = {}
        self.scope = graph.scopes.name

    def run(self, ys: Sequence[Tensor], grad_ys: Sequence[Tensor | None]) -> list[Tensor | None]:
        order = self._between(ys)
        for i, (y, given) in enumerate(zip(ys, grad_ys, strict=True)):
            self.arrived.setdefault(y, []).append(given if given is not None else self._ones(y, f"grad_ys_{i}"))
        useful = set(order)
        for node in order:
            if any(tensor in self.arrived and tensor not in self.stop for tensor in node.outputs):
                self._differentiate(node, useful)
        return [self._total(x) if x in self.arrived else None for x in self.xs]

    def _between(self, ys: Sequence[Tensor]) -> list[Node]:
        """The nodes on a path from an x to a y, consumers first."""
        depends: dict[Node, bool] = {}
        x_nodes = {x.node for x in self.xs}
        x_set = set(self.xs)
        order: list[Node] = []
        for y in ys:
            pending: list[tuple[Node, bool]] = [(y.node, False)]
            while pending:
                node, leaving = pending.pop()
                if leaving:
                    through = [t for t in node.inputs if t in x_set or (t not in self.stop and depends.get(t.node, False))]
                    depends[node] = node in x_nodes or bool(through)
                    order.append(node)
                elif node not in depends:
                    depends[node] = False
                    pending.append((node, True))
                    pending.extend((tensor.node, False) for tensor in node.inputs if tensor.node not in depends)
        order.reverse()
        return [node for node in order if depends[node]]

    def _differentiate(self, node: Node, useful: set[Node]) -> None:
        x_set = set(self.xs)
        slots = [
            slot
            for slot, tensor in enumerate(node.inputs)
            if (tensor in x_set or (tensor.node in useful and tensor not in self.stop)) and _differentiable(tensor)
        ]
        if not slots:
            return
        try:
            template = call_template(node) if node.registration.is_function else gradient_template(node.op, node.node_def.attr)
        except GraphError as error:
            raise error.with_node(node.name, op=node.op, source=node.source) from None
        if template is None:
            return
        self._inline(node, template, slots)

    def _inline(self, node: Node, template: GradientTemplate, slots: list[int]) -> None:
        if len(template.rets) != len(node.inputs) or len(template.args) != len(node.inputs) + len(node.outputs):
            raise InvalidArgumentError(
                f"The gradient function of op {node.op} must take {len(node.inputs)} inputs and {len(node.outputs)} gradients and give "
                f"{len(node.inputs)} results; it takes {len(template.args)} and gives {len(template.rets)}",
                op=node.op,
                node=node.name,
                source=node.source,
            )
        with self.graph.name_scope(f"{node.name}_grad"):
            body = GradientBody(self.graph, template, node, lambda i: self._output_gradient(node, i), simplify=self.simplify)
            for slot in slots:
                self.arrived.setdefault(node.inputs[slot], []).append(body.input_gradient(slot))

    def _output_gradient(self, node: Node, index: int) -> Tensor:
        output = node.outputs[index]
        if output in self.arrived:
            return self._total(output)
        zeros = self.graph.apply_op("ZerosLike", [output], None, "zeros")
        self._record(zeros, node, "zeros")
        return zeros.outputs[0]

    def _total(self, tensor: Tensor) -> Tensor:
        """The sum of what has arrived at `tensor`."""
        parts = self.arrived[tensor]
        if len(parts) > 1:
            with self.graph.name_scope(None), self.graph.name_scope(f"{self.scope}{tensor.node.name}_sum"):
                node = self.graph.apply_op("AddN", [parts], None, "AddN")
            self._record(node, tensor.node, "sum")
            self.arrived[tensor] = parts = [node.outputs[0]]
        return parts[0]

    def _record(self, made: Node, forward: Node, what: str) -> None:
        self.graph.gradient_records[made.name] = GradientRecord(forward.name, None, {}, what)

    def _ones(self, y: Tensor, name: str) -> Tensor:
        shape = y.shape
        numpy: Any = y.dtype.base.as_numpy
        if shape.is_fully_defined and shape.num_elements <= 1024:
            made = constant_node(self.graph, TensorValue(np.ones([size or 0 for size in shape.as_list()], numpy), y.dtype.base), name)
        else:
            made = self.graph.apply_op("OnesLike", [y], None, name)
        self._record(made, y.node, "seed")
        return made.outputs[0]


def _differentiable(tensor: Tensor) -> bool:
    base = tensor.dtype.base
    # A variant is a list of tensors, whose gradient is a list of gradients.
    return base.is_floating or base.is_complex or base is dtypes.variant
