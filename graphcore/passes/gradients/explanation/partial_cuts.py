"""The places inside branches, loops and calls where gradients stop on some ways."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from graphcore.errors import GraphError
from graphcore.graph import Node, Tensor
from graphcore.graph.model.search import reachable
from graphcore.passes.functions.expand import called_function
from graphcore.passes.functions.function_body import FunctionBody, function_def_to_body
from graphcore.passes.gradients.explanation.cuts_in_functions import BEFORE_ARGUMENTS, functions_of
from graphcore.passes.gradients.explanation.flow import Cut, CutKind, Flow
from graphcore.passes.gradients.functions.functional import functional_gradient
from graphcore.passes.gradients.functions.kinds import is_call
from graphcore.plumbing import WHILE

_TOLD: Final[frozenset[CutKind]] = frozenset(
    {"stop_gradient", "not differentiable", "custom gradient", "forbidden", "not registered", "dtype"}
)
_MOST_REASONS: Final = 4
_DEEPEST: Final = 6


def partial_cut(node: Node, slots: Sequence[int], x: Tensor, flow: Flow) -> Cut | None:
    """The cuts of some ways from inputs of a node to its outputs, inside its functions; None for none.

    Args:
        node: a node on a path from `x`.
        slots: the inputs by which gradients reach `x`.
        x: the tensor to differentiate by.
        flow: the flow of gradients around the node.
    """
    outputs = [number for number, tensor in enumerate(node.outputs) if tensor in flow.reached]
    reasons = list(dict.fromkeys(_reasons(node, slots, outputs, 0)))
    if not reasons:
        return None
    more = f"; and {len(reasons) - _MOST_REASONS} more" if len(reasons) > _MOST_REASONS else ""
    text = "runs functions in which gradients stop on some ways: " + "; ".join(reasons[:_MOST_REASONS]) + more
    return Cut("inside a function", node, text, flow.path_through(x, node, slots[0]))


def _reasons(node: Node, slots: Sequence[int], outputs: Sequence[int], depth: int) -> Iterator[str]:
    if depth > _DEEPEST or functional_gradient(node) is None:
        return
    library = node.graph.library
    first = BEFORE_ARGUMENTS.get(node.op, 0)
    for function in [called_function(node.node_def)] if is_call(node) else functions_of(node):
        definition = library.find(function.name)
        if definition is None:
            continue
        try:
            body = function_def_to_body(definition, function.attr, library)
        except GraphError:  # running it reports the error
            continue
        arguments = [body.arg_nodes[slot - first].outputs[0] for slot in slots if 0 <= slot - first < len(body.arg_nodes)]
        returns = list(outputs)
        if node.op in WHILE:
            arguments, returns = _influenced(body, arguments), list(range(len(body.ret_nodes)))
        for number in returns:
            yield from _on_ways_to(body.ret_nodes[number].inputs[0], arguments, function.name, depth)


def _influenced(body: FunctionBody, arguments: Sequence[Tensor]) -> list[Tensor]:
    """The loop variables that change with some of them, in any round."""
    influenced = set(arguments)
    while True:
        nodes = reachable(
            [tensor.node for tensor in influenced], lambda node: [consumer for consumer, slot in node.consumers() if slot >= 0]
        )
        more = {
            body.arg_nodes[number].outputs[0] for number, ret in enumerate(body.ret_nodes) if ret in nodes and number < len(body.arg_nodes)
        } - influenced
        if not more:
            return [arg.outputs[0] for arg in body.arg_nodes if arg.outputs[0] in influenced]
        influenced |= more


def _on_ways_to(ret: Tensor, arguments: Sequence[Tensor], name: str, depth: int) -> Iterator[str]:
    flow = Flow(ret)
    for argument in arguments:
        ahead = flow.paths_from(argument)
        for cut in flow.cuts(argument) if argument in flow.consumers else ():
            if cut.node is not None and cut.kind in _TOLD:
                yield f"in {name}: '{cut.node.name}' {cut.reason}"
        for node in sorted(flow.upstream, key=lambda node: node.id):
            reached = [number for number, tensor in enumerate(node.outputs) if tensor in flow.reached]
            inner = [slot for slot, tensor in enumerate(node.inputs) if tensor is argument or tensor.node in ahead]
            if node in ahead and reached and inner:
                yield from _reasons(node, inner, reached, depth + 1)
