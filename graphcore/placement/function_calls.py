"""Calls of functions as placement sees them: which function a node calls, and the body of that."""

from __future__ import annotations

import msgspec

from graphcore.attrs import Func
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph import Node
from graphcore.passes.functions.function_body import FunctionBody, function_def_to_body
from graphcore.plumbing import CALL

FUNCTION_ATTR = "f"


class CallStack(msgspec.Struct, frozen=True):
    """The functions whose calls lead to a function body, the outermost first."""

    functions: tuple[Func, ...] = ()

    def push(self, function: Func) -> CallStack:
        """The stack with one more call."""
        return CallStack((*self.functions, function))

    def __contains__(self, function: Func) -> bool:
        return any(outer.name == function.name for outer in self.functions)

    def __str__(self) -> str:
        return " -> ".join([function.name for function in self.functions])


def called_function(node: Node) -> Func | None:
    """The function that a node calls, None for other nodes."""
    if node.registration.is_function:
        return Func(node.op, dict(node.attr))
    function = node.attr.get(FUNCTION_ATTR) if node.op in CALL else None
    return function if isinstance(function, Func) else None


def is_exempt(node: Node) -> bool:
    """True iff a node only forwards its resources to a function whose body is placed on its own: a call."""
    return called_function(node) is not None


def called_body(function: Func, library: FunctionLibraryDefinition) -> FunctionBody:
    """The body of a function that a node calls.

    Raises:
        NotFoundError: the library has no such function.
        InvalidArgumentError: it cannot be instantiated with the attrs.
    """
    fdef = library.find(function.name)
    if fdef is None:
        library.look_up(function.name)  # raises the error of an unknown function
        raise AssertionError(function.name)
    return function_def_to_body(fdef, function.attr, library)
