"""What was made of a function holds as long as the function, those it calls and the gradients of their ops are what they were."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphcore.definitions import FunctionDef, NodeDef
from graphcore.functions import FunctionLibraryDefinition
from graphcore.registry import op_registry


class Origins:
    """What some functions were made of.

    Args:
        library: where all of them are.
        name: the function that they were made of.
        nodes: nodes that name them.
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
        """Whether all is as it was. What was made and has been taken back since, or swept away, is put into the library again."""
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
            return False  # another has its name
        for function in missing:
            library.add_function_def(function)
        self._version = library.version
        return True


def call_of(function: str) -> NodeDef:
    """What names a function."""
    return NodeDef("", function, (), "", {})


def _behind(library: FunctionLibraryDefinition, name: str) -> tuple[dict[str, FunctionDef], dict[str, str]]:
    functions = {function.name: function for function in library.reachable_definitions([call_of(name)])}
    return functions, {other: library.find_gradient(other) for other in functions}


def _registered(op: str) -> Any:
    return op_registry.look_up(op) if op in op_registry else None
