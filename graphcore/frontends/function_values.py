"""The values of variables that Python functions use."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, Final

_LIBRARIES: Final = ("site-packages", "dist-packages", "<frozen")
_MAX_WRAPPERS: Final = 8
_OF_GLOBALS: Final = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"})


def is_of_user(function: object) -> bool:
    """True for a Python function that no installed package has."""
    return isinstance(function, FunctionType) and not any(part in function.__code__.co_filename for part in _LIBRARIES)


def is_wrapper(function: object, depth: int = 0) -> bool:
    """True for a function of an installed package around one of the user's, as decorators make it."""
    if not isinstance(function, FunctionType) or is_of_user(function) or depth > _MAX_WRAPPERS:
        return False
    return any(is_of_user(getattr(value, "__func__", value)) or is_wrapper(value, depth + 1) for value in _closure_of(function))


def _closure_of(function: FunctionType) -> list[Any]:
    return [cell.cell_contents for cell in function.__closure__ or () if is_filled(cell)]


def values_used_by(function: object, seen: set[int] | None = None) -> Iterator[Any]:
    """The values of variables that a function of the user, and those that it uses, take from around them."""
    seen = set() if seen is None else seen
    if isinstance(function, MethodType):
        yield function.__self__
        function = function.__func__
    if not isinstance(function, FunctionType) or id(function) in seen:
        return
    seen.add(id(function))
    cells = _closure_of(function)
    if is_wrapper(function):
        for value in cells:
            yield from values_used_by(value, seen)
    if not is_of_user(function):
        return
    variables = function.__globals__
    for value in [*cells, *[variables[name] for name in global_names(function.__code__) if name in variables]]:
        yield value
        yield from values_used_by(value, seen)


def global_names(code: CodeType) -> Iterator[str]:
    """The names of global variables that a code and the functions within it use.

    Attributes are none: `nn` in `jax.nn.relu` is no module of this name that the user has imported.
    """
    yield from [instruction.argval for instruction in dis.get_instructions(code) if instruction.opname in _OF_GLOBALS]
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
