"""Gradients of gradients of calls: the gradient becomes a function of its own, so that it can be differentiated like any other."""

from __future__ import annotations

from collections.abc import Sequence

from graphcore import dtypes
from graphcore.attrs import AttrValue, Func
from graphcore.functions.library import FUNC_ATTR, GRADIENT_OP
from graphcore.graph import Node, Tensor
from graphcore.passes.defining import define_body, function_label
from graphcore.passes.gradient_functions import Differentiation, keep_shape, new_node
from graphcore.passes.instantiation import InstantiatedFunctions


def call_gradients(back: Differentiation, node: Node, slots: Sequence[int], scope: str) -> dict[int, Tensor]:
    """The gradients of some inputs of a SymbolicGradient.

    Args:
        back: the backward pass, in which gradients have arrived at all outputs that get any.
        slots: the inputs that are wanted.
        scope: the prefix of the new nodes' names.

    Returns:
        By slot the gradient.

    Raises:
        NotFoundError: the function is not in the library, or an op in it has no gradient.
    """
    graph = back.graph
    functions = InstantiatedFunctions(graph.library)
    body = functions.without_gradients(functions.body_of(GRADIENT_OP, node.node_def.attr))
    function = define_body(body.graph, function_label(graph, node.name, "function"))
    given = [back.output_gradient(node, index, scope) for index in range(len(node.outputs))]
    inputs = [*[back.here(tensor) for tensor in node.inputs], *given]
    wanted = tuple([dtypes.float32 if dtype.base is dtypes.resource else dtype.base for dtype in node.input_types])
    attrs: dict[str, AttrValue] = {
        "Tin": tuple([tensor.dtype.base for tensor in inputs]),
        "Tout": wanted,
        FUNC_ATTR: Func(function.name),
    }
    made = new_node(graph, node, graph.names.unique(f"{scope}gradient"), GRADIENT_OP, inputs, wanted, attrs)
    return {slot: keep_shape(graph, made.outputs[slot], node.inputs[slot]) for slot in slots}
