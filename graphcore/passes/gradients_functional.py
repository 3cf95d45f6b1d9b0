"""Which ops are differentiated through the functions that they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from graphcore.attrs import Func
from graphcore.errors import GraphError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph import Node, Tensor
from graphcore.passes.expand import called_function
from graphcore.passes.gradient_functions import Differentiation
from graphcore.passes.gradients_functional_branches import branch_gradients, is_call
from graphcore.passes.gradients_functional_loops import loop_gradients
from graphcore.passes.gradients_of_calls import call_gradients, map_gradients
from graphcore.passes.gradients_of_maps import MAP_GRADIENT

FunctionalGradient = Callable[[Differentiation, Node, Sequence[int], str], dict[int, Tensor]]
"""From the backward pass, a node, its wanted inputs and a name prefix to the gradients of those inputs that have one."""
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
_BRANCHES_AND_LOOPS: Final = _BY_OP.keys() - {"SymbolicGradient", MAP_GRADIENT}


def functional_gradient(node: Node) -> FunctionalGradient | None:
    """How a node is differentiated through the functions that it runs; None if it is by the gradient of its op.

    A call is where its function has state (what it drew at random must be what its gradient takes) or branches and loops (whose gradients
    here have gradients themselves), unless the library names a gradient function for it or it calls itself: then SymbolicGradient finds
    out at run time how deep it goes.
    """
    found = _BY_OP.get(node.op)
    if found is not None:
        return None if _runs_itself(node) else found
    if not is_call(node):
        return None
    library = node.graph.library
    try:
        name = called_function(node.node_def).name
    except GraphError:
        return None
    definition = library.find(name)
    if definition is None or library.find_gradient(name):
        return None
    reachable = library.reachable_definitions(definition)
    functions = [definition, *reachable]
    if name in reachable or any(library.find_gradient(function.name) for function in functions):
        return None
    ops = {inner.op for function in functions for inner in function.node_def}
    return branch_gradients if not ops.isdisjoint(_BRANCHES_AND_LOOPS) or any(_has_state(library, op) for op in ops) else None


def _runs_itself(node: Node) -> bool:
    """True iff a branch or body comes to run itself: the gradient that its op is registered with goes as deep as that goes when it runs."""
    library = node.graph.library
    named = [item for value in node.node_def.attr.values() for item in (value if isinstance(value, tuple) else (value,))]
    definitions = [library.find(item.name) for item in named if isinstance(item, Func)]
    return any(definition is not None and definition.name in library.reachable_definitions(definition) for definition in definitions)


def _has_state(library: FunctionLibraryDefinition, op: str) -> bool:
    try:
        return op not in library and op != "StatefulPartitionedCall" and library.look_up_op_def(op).is_stateful
    except GraphError:
        return False
