"""Common parts of functions under TensorFlow 1's names: calls of one op, arguments with two names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor, get_default_graph

F = TypeVar("F", bound=Callable[..., Any])


def apply_one(op: str, inputs: Sequence[Any], name: str | None, attrs: Mapping[str, Any] | None = None) -> Tensor:
    """The output of a new node of type `op`, called after its op unless it gets a name."""
    return get_default_graph().apply_op(op, inputs, attrs, name).outputs[0]


def either(new_name: str, new: Any, old_name: str, old: Any) -> Any:
    """The one of two names of an argument that is given, None for neither.

    Raises:
        InvalidArgumentError: both are given.
    """
    if new is not None and old is not None:
        raise InvalidArgumentError(f"Cannot specify both '{old_name}' and '{new_name}'")
    return old if new is None else new


def named(function: F, name: str, doc: str) -> F:
    """A function of a family, with the name and the docstring that `help` and tracebacks show.

    Args:
        function: made anew for each member of the family, in the module that has its name.
        name: its public name.
        doc: its docstring.
    """
    function.__name__ = function.__qualname__ = name
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=name)
    function.__doc__ = doc
    return function
