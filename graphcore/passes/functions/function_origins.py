"""Dependencies of generated functions on other functions and on gradients of ops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphcore.definitions import FunctionDef, NodeDef
from graphcore.functions import FunctionLibraryDefinition
from graphcore.registry import op_registry


class Origins:
    """The functions and gradients from which something was generated.

    Args:
        library: the library with all of them.
        name: the differentiated function.
        nodes: nodes that name generated functions.
    """

    __slots__ = ("_creators", "_functions", "_gradients", "_made", "_name", "_version")

    def __init__(self, library: FunctionLibraryDefinition, name: str, nodes: Iterable[NodeDef]) -> None:
        self._name = name
        self._functions, self._gradients = _behind(library, name)
        ops = dict.fromkeys([node.op for function in self._functions.values() for node in function.node_def])
        self._creators = [(entry, entry.has_gradient, entry.gradient) for op in ops if (entry := _registered(op)) is not None]
        self._made = [function for function in library.reachable_definitions(nodes) if function.name not in self._functions]
        self._version = library.version

    def are_current(self, library: FunctionLibraryDefinition) -> bool:
        """True iff none of the origins has changed. Generated functions missing in the library are restored."""
        if any(entry.has_gradient is not has or entry.gradient is not creator for entry, has, creator in self._creators):
            return False
        if self._version == library.version:
            return True
        functions, gradients = _behind(library, self._name)
        if gradients != self._gradients or functions.keys() != self._functions.keys():
            return False
        if any(self._functions[name] is not function for name, function in functions.items()):
            return False
        missing = [function for function in self._made if library.find(function.name) is not function]
        if any(function.name in library for function in missing):
            return False  # its name belongs to another function now
        for function in missing:
            library.add_function_def(function)
        self._version = library.version
        return True


def call_of(function: str) -> NodeDef:
    """The function named by a call."""
    return NodeDef("", function, (), "", {})


def _behind(library: FunctionLibraryDefinition, name: str) -> tuple[dict[str, FunctionDef], dict[str, str]]:
    functions = {function.name: function for function in library.reachable_definitions([call_of(name)])}
    return functions, {other: library.find_gradient(other) for other in functions}


def _registered(op: str) -> Any:
    return op_registry.look_up(op) if op in op_registry else None
