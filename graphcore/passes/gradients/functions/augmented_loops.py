"""Augmented forms of While: they count the iterations and append values of their body to lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphcore import dtypes
from graphcore.attrs import AttrValue, Func, TensorValue
from graphcore.dtypes import DType
from graphcore.graph import FunctionGraph, GradientRecord, Node, Tensor, constant_node
from graphcore.opset.control_flow.function_calls import func_attr
from graphcore.passes.functions.defining import define_body, function_label
from graphcore.passes.gradients.functions.differentiation import (
    FORWARD_OF,
    DifferentiatedBody,
    add_returns,
    forward_of,
    handles_of,
    is_argument,
    new_node,
)
from graphcore.shapes import Shape


def augment_loop(
    node: Node,
    body: DifferentiatedBody,
    kept: Sequence[Tensor],
    scope: str,
    controls: Sequence[Node] = (),
    *,
    shared: bool = False,
) -> Node:
    """Add the augmented form of a While to its graph.

    Args:
        node: the While.
        body: its body.
        kept: the values of the body to append to lists.
        scope: the prefix of the new nodes' names.
        controls: the control inputs of nodes without inputs.
        shared: True if all augmented forms of `node` are equal, and share their functions.

    Returns:
        The augmented node: after the outputs of `node` it returns the number of iterations, and the lists.
    """
    graph = node.graph
    cond, func = func_attr(node.node_def.attr, "cond"), func_attr(node.node_def.attr, "body")
    name = graph.names.unique(f"{scope}forward")
    more: list[tuple[str, DType]] = [("round", dtypes.int32), *[(f"list_{i}", dtypes.variant) for i in range(len(kept))]]
    test = DifferentiatedBody(graph, cond, [arg.shape for arg in body.args], handles_of(body.args))
    condition = FunctionGraph.within(graph, f"{cond.name}_forward" if shared else function_label(graph, name, "cond"))
    copier = test.copy_forward(condition)
    for label, dtype in more:
        condition.argument(label, dtype, Shape([]))
    add_returns(condition, [copier.tensor(ret) for ret in test.rets])
    turn = FunctionGraph.within(graph, f"{func.name}_forward" if shared else function_label(graph, name, "body"))
    copier = body.copy_forward(turn)
    number, *lists = [turn.argument(label, dtype, Shape([])) for label, dtype in more]
    results = [copier.tensor(ret) for ret in body.rets]
    results.append(turn.apply_op("AddV2", [number, 1], None, "next_round").outputs[0])
    for handle, tensor in zip(lists, kept, strict=True):
        results.append(turn.apply_op("TensorListPushBack", [handle, copier.tensor(tensor)], None, "keep").outputs[0])
    add_returns(turn, results)
    functions = [
        define_body(condition, condition.label, [], shared=shared),
        define_body(turn, turn.label, [copier.nodes[control] for control in body.control_rets], shared=shared),
    ]
    starts = [_constant(node, 0, f"{scope}first_round", controls), *[_empty_list(node, tensor, scope, controls) for tensor in kept]]
    attrs: dict[str, AttrValue] = {FORWARD_OF: forward_of(node, [cond, func])}
    return new_loop(node, name, [Func(function.name) for function in functions], [*node.inputs, *starts], attrs)


def new_loop(node: Node, name: str, functions: Sequence[Func], inputs: Sequence[Tensor], attrs: Mapping[str, AttrValue]) -> Node:
    """A While beside `node`, with condition and body `functions`."""
    library = node.graph.library
    stateful = any(library.look_up_op_def(function.name).is_stateful for function in functions)
    types = tuple([tensor.dtype.base for tensor in inputs])
    attrs = {
        "T": types,
        "cond": functions[0],
        "body": functions[1],
        "output_shapes": (),
        "parallel_iterations": node.node_def.attr.get("parallel_iterations", 10),
        "_lower_using_switch_merge": True,
        **attrs,
    }
    return new_node(node.graph, node, name, "While" if stateful else "StatelessWhile", inputs, types, attrs)


def is_invariant(body: DifferentiatedBody, tensor: Tensor) -> bool:
    """True iff a tensor of a body is loop-invariant: an argument that is returned unchanged."""
    return is_argument(tensor) and body.rets[body.args.index(tensor)] is tensor


def element_sizes(shape: Shape) -> list[int] | int:
    """The sizes of the elements of a list, -1 for unknown ones."""
    return -1 if shape.rank is None else [-1 if size is None else size for size in shape.as_list()]


def _empty_list(node: Node, tensor: Tensor, scope: str, controls: Sequence[Node]) -> Tensor:
    shape = _constant(node, element_sizes(tensor.shape), f"{scope}element_shape", controls)
    limit = _constant(node, -1, f"{scope}any_number", controls)
    attrs: dict[str, AttrValue] = {"element_dtype": tensor.dtype.base, "shape_type": dtypes.int32}
    name = node.graph.names.unique(f"{scope}empty_list")
    return new_node(node.graph, node, name, "EmptyTensorList", [shape, limit], [dtypes.variant], attrs).outputs[0]


def _constant(node: Node, value: Any, name: str, controls: Sequence[Node]) -> Tensor:
    graph = node.graph
    unique = graph.names.unique(name)
    with graph.control_dependencies(None), graph.control_dependencies(list(controls)):
        made = constant_node(graph, TensorValue(np.asarray(value, np.int32)), f"{unique}/")
    graph.gradient_records[made.name] = GradientRecord(node.name, None, {}, name.rpartition("/")[2])
    return made.outputs[0]
