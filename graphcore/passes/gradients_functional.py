"""Which ops are differentiated through the functions that they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from graphcore.graph import Node, Tensor
from graphcore.passes.gradient_functions import Differentiation
from graphcore.passes.gradients_functional_branches import branch_gradients
from graphcore.passes.gradients_functional_loops import loop_gradients
from graphcore.passes.gradients_of_calls import call_gradients

FUNCTIONAL_GRADIENTS: Final[dict[str, Callable[[Differentiation, Node, Sequence[int], str], dict[int, Tensor]]]] = {
    "If": branch_gradients,
    "StatelessIf": branch_gradients,
    "Case": branch_gradients,
    "StatelessCase": branch_gradients,
    "While": loop_gradients,
    "StatelessWhile": loop_gradients,
    "SymbolicGradient": call_gradients,
}
"""By op: from the backward pass, a node, its wanted inputs and a name prefix to the gradients of those inputs that have one."""
