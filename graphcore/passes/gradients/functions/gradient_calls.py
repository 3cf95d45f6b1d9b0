"""Gradients of gradients of calls: the gradient becomes a function, differentiable like any other."""

from __future__ import annotations

from collections.abc import Sequence

from graphcore import dtypes
from graphcore.attrs import AttrValue, Func
from graphcore.definitions import FunctionDef
from graphcore.functions.library import FUNC_ATTR, GRADIENT_OP
from graphcore.graph import Node, Tensor
from graphcore.passes.functions.defining import define_body, function_label
from graphcore.passes.gradients.functions.calls import function_gradients
from graphcore.passes.gradients.functions.differentiation import Differentiation, keep_shape, new_node
from graphcore.passes.gradients.functions.instantiation import InstantiatedFunctions
from graphcore.passes.gradients.functions.map_gradients import function_of_map_gradient, has_no_rows, replace_map_gradients


def call_gradients(back: Differentiation, node: Node, slots: Sequence[int], scope: str) -> dict[int, Tensor]:
    """The gradients of some inputs of a SymbolicGradient.

    Args:
        back: the backward pass, with the gradients of all outputs.
        slots: the wanted inputs.
        scope: the prefix of the new nodes' names.

    Returns:
        The gradients by slot.

    Raises:
        NotFoundError: the function is not in the library, or an op in it has no gradient.
    """
    graph = back.graph
    functions = InstantiatedFunctions(graph.library)
    body = functions.without_gradients(functions.body_of(GRADIENT_OP, node.node_def.attr))
    has_maps = replace_map_gradients(body.graph)
    function = define_body(body.graph, function_label(graph, node.name, "function"))
    return _through_call(back, node, function, slots, scope) if has_maps else _gradients(back, node, function, slots, scope)


def map_gradients(back: Differentiation, node: Node, slots: Sequence[int], scope: str) -> dict[int, Tensor]:
    """The gradients of some inputs of a MapAccumulateGrad; see `call_gradients`."""
    if has_no_rows(node):
        return {slot: _zeros(back, node, slot, scope) for slot in slots}
    return _through_call(back, node, function_of_map_gradient(back.graph, node), slots, scope)


def _zeros(back: Differentiation, node: Node, slot: int, scope: str) -> Tensor:
    like, dtype = back.forward_value(node.inputs[slot]), node.inputs[slot].dtype.base
    name = back.graph.names.unique(f"{scope}zeros")
    return new_node(back.graph, node, name, "ZerosLike", [like], [dtype], {"T": dtype}).outputs[0]


def _through_call(back: Differentiation, node: Node, function: FunctionDef, slots: Sequence[int], scope: str) -> dict[int, Tensor]:
    """The gradients of a node that is equivalent to a call of `function` with loops. Builds that call beside the node."""
    types = tuple([tensor.dtype.base for tensor in node.outputs])
    attrs: dict[str, AttrValue] = {"f": Func(function.name), "Tin": tuple([tensor.dtype.base for tensor in node.inputs]), "Tout": types}
    call = new_node(back.graph, node, back.graph.names.unique(f"{scope}call"), "PartitionedCall", node.inputs, types, attrs)
    for mine, theirs in zip(node.outputs, call.outputs, strict=True):
        if mine in back.arrived:
            back.arrived[theirs] = back.arrived[mine]
    return function_gradients(back, call, slots, scope)


def _gradients(back: Differentiation, node: Node, function: FunctionDef, slots: Sequence[int], scope: str) -> dict[int, Tensor]:
    """The gradients of a node that is equivalent to a call of `function`."""
    dys = [back.output_gradient(node, index, scope) for index in range(len(node.outputs))]
    inputs = [*[back.forward_value(tensor) for tensor in node.inputs], *dys]
    wanted = tuple([dtypes.float32 if dtype.base is dtypes.resource else dtype.base for dtype in node.input_types])
    attrs: dict[str, AttrValue] = {
        "Tin": tuple([tensor.dtype.base for tensor in inputs]),
        "Tout": wanted,
        FUNC_ATTR: Func(function.name),
    }
    made = new_node(back.graph, node, back.graph.names.unique(f"{scope}gradient"), GRADIENT_OP, inputs, wanted, attrs)
    return {slot: keep_shape(back.graph, made.outputs[slot], node.inputs[slot]) for slot in slots}
