"""Gradients of While: a loop over the iterations in reverse, which takes forward values from lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphcore import dtypes
from graphcore.attrs import AttrValue, Func, TensorValue
from graphcore.dtypes import DType
from graphcore.graph import FunctionGraph, GradientRecord, Node, Tensor, constant_node
from graphcore.inference import handle_to_shape
from graphcore.opset.control_flow.function_calls import func_attr
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
        self.body = DifferentiatedBody(self.graph, self.func, self.shapes)
        self.active = self.active_variables(slots)
        if self.active:
            self.body.differentiate(back, self.active, self.active)
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
        given = [gradient for gradient in body.gradients.values() if gradient is not None]
        nodes = body.needed_backward(given)
        taken = body.taken_from_forward(nodes, given)
        # Zeros have the shape of the incoming gradient. A variable whose shape changes is needed for that shape.
        for number in self.active:
            if body.gradients[number] is None:
                arg, ret = body.args[number], body.rets[number]
                self.zeros[number] = body.dys[number] if same_shape(arg, ret) else arg
        taken = list(dict.fromkeys([*taken, *[tensor for tensor in self.zeros.values() if tensor in body.args]]))
        invariant = [tensor for tensor in taken if self.is_invariant(tensor)]
        kept = [tensor for tensor in taken if not self.is_invariant(tensor)]
        count, lists = self.augment(kept)
        made = self.backward(nodes, count, kept, lists, invariant)
        return {slot: keep_shape(self.graph, made.outputs[1 + self.active.index(slot)], self.node.inputs[slot]) for slot in wanted}

    def is_invariant(self, tensor: Tensor) -> bool:
        """True iff a tensor of the body is loop-invariant: an argument that is returned unchanged."""
        return is_argument(tensor) and self.body.rets[self.body.args.index(tensor)] is tensor

    # ---- forward -----------------------------------------------------------------------------------------------------

    def augment(self, kept: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """The augmented loop. Returns it with the number of iterations and the lists."""
        graph, node = self.graph, self.node
        name = graph.names.unique(f"{self.scope}forward")
        more: list[tuple[str, DType]] = [("round", dtypes.int32), *[(f"list_{i}", dtypes.variant) for i in range(len(kept))]]
        test = DifferentiatedBody(graph, self.cond, self.shapes)
        condition = FunctionGraph.within(graph, function_label(graph, name, "cond"))
        copier = test.copy_forward(condition)
        for label, dtype in more:
            condition.argument(label, dtype, Shape([]))
        add_returns(condition, [copier.tensor(ret) for ret in test.rets])
        turn = FunctionGraph.within(graph, function_label(graph, name, "body"))
        copier = self.body.copy_forward(turn)
        number, *lists = [turn.argument(label, dtype, Shape([])) for label, dtype in more]
        results = [copier.tensor(ret) for ret in self.body.rets]
        results.append(turn.apply_op("AddV2", [number, 1], None, "next_round").outputs[0])
        for handle, tensor in zip(lists, kept, strict=True):
            results.append(turn.apply_op("TensorListPushBack", [handle, copier.tensor(tensor)], None, "keep").outputs[0])
        add_returns(turn, results)
        functions = [
            define_body(condition, condition.label, []),
            define_body(turn, turn.label, [copier.nodes[control] for control in self.body.control_rets]),
        ]
        starts = [self.constant(0, "first_round"), *[self.empty_list(tensor) for tensor in kept]]
        attrs: dict[str, AttrValue] = {FORWARD_OF: forward_of(node, [self.cond, self.func])}
        made = self.loop(name, [Func(function.name) for function in functions], [*node.inputs, *starts], attrs)
        outputs = made.outputs[len(node.outputs) :]
        return outputs[0], outputs[1:]

    def empty_list(self, tensor: Tensor) -> Tensor:
        shape = self.constant(_sizes(tensor.shape), "element_shape")
        limit = self.constant(-1, "any_number")
        attrs: dict[str, AttrValue] = {"element_dtype": tensor.dtype.base, "shape_type": dtypes.int32}
        name = self.graph.names.unique(f"{self.scope}empty_list")
        return new_node(self.graph, self.node, name, "EmptyTensorList", [shape, limit], [dtypes.variant], attrs).outputs[0]

    def constant(self, value: Any, name: str) -> Tensor:
        unique = self.graph.names.unique(f"{self.scope}{name}")
        with self.graph.control_dependencies(None), self.graph.control_dependencies(self.back.control_inputs(self.node)):
            made = constant_node(self.graph, TensorValue(np.asarray(value, np.int32)), f"{unique}/")
        self.graph.gradient_records[made.name] = GradientRecord(self.node.name, None, {}, name)
        return made.outputs[0]

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
        return self.loop(name, [Func(function.name) for function in functions], inputs, {})

    def arguments(self, target: FunctionGraph, kept: Sequence[Tensor], invariant: Sequence[Tensor]) -> list[Tensor]:
        found = [target.argument("rounds", dtypes.int32, Shape([]))]
        found += [target.argument(dy.node.name, dy.dtype, dy.shape) for dy in self.body.dys.values()]
        found += [target.argument(f"list_{i}", dtypes.variant, Shape([])) for i in range(len(kept))]
        return found + [target.argument(tensor.node.name, tensor.dtype, tensor.shape) for tensor in invariant]

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
            shape = constant_node(target, TensorValue(np.asarray(_sizes(tensor.shape), np.int32)), "element_shape").outputs[0]
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

    def loop(self, name: str, functions: Sequence[Func], inputs: Sequence[Tensor], attrs: dict[str, AttrValue]) -> Node:
        library = self.graph.library
        stateful = any(library.look_up_op_def(function.name).is_stateful for function in functions)
        types = tuple([tensor.dtype.base for tensor in inputs])
        attrs = {
            "T": types,
            "cond": functions[0],
            "body": functions[1],
            "output_shapes": (),
            "parallel_iterations": self.node.node_def.attr.get("parallel_iterations", 10),
            "_lower_using_switch_merge": True,
            **attrs,
        }
        return new_node(self.graph, self.node, name, "While" if stateful else "StatelessWhile", inputs, types, attrs)


def _invariant_shapes(node: Node) -> list[Shape]:
    """The shapes of the loop variables in every iteration, possibly less specific than the outputs'."""
    context = node.graph.refiner.get_context(node)
    shape_fn = node.registration.shape_fn
    assert shape_fn is not None
    context.run(shape_fn)
    return [handle_to_shape(context.output(i)) for i in range(len(node.outputs))]


def _sizes(shape: Shape) -> list[int] | int:
    return -1 if shape.rank is None else [-1 if size is None else size for size in shape.as_list()]
