"""Lists, tables and objects around a function, kept as they are while it is looked at."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any, Final

_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None), type, FunctionType, MethodType, ModuleType)
_MAX_DEPTH: Final = 3
_MAX_ITEMS: Final = 1000
_INSTALLED: Final = ("site-packages", "dist-packages")
Way = Callable[[], object]


def ways_back(values: list[Any]) -> list[Way]:
    """Functions that set back what others may change: short lists, the user's objects, variables.

    Args:
        values: functions of the user, and the values that they use.
    """
    ways: list[Way] = []
    seen: set[int] = set()
    for value in values:
        if isinstance(value, FunctionType):
            ways += _of_variables(value)
        else:
            ways += _of_value(value, seen, 0)
    return ways


def way_of_container(value: Any) -> Way | None:
    """A function that sets a list, table, set or queue back; None for another value."""
    if isinstance(value, dict):
        return partial(_set_back_dict, value, list(value.items()))
    if isinstance(value, list):
        return partial(_set_back_list, value, list(value))
    if isinstance(value, set):
        return partial(_set_back_set, value, set(value))
    if isinstance(value, deque):
        return partial(_set_back_deque, value, list(value))
    return None


def _of_variables(function: FunctionType) -> Iterator[Way]:
    variables = function.__globals__
    for name in _names_written(function):
        if name in variables:
            yield partial(variables.__setitem__, name, variables[name])
        else:
            yield partial(variables.pop, name, None)
    for cell in function.__closure__ or ():
        try:
            yield partial(_set_back_cell, cell, cell.cell_contents)
        except ValueError:  # it is empty
            continue


def _names_written(function: FunctionType) -> list[str]:
    """The global variables that a function assigns."""
    import dis  # noqa: PLC0415 - seldom needed

    return [str(step.argval) for step in dis.get_instructions(function) if step.opname in {"STORE_GLOBAL", "DELETE_GLOBAL"}]


def _of_value(value: Any, seen: set[int], depth: int) -> Iterator[Way]:
    if isinstance(value, _PLAIN) or id(value) in seen or depth > _MAX_DEPTH:
        return
    seen.add(id(value))
    way = way_of_container(value)
    if way is not None:
        if len(value) > _MAX_ITEMS:
            return
        yield way
        for item in list(value.values() if isinstance(value, dict) else value):
            yield from _of_value(item, seen, depth + 1)
    elif _is_of_user(type(value)) and isinstance(fields := getattr(value, "__dict__", None), dict):
        yield partial(_set_back_dict, fields, list(fields.items()))
        for item in list(fields.values()):
            yield from _of_value(item, seen, depth + 1)


def _is_of_user(kind: type) -> bool:
    """True for a class of the user, of which no base is one of a framework."""
    return all(base is object or _is_own(base.__module__) for base in kind.__mro__)


def _is_own(module: str) -> bool:
    file = getattr(sys.modules.get(module), "__file__", None)
    return module == "__main__" or (
        isinstance(file, str) and not any(word in file for word in _INSTALLED) and not file.startswith(sys.base_prefix)
    )


def _set_back_cell(cell: CellType, content: object) -> None:
    cell.cell_contents = content


def _set_back_dict(table: dict[Any, Any], items: list[tuple[Any, Any]]) -> None:
    if len(table) != len(items) or any(
        key is not other or value is not item for (key, value), (other, item) in zip(table.items(), items, strict=True)
    ):
        table.clear()
        table.update(items)


def _set_back_list(values: list[Any], items: list[Any]) -> None:
    if len(values) != len(items) or any(value is not item for value, item in zip(values, items, strict=True)):
        values[:] = items


def _set_back_set(values: set[Any], items: set[Any]) -> None:
    if values != items:
        values.clear()
        values.update(items)


def _set_back_deque(values: deque[Any], items: list[Any]) -> None:
    if len(values) != len(items) or any(value is not item for value, item in zip(values, items, strict=True)):
        values.clear()
        values.extend(items)
