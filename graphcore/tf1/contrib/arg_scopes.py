"""`arg_scope`: default arguments of functions, for a `with` block."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from graphcore.brief import brief
from graphcore.errors import FailedPreconditionError, InvalidArgumentError
from graphcore.graph import Graph, get_default_graph
from graphcore.graph.graph import outermost
from graphcore.support.critical_section import critical_contextmanager

__all__ = ["add_arg_scope", "arg_scope", "arg_scope_func_key", "arg_scoped_arguments", "current_arg_scope", "has_arg_scope"]

Scope = dict[str, dict[str, Any]]
"""The default arguments of functions, by their keys."""

_Function = TypeVar("_Function", bound=Callable[..., Any])
_KEY: Final = "_arg_scope_key"
_ARGUMENTS: Final = "_arg_scope_arguments"
_open: Final[WeakKeyDictionary[Graph, list[Scope]]] = WeakKeyDictionary()
"""The scopes that are open in a graph, the innermost last."""


def add_arg_scope(func: _Function) -> _Function:
    """A decorator: the function takes default arguments from the `arg_scope` around its call."""
    key = arg_scope_func_key(func)

    @functools.wraps(func)
    def with_defaults(*args: Any, **kwargs: Any) -> Any:
        scope = _stack()[-1]
        # An argument that is given by position has no default.
        defaults = {name: value for name, value in scope.get(key, {}).items() if name not in positional[: len(args)]}
        return func(*args, **defaults | kwargs)

    positional = _named_arguments(func)
    setattr(with_defaults, _KEY, key)
    setattr(with_defaults, _ARGUMENTS, positional)
    return with_defaults  # type: ignore[return-value]  # the wrapper takes what the function takes


@critical_contextmanager
def arg_scope(list_ops_or_scope: Any, **kwargs: Any) -> Iterator[Scope]:
    """Within the block, functions have other default arguments.

    Args:
        list_ops_or_scope: functions decorated by `add_arg_scope`, or a scope that an earlier block gave, to enter it again.
        kwargs: the default arguments; each function must take them all.

    Yields:
        The scope, with the defaults of the blocks around it.

    Raises:
        InvalidArgumentError: a function is not decorated or does not take an argument, or there are arguments beside a scope.
    """
    stack = _stack()
    if isinstance(list_ops_or_scope, Mapping):
        if kwargs:
            raise InvalidArgumentError("arg_scope: required no further arguments to enter a scope again, got " + ", ".join(kwargs))
        scope = {key: dict(defaults) for key, defaults in list_ops_or_scope.items()}
    else:
        scope = _with_defaults(stack[-1], list_ops_or_scope, kwargs)
    stack.append(scope)
    try:
        yield scope
    finally:
        if stack[-1] is not scope:
            raise FailedPreconditionError("arg_scope: blocks must be left in the order they were entered")
        stack.pop()


def _with_defaults(around: Scope, functions: Any, kwargs: dict[str, Any]) -> Scope:
    if not isinstance(functions, list | tuple):
        raise InvalidArgumentError(f"arg_scope: required a list of functions or a scope, got {brief(functions)}")
    scope = {key: dict(defaults) for key, defaults in around.items()}
    for func in functions:
        if not has_arg_scope(func):
            name = getattr(func, "__name__", brief(func))
            raise InvalidArgumentError(f"arg_scope: required functions decorated by add_arg_scope, got {name}")
        scope.setdefault(arg_scope_func_key(func), {}).update(kwargs)
    return scope


def arg_scope_func_key(op: Any) -> str:
    """The key of a function in scopes."""
    return str(getattr(op, _KEY, None) or f"{getattr(op, '__module__', '')}.{getattr(op, '__qualname__', repr(op))}")


def arg_scoped_arguments(func: Any) -> tuple[str, ...]:
    """The arguments of a decorated function that have defaults.

    Raises:
        InvalidArgumentError: the function is not decorated.
    """
    if not has_arg_scope(func):
        raise InvalidArgumentError(f"required a function decorated by add_arg_scope, got {brief(func)}")
    without = len(inspect.unwrap(func).__defaults__ or ())
    return tuple(getattr(func, _ARGUMENTS)[-without:]) if without else ()


def current_arg_scope() -> Scope:
    """The defaults within the blocks around the call."""
    return _stack()[-1]


def has_arg_scope(func: Any) -> bool:
    """True for a function decorated by `add_arg_scope`."""
    return hasattr(func, _KEY)


def _stack() -> list[Scope]:
    return _open.setdefault(outermost(get_default_graph()), [{}])


def _named_arguments(func: Any) -> tuple[str, ...]:
    code = getattr(inspect.unwrap(func), "__code__", None)
    return () if code is None else tuple(code.co_varnames[: code.co_argcount])
