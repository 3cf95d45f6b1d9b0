"""Gradients with respect to variables, from those of their reads; gathered rows are scattered."""

from __future__ import annotations

from graphcore.graph import Node, Tensor
from graphcore.inference import handle_to_shape
from graphcore.passes.gradients.bodies.body import GradientBody
from graphcore.passes.gradients.bodies.template import gradient_template
from graphcore.passes.gradients.bodies.writer import GradientWriter


def gradient_by_variable(node: Node, gradient: Tensor, *, name: str, simplify: bool) -> Tensor:
    """The gradient with respect to the variable that a ResourceGather has read.

    Args:
        node: the ResourceGather.
        gradient: the gradient with respect to its output.
        name: the name scope of the call that builds gradients.
        simplify: False inlines the plain registered body.
    """
    graph = node.graph
    template = gradient_template(node.op, node.node_def.attr)
    assert template is not None
    with graph.name_scope(GradientWriter(graph).new_scope(f"{name}/{node.name}_grad")):
        found = GradientBody(graph, template, node, _OneGradient(node, gradient), simplify=simplify).result(0)
    handle = node.inputs[0]
    known = (handle.node.handle_data or {}).get(handle.index)
    if known:
        graph.set_shape(found, handle_to_shape(known[0].shape))
    return found


def reads_of(handle: Tensor) -> list[Tensor]:
    """The reads of a variable through its handle, of all or of rows, outside of functions and loops."""
    return [node.outputs[0] for node, slot in handle.consumers() if slot == 0 and node.registration.traits.reads_variable]


class _OneGradient:
    """The values of a node, and the gradient of its single output."""

    def __init__(self, node: Node, gradient: Tensor) -> None:
        self.node = node
        self.given = gradient

    def input(self, slot: int) -> Tensor:
        return self.node.inputs[slot]

    def output(self, index: int) -> Tensor:
        return self.node.outputs[index]

    def gradient(self, _: int) -> Tensor:
        return self.given
