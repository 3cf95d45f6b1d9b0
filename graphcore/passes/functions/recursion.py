"""Recursive functions, which are never inlined."""

from __future__ import annotations

from collections.abc import Container

from graphcore.attrs import Attrs, Func
from graphcore.definitions import NodeDef
from graphcore.errors import UnimplementedError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.passes.functions.expand import FunctionBodies, called_function
from graphcore.passes.functions.function_body import FunctionBody
from graphcore.passes.functions.inline import CALL_OPS


class InlinableFunctions:
    """Provides the bodies of functions that may be inlined, and refuses recursive functions.

    Attributes:
        functions: the source of all bodies.
    """

    def __init__(self, functions: FunctionBodies) -> None:
        self.functions = functions
        self.library = functions.library
        self._recursive: dict[FunctionBody, bool] = {}

    def body_of(self, name: str, attrs: Attrs) -> FunctionBody:
        """See `InstantiatedFunctions.body_of`.

        Raises:
            UnimplementedError: the function is recursive.
        """
        body = self.functions.body_of(name, attrs)
        if body not in self._recursive:
            self._recursive[body] = calls_itself(self.library, body)
        if self._recursive[body]:
            raise UnimplementedError(f"Function {name} calls itself and stays a call", op=name)
        return body


def calls_itself(library: FunctionLibraryDefinition, body: FunctionBody) -> bool:
    """True iff the function is recursive, directly or through others."""
    calls = [
        node.node_def
        for node in body.graph.op_nodes()
        if node.op in CALL_OPS or node.registration.is_function or _named_functions(node.attr)
    ]
    if not calls:
        return False
    if body.fdef.name:
        return body.fdef.name in library.reachable_definitions(calls)
    return any(_is_reachable(library, name) for name in {name for call in calls for name in _callees(call)})


def _is_reachable(library: FunctionLibraryDefinition, name: str) -> bool:
    """True iff function `name` is reachable from itself."""
    definition = library.find(name)
    reachable: Container[str] = () if definition is None else library.reachable_definitions(definition)
    return name in reachable


def _callees(call: NodeDef) -> list[str]:
    named = _named_functions(call.attr)
    return [function.name for function in named] if named else [called_function(call).name]


def _named_functions(attrs: Attrs) -> list[Func]:
    """The functions named in attrs: the branches of If, condition and body of While."""
    named: list[Func] = []
    for value in attrs.values():
        if isinstance(value, Func):
            named.append(value)
        elif isinstance(value, tuple):
            named += [item for item in value if isinstance(item, Func)]
    return named
