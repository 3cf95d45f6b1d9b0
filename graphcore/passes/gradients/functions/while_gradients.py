"""Gradients of While: a loop over the iterations in reverse, which takes forward values from lists."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphcore import dtypes
from graphcore.attrs import Func, TensorValue
from graphcore.graph import FunctionGraph, Node, Tensor, constant_node
from graphcore.inference import handle_to_shape
from graphcore.opset.control_flow.function_calls import func_attr
from graphcore.passes.functions.defining import define_body, function_label
from graphcore.passes.gradients.functions.augmented_loops import augment_loop, element_sizes, is_invariant, new_loop
from graphcore.passes.gradients.functions.differentiation import (
    Copier,
    DifferentiatedBody,
    Differentiation,
    add_returns,
    arrived_outputs,
    handles_of,
    keep_shape,
    zeros_in,
)
from graphcore.passes.gradients.functions.keeping import AllValues, keeps_all_values
from graphcore.passes.infra.known_shapes import same_shape
from graphcore.shapes import Shape


def loop_gradients(back: Differentiation, node: Node, slots: Sequence[int], scope: str) -> dict[int, Tensor]:
    """The gradients of some inputs of a While.

    An augmented loop counts the iterations and appends the values that the gradient of the body needs to lists. The backward loop takes them
    from the ends of the lists: nothing is computed twice.

    Args:
        back: the backward pass, with the gradients of all outputs.
        slots: the wanted inputs.
        scope: the prefix of the new nodes' names.

    Returns:
        The gradients by slot, without inputs that no output depends on.

    Raises:
        NotFoundError: a function is not in the library, or an op in it has no gradient.
    """
    return _LoopGradients(back, node, slots, scope).build(slots)


class _LoopGradients:
    def __init__(self, back: Differentiation, node: Node, slots: Sequence[int], scope: str) -> None:
        self.back = back
        self.graph = back.graph
        self.node = node
        self.scope = scope
        self.cond, self.func = func_attr(node.node_def.attr, "cond"), func_attr(node.node_def.attr, "body")
        self.shapes = _invariant_shapes(node)
        self.body = DifferentiatedBody(self.graph, self.func, self.shapes, handles_of(node.inputs))
        self.keeps_all = keeps_all_values(back, node)
        self.active = self.active_variables(slots)
        if self.active:
            self.body.differentiate(back, self.active, self.active, keeps_all=self.keeps_all)
        self.zeros: dict[int, Tensor] = {}

    def active_variables(self, slots: Sequence[int]) -> list[int]:
        """The loop variables through which a wanted input affects an output with a gradient."""
        depends = self.body.reaching()
        influenced = set(slots)
        needed = set(arrived_outputs(self.back, self.node))
        sizes = (-1, -1)
        while sizes != (len(influenced), len(needed)):
            sizes = (len(influenced), len(needed))
            influenced |= {number for number, args in enumerate(depends) if args & influenced}
            needed |= {arg for number in needed for arg in depends[number]}
        return sorted(influenced & needed)

    def build(self, slots: Sequence[int]) -> dict[int, Tensor]:
        body, wanted = self.body, [slot for slot in slots if slot in self.active]
        if not wanted:
            return {}
        gradients = [gradient for gradient in body.gradients.values() if gradient is not None]
        nodes = body.needed_backward(gradients)
        taken = body.taken_from_forward(nodes, gradients)
        # Zeros have the shape of the incoming gradient. A variable whose shape changes is needed for that shape.
        for number in self.active:
            if body.gradients[number] is None:
                arg, ret = body.args[number], body.rets[number]
                self.zeros[number] = body.dys[number] if same_shape(arg, ret) else arg
        taken = list(dict.fromkeys([*taken, *[tensor for tensor in self.zeros.values() if tensor in body.args]]))
        invariant = [tensor for tensor in taken if is_invariant(body, tensor)]
        kept = [tensor for tensor in taken if not is_invariant(body, tensor)]
        count, *lists = self.handed_over(kept)
        made = self.backward(nodes, count, kept, lists, invariant)
        return {slot: keep_shape(self.graph, made.outputs[1 + self.active.index(slot)], self.node.inputs[slot]) for slot in wanted}

    # ---- forward -----------------------------------------------------------------------------------------------------

    def handed_over(self, kept: Sequence[Tensor]) -> list[Tensor]:
        """The number of iterations, and the lists of some values of the body."""
        controls, count = self.back.control_inputs(self.node), len(self.node.outputs)
        everything = AllValues(self.node) if self.keeps_all else None
        if everything is not None and everything.include(0, self.body, kept):
            made = everything.add(self.scope, controls)
            return [made.outputs[count], *everything.outputs(made, 0, self.body, kept)]
        return augment_loop(self.node, self.body, kept, self.scope, controls).outputs[count:]

    # ---- backward ----------------------------------------------------------------------------------------------------

    def backward(
        self, nodes: Sequence[Node], count: Tensor, kept: Sequence[Tensor], lists: Sequence[Tensor], invariant: Sequence[Tensor]
    ) -> Node:
        graph = self.graph
        name = graph.names.unique(f"{self.scope}{self.node.name.rpartition('/')[2]}")
        condition = FunctionGraph.within(graph, function_label(graph, name, "cond"))
        left = self.arguments(condition, kept, invariant)[0]
        add_returns(condition, [condition.apply_op("Greater", [left, 0], None, "rounds_left").outputs[0]])
        turn = FunctionGraph.within(graph, function_label(graph, name, "body"))
        add_returns(turn, self.one_round_back(turn, nodes, kept, invariant))
        functions = [define_body(condition, condition.label), define_body(turn, turn.label)]
        inputs = [
            self.back.forward_value(count),
            *[self.back.output_gradient(self.node, number, self.scope) for number in self.active],
            *[self.back.forward_value(tensor) for tensor in lists],
            *[self.back.forward_value(self.node.inputs[self.body.args.index(tensor)]) for tensor in invariant],
        ]
        return new_loop(self.node, name, [Func(function.name) for function in functions], inputs, {})

    def arguments(self, target: FunctionGraph, kept: Sequence[Tensor], invariant: Sequence[Tensor]) -> list[Tensor]:
        arguments = [target.argument("rounds", dtypes.int32, Shape([]))]
        arguments += [target.argument(dy.node.name, dy.dtype, dy.shape) for dy in self.body.dys.values()]
        arguments += [target.argument(f"list_{i}", dtypes.variant, Shape([])) for i in range(len(kept))]
        return arguments + [target.argument(tensor.node.name, tensor.dtype, tensor.shape) for tensor in invariant]

    def one_round_back(
        self, target: FunctionGraph, nodes: Sequence[Node], kept: Sequence[Tensor], invariant: Sequence[Tensor]
    ) -> list[Tensor]:
        body, copier = self.body, Copier(target)
        left, *rest = self.arguments(target, kept, invariant)
        dys, lists, constant = rest[: len(body.dys)], rest[len(body.dys) : len(body.dys) + len(kept)], rest[len(body.dys) + len(kept) :]
        copier.tensors.update(zip(body.dys.values(), dys, strict=True))
        copier.tensors.update(zip(invariant, constant, strict=True))
        shorter = []
        for handle, tensor in zip(lists, kept, strict=True):
            attrs = {"element_dtype": tensor.dtype.base}
            shape = constant_node(target, TensorValue(np.asarray(element_sizes(tensor.shape), np.int32)), "element_shape").outputs[0]
            popped = target.apply_op("TensorListPopBack", [handle, shape], attrs, "take")
            shorter.append(popped.outputs[0])
            copier.tensors[tensor] = popped.outputs[1]
            if tensor.shape.rank is not None:
                target.set_shape(popped.outputs[1], tensor.shape)
        copier.copy(nodes)
        gradients = []
        for number in self.active:
            gradient = body.gradients[number]
            if gradient is None:
                gradients.append(zeros_in(target, copier.tensor(self.zeros[number]), "zeros"))
            else:
                gradients.append(copier.tensor(gradient))
        less = target.apply_op("Sub", [left, 1], None, "rounds_before").outputs[0]
        return [less, *gradients, *shorter, *constant]


def _invariant_shapes(node: Node) -> list[Shape]:
    """The shapes of the loop variables in every iteration, possibly less specific than the outputs'."""
    context = node.graph.refiner.get_context(node)
    shape_fn = node.registration.shape_fn
    assert shape_fn is not None
    context.run(shape_fn)
    return [handle_to_shape(context.output(i)) for i in range(len(node.outputs))]
