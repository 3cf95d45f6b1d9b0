"""The cuts of gradients inside the functions of nodes, and in their own gradient functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from graphcore.attrs import Func
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph import Node, Tensor
from graphcore.passes.functions.function_body import function_def_to_body
from graphcore.passes.gradients.explanation.flow import Cut, Flow
from graphcore.passes.gradients.functions.functional import functional_gradient
from graphcore.passes.gradients.overrides import gradient_function
from graphcore.passes.gradients.trace import GradientTrace

BEFORE_ARGUMENTS: Final = {"If": 1, "StatelessIf": 1, "Case": 1, "StatelessCase": 1}
_MOST_REASONS = 4


def kept_inside(x: Tensor, flow: Flow, trace: GradientTrace) -> list[tuple[Node, int]]:
    """The nodes and inputs through which a gradient would reach `x` if their functions passed it on."""
    ahead = flow.paths_from(x)
    passed_on = {(node, slot) for parts in trace.contributions.values() for _, node, slot in parts}
    kept = []
    for node in sorted(flow.upstream, key=lambda node: node.id):
        if not any(tensor in trace.contributions for tensor in node.outputs):
            continue
        if functional_gradient(node) is None and gradient_function(node) is None:
            continue
        for slot in flow.slots.get(node, ()):
            source = node.inputs[slot]
            if source is not x and (source.node not in ahead or source.node is x.node):
                continue
            if (node, slot) not in passed_on:
                kept.append((node, slot))
    return kept


def cut_inside(x: Tensor, flow: Flow, node: Node, slot: int) -> Cut:
    """The cut at one of these inputs."""
    if gradient_function(node) is not None:
        text = f"has a gradient function of its own, which gives no gradient for its input {slot}"
        return Cut("custom gradient", node, text, flow.path_through(x, node, slot))
    reasons = list(dict.fromkeys(_reasons(node, slot)))[:_MOST_REASONS]
    text = f"runs functions in which no gradient comes to its input {slot}" + "".join([f"; {reason}" for reason in reasons])
    return Cut("inside a function", node, text, flow.path_through(x, node, slot))


def _reasons(node: Node, slot: int) -> Iterator[str]:
    library: FunctionLibraryDefinition = node.graph.library
    number = slot - BEFORE_ARGUMENTS.get(node.op, 0)
    for function in functions_of(node):
        definition = library.find(function.name)
        if definition is None:
            continue
        body = function_def_to_body(definition, function.attr, library)
        argument = body.arg_nodes[number].outputs[0]
        for ret in body.ret_nodes:
            for cut in Flow(ret.inputs[0]).cuts(argument):
                if cut.node is not None:
                    yield f"in {function.name}: '{cut.node.name}' {cut.reason}"


def functions_of(node: Node) -> Iterator[Func]:
    """The functions in the attrs of a node through which gradients go."""
    for name, value in node.node_def.attr.items():
        if name == "cond":  # the condition only decides the end of a loop and is not differentiated
            continue
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Func):
                yield item
