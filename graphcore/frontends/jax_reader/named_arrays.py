"""Names of the arrays that a function holds: in its closure, partial arguments, and globals."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from itertools import islice
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

_MAX_DEPTH: Final = 8
_MAX_ARRAYS: Final = 20_000


def named_arrays(function: Any) -> dict[int, str]:
    """Names such as `params['w']` by the ids of arrays."""
    names: dict[int, str] = {}
    for name, array in arrays_by_name(function).items():
        names.setdefault(id(array), name)
    return names


def arrays_by_name(function: Any) -> dict[str, Any]:
    """Arrays by names such as `params['w']`."""
    items = (item for name, value in _held(function, 0) for item in _arrays(value, name, 0))
    arrays: dict[str, Any] = {}
    for array, path in islice(items, _MAX_ARRAYS):
        arrays.setdefault(path, array)
    return arrays


def _held(function: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """The values that a function holds, by its names."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(function, functools.partial):
        yield from function.keywords.items()
        yield from [(f"argument_{number}", value) for number, value in enumerate(function.args)]
        yield from _held(function.func, depth + 1)
        return
    if isinstance(function, MethodType):
        yield "self", function.__self__
        yield from _held(function.__func__, depth + 1)
        return
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None:
        yield from _held(wrapped, depth + 1)
    if not isinstance(function, FunctionType):
        return
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=False):
        value = _content(cell)
        yield name, value
        if isinstance(value, FunctionType | functools.partial | MethodType):
            yield from _held(value, depth + 1)
    for name in _names_in(function.__code__, 0):
        if name in function.__globals__:
            value = function.__globals__[name]
            yield name, value
            if isinstance(value, FunctionType) and value.__globals__ is function.__globals__ and depth < 3:
                yield from _held(value, depth + 1)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None


def _names_in(code: CodeType, depth: int) -> list[str]:
    """The global names that code reads, that of functions in it included."""
    inner = [name for part in code.co_consts if isinstance(part, CodeType) and depth < _MAX_DEPTH for name in _names_in(part, depth + 1)]
    return [*code.co_names, *inner]


def _arrays(value: Any, path: str, depth: int) -> Iterator[tuple[Any, str]]:
    if isinstance(value, ModuleType | type) or depth > _MAX_DEPTH:
        return
    if hasattr(type(value), "get_raw_value"):
        value = value.get_raw_value()  # of a variable of Flax's NNX
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        yield value, path
    elif isinstance(value, Mapping):
        for key, item in list(value.items())[:_MAX_ARRAYS]:
            yield from _arrays(item, f"{path}[{key!r}]", depth + 1)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value[:_MAX_ARRAYS]):
            yield from _arrays(item, f"{path}[{number}]", depth + 1)
    elif not isinstance(value, FunctionType) and isinstance(getattr(value, "__dict__", None), dict):
        for key, item in vars(value).items():
            yield from _arrays(item, f"{path}.{key}", depth + 1)
