"""Origins of sizes in a jaxpr: the argument, constant or operation that each axis comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

Origins = tuple[str, ...]
"""For each axis the words for its origin: `axis 1 of argument x`."""

_REDUCTIONS: Final = ("reduce_", "arg")


class AxisOrigins:
    """The origins of the axes of the variables of a jaxpr.

    Args:
        line_of: gives the place in words of an equation, "" if it is unknown.
    """

    def __init__(self, line_of: Callable[[Any], str]) -> None:
        self._line_of = line_of
        self._of: dict[int, Origins] = {}

    def name(self, variable: Any, words: str) -> None:
        """Say that a variable is an argument or constant."""
        self._of[id(variable)] = tuple([f"axis {axis} of {words}" for axis in range(len(_shape(variable)))])

    def give(self, variable: Any, origins: Origins) -> None:
        """Say where the axes of a variable come from."""
        self._of[id(variable)] = origins

    def of(self, variable: Any) -> Origins:
        """The origins of the axes of a variable; "" where nothing is known."""
        return self._of.get(id(variable)) or ("",) * len(_shape(variable))

    def follow(self, equations: Sequence[Any]) -> None:
        """Follow equations, in their order."""
        for equation in equations:
            inner = _called(equation)
            if inner is not None:
                results = self._inside(inner, equation)
                for variable, origins in zip(equation.outvars, results, strict=False):
                    self._of[id(variable)] = origins
                continue
            for variable in equation.outvars:
                self._of[id(variable)] = self._through(equation, variable)

    def _inside(self, program: Any, equation: Any) -> list[Origins]:
        inner = AxisOrigins(self._line_of)
        for variable, operand in zip(program.invars, equation.invars, strict=False):
            inner._of[id(variable)] = self.of(operand)
        inner.follow(program.eqns)
        return [inner.of(variable) for variable in program.outvars]

    def _through(self, equation: Any, result: Any) -> Origins:
        name, params = str(equation.primitive.name), equation.params
        shape = _shape(result)
        made = f"made by {name}" + (f" ({where})" if (where := self._line_of(equation)) else "")
        places = _places(name, params, equation.invars, shape)
        if places is None:
            return tuple([self._elementwise(equation.invars, axis, shape) or made for axis in range(len(shape))])
        return tuple([made if place is None else self.of(equation.invars[place[0]])[place[1]] or made for place in places])

    def _elementwise(self, inputs: Sequence[Any], axis: int, shape: Sequence[Any]) -> str:
        for variable in inputs:
            own = _shape(variable)
            if len(own) == len(shape) and own[axis] == shape[axis] and self.of(variable)[axis]:
                return self.of(variable)[axis]
        return ""


def _places(name: str, params: Mapping[str, Any], inputs: Sequence[Any], shape: Sequence[Any]) -> list[tuple[int, int] | None] | None:
    """For each axis of a result the number of the input and its axis; None for a new one. None as a whole: as an elementwise op."""
    first = _shape(inputs[0]) if inputs else ()
    if name == "transpose":
        return [(0, axis) for axis in params["permutation"]]
    if name == "broadcast_in_dim":
        kept = {result: own for own, result in enumerate(params["broadcast_dimensions"]) if first[own] == shape[result]}
        return [(0, kept[axis]) if axis in kept else None for axis in range(len(shape))]
    if name == "squeeze":
        return [(0, axis) for axis in range(len(first)) if axis not in params["dimensions"]]
    if name.startswith(_REDUCTIONS) and "axes" in params:
        return [(0, axis) for axis in range(len(first)) if axis not in params["axes"]]
    if name == "dot_general":
        (contracted, contracted_right), (batch, batch_right) = params["dimension_numbers"]
        left = [(0, axis) for axis in range(len(first)) if axis not in contracted and axis not in batch]
        right = [(1, axis) for axis in range(len(_shape(inputs[1]))) if axis not in contracted_right and axis not in batch_right]
        return [*[(0, axis) for axis in batch], *left, *right]
    if name == "reshape":
        return _reshaped(first, shape)
    if name == "concatenate":
        return [None if axis == params["dimension"] else (0, axis) for axis in range(len(shape))]
    if name in {"slice", "dynamic_slice", "pad"} and len(first) == len(shape):
        return [(0, axis) if first[axis] == shape[axis] else None for axis in range(len(shape))]
    return None


def _reshaped(before: Sequence[Any], after: Sequence[Any]) -> list[tuple[int, int] | None]:
    """The axes that a reshape keeps: equal ones from both ends."""
    ranges: list[tuple[int, int] | None] = [None] * len(after)
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        ranges[head] = 0, head
        head += 1
    tail = 1
    while tail <= min(len(before), len(after)) - head and before[-tail] == after[-tail]:
        ranges[-tail] = 0, len(before) - tail
        tail += 1
    return ranges


def _called(equation: Any) -> Any:
    """The jaxpr of an equation that only calls it."""
    for key in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        value = equation.params.get(key)
        inner = getattr(value, "jaxpr", value)
        if hasattr(inner, "eqns") and len(inner.invars) == len(equation.invars) and len(inner.outvars) == len(equation.outvars):
            return None if str(equation.primitive.name) in {"scan", "while", "cond"} else inner
    return None


def _shape(variable: Any) -> tuple[Any, ...]:
    return tuple(getattr(variable.aval, "shape", ()))
