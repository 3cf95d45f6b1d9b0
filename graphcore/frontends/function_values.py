"""The values of variables that Python functions use."""

from __future__ import annotations

from collections.abc import Iterator
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, Final

_LIBRARIES: Final = ("site-packages", "dist-packages", "<frozen")


def is_of_user(function: object) -> bool:
    """True for a Python function that no installed package has."""
    return isinstance(function, FunctionType) and not any(part in function.__code__.co_filename for part in _LIBRARIES)


def values_used_by(function: object, seen: set[int] | None = None) -> Iterator[Any]:
    """The values of variables that a function of the user, and those that it uses, take from around them."""
    seen = set() if seen is None else seen
    if isinstance(function, MethodType):
        yield function.__self__
        function = function.__func__
    if not isinstance(function, FunctionType) or not is_of_user(function) or id(function) in seen:
        return
    seen.add(id(function))
    cells = [cell.cell_contents for cell in function.__closure__ or () if is_filled(cell)]
    variables = function.__globals__
    for value in [*cells, *[variables[name] for name in global_names(function.__code__) if name in variables]]:
        yield value
        yield from values_used_by(value, seen)


def global_names(code: CodeType) -> Iterator[str]:
    """The names of variables and attributes that a code and the functions within it use."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from global_names(inner)


def is_filled(cell: CellType) -> bool:
    """True iff the variable of a closure has a value."""
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises here
    except ValueError:
        return False
    return True
