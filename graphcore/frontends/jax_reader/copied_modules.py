"""Modules of Flax's NNX around a function: a traced call works on copies, which it may change."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial, wraps
from types import CellType, FunctionType
from typing import Any, Final

from graphcore.frontends.function_values import global_names, is_filled, is_of_user, values_used_by

_MAX_DEPTH: Final = 6


def with_copied_modules(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with copies of the modules of NNX that it uses made anew in each call.

    A module may change only in the trace in which it was made: BatchNorm's statistics, the counts of Dropout.
    """
    nnx: Any = sys.modules.get("flax.nnx")
    if nnx is None or not any(_holds(value, nnx, 0) for value in values_used_by(function)):
        return function

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return _Copies(nnx).of(function)(*args, **kwargs)

    return called


class _Copies:
    """The copies for one call."""

    def __init__(self, nnx: Any) -> None:
        self._nnx = nnx
        self._made: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        """A module, a function that uses one, or a list or table of such as a copy; another value as it is."""
        if id(value) in self._made:
            return self._made[id(value)]
        if isinstance(value, self._nnx.Pytree):
            definition, state = self._nnx.split(value)
            variables = sys.modules["jax"].tree.map(lambda array: array, state)  # new ones with the same arrays
            self._made[id(value)] = self._nnx.merge(definition, variables)
            return self._made[id(value)]
        if isinstance(value, FunctionType) and is_of_user(value):
            return self._of_function(value)
        if type(value) is partial:
            return partial(self.of(value.func), *map(self.of, value.args), **{name: self.of(item) for name, item in value.keywords.items()})
        if type(value) in {list, tuple} and _holds(value, self._nnx, 0):
            return type(value)([self.of(item) for item in value])
        if type(value) is dict and _holds(value, self._nnx, 0):
            return {key: self.of(item) for key, item in value.items()}
        return value

    def _of_function(self, function: FunctionType) -> Any:
        variables = self._made.setdefault(id(function.__globals__), dict(function.__globals__))
        cells = tuple([self._made.setdefault(id(cell), CellType()) for cell in function.__closure__ or ()])
        made = FunctionType(function.__code__, variables, function.__name__, self.of(function.__defaults__), cells)
        made.__kwdefaults__ = self.of(function.__kwdefaults__)
        made.__dict__.update(function.__dict__)
        self._made[id(function)] = made
        for cell, twin in zip(function.__closure__ or (), cells, strict=True):
            if is_filled(cell) and not is_filled(twin):
                twin.cell_contents = cell.cell_contents
                twin.cell_contents = self.of(cell.cell_contents)
        for name in global_names(function.__code__):
            if name in variables and variables[name] is function.__globals__.get(name):
                variables[name] = self.of(variables[name])
        return made


def _holds(value: Any, nnx: Any, depth: int) -> bool:
    """True for a module, and for lists and tables with one."""
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return isinstance(value, nnx.Pytree) or (depth < _MAX_DEPTH and any(_holds(item, nnx, depth + 1) for item in list(items)))
