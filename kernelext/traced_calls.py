"""Calls in `%graph model(x)`: their parts, and what a picture of them depends on."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from inspect import Parameter, Signature
from types import FunctionType, ModuleType
from typing import Any, Final

from graphcore.frontends.frontend import Call
from graphcore.frontends.torch_call import uses_torch
from graphcore.frontends.torch_reader.objects import is_class

_PLAIN: Final = (bool, int, float, str, bytes, type(None))
_MAX_DEPTH: Final = 6
_MAX_ITEMS: Final = 1000


class Expression:
    """An expression of the user as a function of the variables in it.

    Args:
        tree: the expression.
        variables: the variables of the user.
    """

    __slots__ = ("__signature__", "_code", "_variables", "values")
    __name__ = "expression"

    def __init__(self, tree: ast.expr, variables: Mapping[str, Any]) -> None:
        used = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in variables]
        self.values = {name: variables[name] for name in dict.fromkeys(used) if not isinstance(variables[name], ModuleType | type)}
        self.__signature__ = Signature([Parameter(name, Parameter.KEYWORD_ONLY) for name in self.values])
        self._code = compile(ast.Expression(tree), "<string>", "eval")
        self._variables = variables

    def __call__(self, **values: Any) -> Any:
        """Evaluate it with other values of its variables."""
        return eval(self._code, {**self._variables, **values})  # noqa: S307 - the user has typed it, as in a cell

    def call(self, *, gradients: bool) -> Call:
        """Its evaluation, to be traced."""
        return Call(self, (), self.values, gradients=gradients)


def call_of(text: str, variables: Mapping[str, Any], *, gradients: bool = False) -> Call | None:
    """The call in an expression, None for another expression.

    Its function and arguments are evaluated. Where that would call a module of PyTorch, as in `loss(model(x), y)`, the whole is what is called.

    Args:
        gradients: True to trace the gradients, too: of the whole.
    """
    found = ast.parse(text.strip(), mode="eval").body
    if not isinstance(found, ast.Call):
        return None
    whole = Expression(found, variables)
    computes = _calls_within(found) and any(is_class(value, "Module", "torch.nn") for value in whole.values.values())
    if computes or (gradients and uses_torch(whole.call(gradients=True))):
        return whole.call(gradients=gradients)
    function = value_of(ast.unparse(found.func), variables)
    if isinstance(function, type):
        return None
    found.func = ast.Name("__call")
    call: Call = value_of(ast.unparse(found), {**variables, "__call": lambda *args, **kwargs: Call(function, args, kwargs, gradients)})
    return call


def _calls_within(call: ast.Call) -> bool:
    """True iff the arguments of a call are results of others."""
    return any(isinstance(node, ast.Call) for value in (*call.args, *call.keywords) for node in ast.walk(value))


def value_of(text: str, variables: Mapping[str, Any]) -> Any:
    """The value of an expression of the user."""
    return eval(text, dict(variables))  # noqa: S307 - the user has typed it, as in a cell


def definitions_in(variables: Mapping[str, Any]) -> object:
    """A key that changes with the functions, classes, plain values and shapes of arrays of a notebook."""
    found: list[tuple[str, object]] = []
    for name, value in variables.items():
        if name.startswith("_"):
            continue
        if isinstance(value, FunctionType | type):
            found.append((name, id(value)))
        elif isinstance(value, _PLAIN):
            found.append((name, value))
        elif hasattr(value, "dtype") and isinstance(getattr(value, "shape", None), tuple):
            found.append((name, (str(value.dtype), value.shape)))
    return tuple(found)


def state_of(call: Call) -> object:
    """A key that changes with the modules, types and shapes of a call."""
    seen: dict[int, int] = {}
    return tuple([_state(value, seen, 0) for value in (call.function, *call.args, *call.kwargs.items())])


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
    fields = None if isinstance(value, Expression) else getattr(value, "__dict__", None)
    return id(type(value)), None if not isinstance(fields, dict) else _state(fields, seen, depth)
