"""Gradients of If and Case: a selection among the gradients of the branches."""

from __future__ import annotations

from collections.abc import Sequence

from graphcore.attrs import Func
from graphcore.graph import FunctionGraph, Node, Tensor
from graphcore.passes.functions.defining import define_body, function_label
from graphcore.passes.gradients.functions.augmented_branches import augment_branches, branch_functions, branch_roles, new_choice
from graphcore.passes.gradients.functions.differentiation import (
    Copier,
    DifferentiatedBody,
    Differentiation,
    add_returns,
    arrived_outputs,
    handles_of,
    is_argument,
    keep_shape,
    zeros_in,
)
from graphcore.passes.gradients.functions.keeping import AllValues, keeps_all_values


def branch_gradients(back: Differentiation, node: Node, slots: Sequence[int], scope: str) -> dict[int, Tensor]:
    """The gradients of some inputs of an If or Case.

    Args:
        back: the backward pass, with the gradients of all outputs.
        slots: the wanted inputs.
        scope: the prefix of the new nodes' names.

    Returns:
        The gradients by slot, without inputs that no output depends on.

    Raises:
        NotFoundError: a branch is not in the library, or an op in it has no gradient.
    """
    return _BranchGradients(back, node, [slot - 1 for slot in slots if slot], scope).build()


class _BranchGradients:
    def __init__(self, back: Differentiation, node: Node, wanted: Sequence[int], scope: str) -> None:
        self.back = back
        self.node = node
        self.inputs = node.inputs[1:]
        self.scope = scope
        self.functions = branch_functions(node)
        self.rets = arrived_outputs(back, node)
        self.keeps_all = keeps_all_values(back, node)
        shapes = [tensor.shape for tensor in self.inputs]
        self.bodies = [DifferentiatedBody(back.graph, function, shapes, handles_of(self.inputs)) for function in self.functions]
        for body in self.bodies:
            body.differentiate(back, self.rets, wanted, keeps_all=self.keeps_all)
        self.wanted = [number for number in wanted if any(body.gradients[number] is not None for body in self.bodies)]

    def build(self) -> dict[int, Tensor]:
        if not self.wanted:
            return {}
        needed = [body.needed_backward(self.given(body)) for body in self.bodies]
        taken = [body.taken_from_forward(nodes, self.given(body)) for body, nodes in zip(self.bodies, needed, strict=True)]
        used = {
            body.args.index(tensor) for body, tensors in zip(self.bodies, taken, strict=True) for tensor in tensors if is_argument(tensor)
        }
        used |= {number for number in self.wanted if any(body.gradients[number] is None for body in self.bodies)}
        values = [[tensor for tensor in tensors if not is_argument(tensor)] for tensors in taken]
        handed_over = self.handed_over(values) if any(values) else []
        arguments = sorted(used)
        name = self.back.graph.names.unique(f"{self.scope}{self.node.name.rpartition('/')[2]}")
        branches = [
            self.gradient_branch(i, function_label(self.back.graph, name, role), needed[i], arguments, values)
            for i, role in enumerate(branch_roles(self.node))
        ]
        dys = [self.back.output_gradient(self.node, number, self.scope) for number in self.rets]
        forward = [self.node.inputs[0], *[self.inputs[number] for number in arguments]]
        inputs = [
            *[self.back.forward_value(tensor) for tensor in forward],
            *dys,
            *[self.back.forward_value(tensor) for tensor in handed_over],
        ]
        types = [self.inputs[number].dtype.base for number in self.wanted]
        made = new_choice(self.node, name, branches, inputs, types, {})
        return {
            1 + number: keep_shape(self.back.graph, tensor, self.inputs[number])
            for number, tensor in zip(self.wanted, made.outputs, strict=True)
        }

    def given(self, body: DifferentiatedBody) -> list[Tensor]:
        return [gradient for number in self.wanted if (gradient := body.gradients[number]) is not None]

    def handed_over(self, values: list[list[Tensor]]) -> list[Tensor]:
        """The outputs of the augmented node for some values of each branch."""
        everything = AllValues(self.node) if self.keeps_all else None
        if everything is not None and all(everything.include(i, self.bodies[i], tensors) for i, tensors in enumerate(values)):
            made = everything.add(self.scope)
            return [
                keep_shape(self.back.graph, output, tensor)
                for i, tensors in enumerate(values)
                for output, tensor in zip(everything.outputs(made, i, self.bodies[i], tensors), tensors, strict=True)
            ]
        return augment_branches(self.node, self.bodies, values, self.scope).outputs[len(self.node.outputs) :]

    def gradient_branch(self, number: int, label: str, nodes: Sequence[Node], arguments: Sequence[int], values: list[list[Tensor]]) -> Func:
        body = self.bodies[number]
        target = FunctionGraph.within(self.back.graph, label)
        copier = Copier(target)
        for i in arguments:
            copier.tensors[body.args[i]] = target.argument(body.args[i].node.name, body.args[i].dtype, body.args[i].shape)
        for dy in body.dys.values():
            copier.tensors[dy] = target.argument(dy.node.name, dy.dtype, dy.shape)
        for i, tensors in enumerate(values):
            for tensor in tensors:
                argument = target.argument(tensor.node.name.rpartition("/")[2], tensor.dtype, tensor.shape)
                if i == number:
                    copier.tensors[tensor] = argument
        copier.copy(nodes)
        results = []
        for i in self.wanted:
            gradient = body.gradients[i]
            results.append(zeros_in(target, copier.tensors[body.args[i]], "zeros") if gradient is None else copier.tensor(gradient))
        add_returns(target, results)
        return Func(define_body(target, label).name)
