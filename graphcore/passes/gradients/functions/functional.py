"""The ops that are differentiated through their functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from graphcore.graph import Node, Tensor
from graphcore.passes.gradients.functions.branches import branch_gradients
from graphcore.passes.gradients.functions.calls import function_gradients
from graphcore.passes.gradients.functions.differentiation import Differentiation
from graphcore.passes.gradients.functions.gradient_calls import call_gradients, map_gradients
from graphcore.passes.gradients.functions.kinds import is_differentiated_call, runs_itself
from graphcore.passes.gradients.functions.map_gradients import MAP_GRADIENT
from graphcore.passes.gradients.functions.while_gradients import loop_gradients

FunctionalGradient = Callable[[Differentiation, Node, Sequence[int], str], dict[int, Tensor]]
"""Maps the backward pass, a node, its wanted inputs and a name prefix to the gradients of those inputs."""
_BY_OP: Final[dict[str, FunctionalGradient]] = {
    "If": branch_gradients,
    "StatelessIf": branch_gradients,
    "Case": branch_gradients,
    "StatelessCase": branch_gradients,
    "While": loop_gradients,
    "StatelessWhile": loop_gradients,
    "SymbolicGradient": call_gradients,
    MAP_GRADIENT: map_gradients,
}


def functional_gradient(node: Node, *, simplify: bool = True) -> FunctionalGradient | None:
    """The differentiation of a node through its functions; None if it uses the gradient of its op.

    Calls are differentiated so, unless the library names a gradient function for the callee, or the callee is recursive: then
    SymbolicGradient determines the depth at run time.

    Args:
        node: the node.
        simplify: False leaves calls to SymbolicGradient as well, except those of functions with state (the gradient must use the same random
            numbers), with branches and loops (their gradients here can be differentiated again), or with ops that have outputs without a
            gradient (which only this pass refuses).
    """
    gradient = _BY_OP.get(node.op)
    if gradient is not None:
        return None if runs_itself(node) else gradient
    return function_gradients if is_differentiated_call(node, simplify=simplify) else None
