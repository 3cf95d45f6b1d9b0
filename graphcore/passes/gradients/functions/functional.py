"""The ops that are differentiated through their functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final
from weakref import WeakKeyDictionary

import msgspec

from graphcore.attrs import Func
from graphcore.errors import GraphError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph import Node, Tensor
from graphcore.passes.functions.expand import called_function
from graphcore.passes.gradients.functions.branches import branch_gradients
from graphcore.passes.gradients.functions.calls import function_gradients, is_call
from graphcore.passes.gradients.functions.differentiation import Differentiation
from graphcore.passes.gradients.functions.gradient_calls import call_gradients, map_gradients
from graphcore.passes.gradients.functions.loops import loop_gradients
from graphcore.passes.gradients.functions.map_gradients import MAP_GRADIENT

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
_BRANCHES_AND_LOOPS: Final = _BY_OP.keys() - {"SymbolicGradient", MAP_GRADIENT}


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
    if name not in library or library.find_gradient(name):
        return None
    sort = _sort_of(library, name)
    return None if sort.calls_itself or (sort.is_plain and not simplify) else function_gradients


class _Sort(msgspec.Struct, frozen=True):
    """The properties that decide how calls of a function are differentiated, at a version of its library."""

    version: int
    calls_itself: bool
    is_plain: bool


_sorts: Final[WeakKeyDictionary[FunctionLibraryDefinition, dict[str, _Sort]]] = WeakKeyDictionary()


def _sort_of(library: FunctionLibraryDefinition, name: str) -> _Sort:
    known = _sorts.setdefault(library, {})
    found = known.get(name)
    if found is None or found.version != library.version:
        definition = library.find(name)
        assert definition is not None
        reachable = library.reachable_definitions(definition)
        ops = {inner.op for function in (definition, *reachable) for inner in function.node_def}
        is_plain = ops.isdisjoint(_BRANCHES_AND_LOOPS) and not any(_has_state(library, op) or _drops_some(library, op) for op in ops)
        found = known[name] = _Sort(library.version, name in reachable, is_plain)
    return found


def _runs_itself(node: Node) -> bool:
    """True iff a branch or body is recursive: its registered gradient then recurs at run time."""
    library = node.graph.library
    named = [item for value in node.node_def.attr.values() for item in (value if isinstance(value, tuple) else (value,))]
    definitions = [library.find(item.name) for item in named if isinstance(item, Func)]
    return any(definition is not None and definition.name in library.reachable_definitions(definition) for definition in definitions)


def _has_state(library: FunctionLibraryDefinition, op: str) -> bool:
    try:
        return op not in library and op != "StatefulPartitionedCall" and library.look_up_op_def(op).is_stateful
    except GraphError:
        return False


def _drops_some(library: FunctionLibraryDefinition, op: str) -> bool:
    try:
        return bool(library.look_up(op).no_gradient_through)
    except GraphError:
        return False
