"""Gradients of If and Case: a selection among the gradients of the branches."""

from __future__ import annotations

from collections.abc import Sequence

from graphcore.attrs import AttrValue, Func
from graphcore.dtypes import DType
from graphcore.errors import InvalidArgumentError
from graphcore.graph import FunctionGraph, Node, Tensor
from graphcore.passes.functions.defining import define_body, function_label
from graphcore.passes.gradients.functions.differentiation import (
    FORWARD_OF,
    Copier,
    DifferentiatedBody,
    Differentiation,
    add_returns,
    arrived_outputs,
    forward_of,
    is_argument,
    keep_shape,
    new_node,
    zeros_in,
)
from graphcore.plumbing import IF


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
        self.functions = _functions(node)
        self.rets = arrived_outputs(back, node)
        shapes = [tensor.shape for tensor in self.inputs]
        self.bodies = [DifferentiatedBody(back.graph, function, shapes) for function in self.functions]
        for body in self.bodies:
            body.differentiate(back, self.rets, wanted)
        self.wanted = [number for number in wanted if any(body.gradients[number] is not None for body in self.bodies)]

    def build(self) -> dict[int, Tensor]:
        if not self.wanted:
            return {}
        needed = [body.needed_backward(self.given(body)) for body in self.bodies]
        taken = [body.taken_from_forward(nodes, self.given(body)) for body, nodes in zip(self.bodies, needed, strict=True)]
        used = {body.args.index(tensor) for body, found in zip(self.bodies, taken, strict=True) for tensor in found if is_argument(tensor)}
        used |= {number for number in self.wanted if any(body.gradients[number] is None for body in self.bodies)}
        values = [[tensor for tensor in found if not is_argument(tensor)] for found in taken]
        handed_over = self.augment(values) if any(values) else []
        arguments = sorted(used)
        name = self.back.graph.names.unique(f"{self.scope}{self.node.name.rpartition('/')[2]}")
        branches = [
            self.gradient_branch(i, function_label(self.back.graph, name, role), needed[i], arguments, values)
            for i, role in enumerate(_roles(self.node, len(self.bodies)))
        ]
        dys = [self.back.output_gradient(self.node, number, self.scope) for number in self.rets]
        forward = [self.node.inputs[0], *[self.inputs[number] for number in arguments]]
        inputs = [
            *[self.back.forward_value(tensor) for tensor in forward],
            *dys,
            *[self.back.forward_value(tensor) for tensor in handed_over],
        ]
        types = [self.inputs[number].dtype.base for number in self.wanted]
        made = self.choice(name, branches, inputs, types, {})
        return {
            1 + number: keep_shape(self.back.graph, tensor, self.inputs[number])
            for number, tensor in zip(self.wanted, made.outputs, strict=True)
        }

    def given(self, body: DifferentiatedBody) -> list[Tensor]:
        return [gradient for number in self.wanted if (gradient := body.gradients[number]) is not None]

    def augment(self, values: list[list[Tensor]]) -> list[Tensor]:
        """The augmented forward node, with branches that return further values, and these values."""
        graph = self.back.graph
        name = graph.names.unique(f"{self.scope}forward")
        more = [tensor for found in values for tensor in found]
        branches = []
        for i, role in enumerate(_roles(self.node, len(self.bodies))):
            body = self.bodies[i]
            target = FunctionGraph.within(graph, function_label(graph, name, role))
            copier = body.copy_forward(target)
            own = set(values[i])
            extra = [copier.tensor(tensor) if tensor in own else _absent(target, tensor) for tensor in more]
            add_returns(target, [*[copier.tensor(ret) for ret in body.rets], *extra])
            branches.append(define_body(target, target.label, [copier.nodes[node] for node in body.control_rets]))
        count = len(self.node.outputs)
        types = [*[dtype.base for dtype in self.node.output_types], *[tensor.dtype.base for tensor in more]]
        attrs: dict[str, AttrValue] = {FORWARD_OF: forward_of(self.node, self.functions)}
        return self.choice(name, [Func(made.name) for made in branches], self.node.inputs, types, attrs).outputs[count:]

    def gradient_branch(self, number: int, label: str, nodes: Sequence[Node], arguments: Sequence[int], values: list[list[Tensor]]) -> Func:
        body = self.bodies[number]
        target = FunctionGraph.within(self.back.graph, label)
        copier = Copier(target)
        for i in arguments:
            copier.tensors[body.args[i]] = target.argument(body.args[i].node.name, body.args[i].dtype, body.args[i].shape)
        for dy in body.dys.values():
            copier.tensors[dy] = target.argument(dy.node.name, dy.dtype, dy.shape)
        for i, found in enumerate(values):
            for tensor in found:
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

    def choice(
        self, name: str, branches: Sequence[Func], inputs: Sequence[Tensor], types: Sequence[DType], attrs: dict[str, AttrValue]
    ) -> Node:
        node, library = self.node, self.back.graph.library
        stateful = any(library.look_up_op_def(branch.name).is_stateful for branch in branches)
        kind = node.op.removeprefix("Stateless")
        op = kind if stateful else f"Stateless{kind}"
        own: dict[str, AttrValue] = {"branches": tuple(branches)}
        if kind == "If":
            own = {"then_branch": branches[0], "else_branch": branches[1], "Tcond": node.input_types[0].base}
        own |= {"output_shapes": (), "_lower_using_switch_merge": True}
        attrs = {**own, "Tin": tuple([tensor.dtype.base for tensor in inputs[1:]]), "Tout": tuple(types), **attrs}
        return new_node(self.back.graph, node, name, op, inputs, types, attrs)


def _absent(graph: FunctionGraph, tensor: Tensor) -> Tensor:
    """A placeholder for a value of another branch."""
    return graph.apply_op("FakeParam", [], {"dtype": tensor.dtype.base, "shape": tensor.shape}, "absent").outputs[0]


def _functions(node: Node) -> list[Func]:
    attrs = node.node_def.attr
    found = [attrs.get("then_branch"), attrs.get("else_branch")] if node.op in IF else attrs.get("branches")
    branches = [item for item in found if isinstance(item, Func)] if isinstance(found, list | tuple) else []
    if not branches or len(branches) < (2 if node.op in IF else 1):
        raise InvalidArgumentError.at(node, f"'{node.name}' (op {node.op}) names no branches")
    return branches


def _roles(node: Node, count: int) -> list[str]:
    return ["true", "false"] if node.op in IF else [f"branch{i}" for i in range(count)]
