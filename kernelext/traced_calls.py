"""Calls in `%graph model(x)`: their parts, and what a picture of them depends on."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import FunctionType, ModuleType
from typing import Any, Final

from graphcore.frontends.frontend import Call

_PLAIN: Final = (bool, int, float, str, bytes, type(None))
_MAX_DEPTH: Final = 6
_MAX_ITEMS: Final = 1000


def call_of(text: str, variables: Mapping[str, Any]) -> Call | None:
    """The call in an expression, its function and arguments evaluated; None for another expression."""
    found = ast.parse(text.strip(), mode="eval").body
    if not isinstance(found, ast.Call):
        return None
    function = value_of(ast.unparse(found.func), variables)
    if isinstance(function, type):
        return None
    found.func = ast.Name("__call")
    call: Call = value_of(ast.unparse(found), {**variables, "__call": lambda *args, **kwargs: Call(function, args, kwargs)})
    return call


def differentiated(text: str, variables: Mapping[str, Any]) -> Call | None:
    """The call in an expression, to be traced with its gradients; None for another expression.

    Calls within it, as in `loss(model(x))`, are part of it: the variables that it uses are the arguments.
    """
    tree = ast.parse(text.strip(), mode="eval").body
    if not isinstance(tree, ast.Call):
        return None
    used = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in variables]
    values = {name: variables[name] for name in dict.fromkeys(used) if not isinstance(variables[name], ModuleType | type)}
    function = value_of(f"lambda {', '.join(values)}: {ast.unparse(tree)}", variables)
    return Call(function, (), values, gradients=True)


def value_of(text: str, variables: Mapping[str, Any]) -> Any:
    """The value of an expression of the user."""
    return eval(text, dict(variables))  # noqa: S307 - the user has typed it, as in a cell


def definitions_in(variables: Mapping[str, Any]) -> object:
    """A key that changes with the functions, classes and plain values of a notebook."""
    found: list[tuple[str, object]] = []
    for name, value in variables.items():
        if name.startswith("_"):
            continue
        if isinstance(value, FunctionType | type):
            found.append((name, id(value)))
        elif isinstance(value, _PLAIN):
            found.append((name, value))
    return tuple(found)


def state_of(call: Call) -> object:
    """A key that changes with the modules, types and shapes of a call."""
    seen: dict[int, int] = {}
    function = () if call.gradients else (call.function,)  # that of an expression is made anew each time
    return tuple([_state(value, seen, 0) for value in (*function, *call.args, *call.kwargs.items())])


def _state(value: Any, seen: dict[int, int], depth: int) -> object:
    if isinstance(value, _PLAIN):
        return type(value).__name__, value
    if isinstance(value, ModuleType):
        return id(value)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return str(value.dtype), tuple(value.shape), bool(getattr(value, "requires_grad", False))
    if id(value) in seen or depth > _MAX_DEPTH:
        return id(value)
    seen[id(value)] = len(seen)
    if isinstance(value, Mapping):
        return tuple([(str(key), _state(item, seen, depth + 1)) for key, item in list(value.items())[:_MAX_ITEMS]])
    if isinstance(value, list | tuple | set):
        return tuple([_state(item, seen, depth + 1) for item in list(value)[:_MAX_ITEMS]])
    if isinstance(value, type) or callable(getattr(value, "__get__", None)):
        return id(value)
    fields = getattr(value, "__dict__", None)
    return id(type(value)), None if not isinstance(fields, dict) else _state(fields, seen, depth)
