"""The ways in which nodes that run functions are differentiated."""

from __future__ import annotations

from typing import Final
from weakref import WeakKeyDictionary

import msgspec

from graphcore.attrs import Func
from graphcore.errors import GraphError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph import Node
from graphcore.passes.functions.expand import called_function
from graphcore.passes.gradients.overrides import GRADIENT_OP

_BRANCHES: Final = frozenset({"If", "StatelessIf", "Case", "StatelessCase"})
_LOOPS: Final = frozenset({"While", "StatelessWhile"})
_BRANCHES_AND_LOOPS: Final = _BRANCHES | _LOOPS


def is_call(node: Node) -> bool:
    """True iff a node calls a function, by its name or by attr `f`."""
    return node.registration.is_function or node.op in {"PartitionedCall", "StatefulPartitionedCall"}


def is_branching(node: Node) -> bool:
    """True iff a node is an If or Case without recursion."""
    return node.op in _BRANCHES and not runs_itself(node)


def is_loop(node: Node) -> bool:
    """True iff a node is a While without recursion."""
    return node.op in _LOOPS and not runs_itself(node)


def is_differentiated_call(node: Node, *, simplify: bool = True) -> bool:
    """True iff a node is a call that is differentiated through its function; see `functional_gradient`."""
    if not is_call(node):
        return False
    library = node.graph.library
    try:
        name = called_function(node.node_def).name
    except GraphError:
        return False
    if name not in library or library.find_gradient(name):
        return False
    sort = _sort_of(library, name)
    return not sort.calls_itself and (simplify or not sort.is_plain)


class _Sort(msgspec.Struct, frozen=True):
    """The properties that decide how calls of a function are differentiated, at a version of its library."""

    version: int
    calls_itself: bool
    is_plain: bool


_sorts: Final[WeakKeyDictionary[FunctionLibraryDefinition, dict[str, _Sort]]] = WeakKeyDictionary()


def _sort_of(library: FunctionLibraryDefinition, name: str) -> _Sort:
    sorts = _sorts.setdefault(library, {})
    sort = sorts.get(name)
    if sort is None or sort.version != library.version:
        definition = library.find(name)
        assert definition is not None
        reachable = library.reachable_definitions(definition)
        ops = {inner.op for function in (definition, *reachable) for inner in function.node_def}
        overridden = any(GRADIENT_OP in inner.attr for function in (definition, *reachable) for inner in function.node_def)
        is_plain = not overridden and ops.isdisjoint(_BRANCHES_AND_LOOPS)
        is_plain = is_plain and not any(_has_state(library, op) or _drops_some(library, op) for op in ops)
        sort = sorts[name] = _Sort(library.version, name in reachable, is_plain)
    return sort


def runs_itself(node: Node) -> bool:
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
