"""Programs of JAX as one list of equations with their values and cotangents."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.jax_reader.differentiated import is_floating
from graphcore.frontends.jax_reader.equations import CALLS, only_body, opened, results_of
from graphcore.frontends.jax_reader.messages import tidied
from graphcore.frontends.jax_reader.programs import JaxprReader
from graphcore.passes.gradients.explanation.paths import MOST_COUNTED
from graphcore.source import SourceLocation


class EvaluatedEquation:
    """An equation, outside of the functions that only hold it.

    Attributes:
        eqn: the equation as JAX has it.
        primitive: the name of its primitive.
        inputs, outputs: keys of the values that it takes and gives.
        label: the name under which users know it.
        source: the user's line.
    """

    def __init__(self, eqn: Any, inputs: Sequence[int], outputs: Sequence[int], source: SourceLocation | None) -> None:
        self.eqn = eqn
        self.inputs = inputs
        self.outputs = outputs
        self.source = source
        self.primitive = str(eqn.primitive.name)
        self.label = _name_of(eqn) or self.primitive

    def run(self, values: Sequence[Any]) -> list[Any]:
        """Compute its results.

        Raises:
            InvalidArgumentError: it calls functions outside of JAX that have effects, or fails.
        """
        try:
            return results_of(self.eqn, values)
        except Exception as error:
            raise InvalidArgumentError(f"'{self.label}' cannot be computed by itself: {tidied(error)}") from error

    def pull_back(self, values: Sequence[Any], cotangents: Sequence[Any]) -> dict[int, Any]:
        """The cotangents of its floating inputs, by their numbers, for those of its floating results."""
        jax: Any = sys.modules["jax"]
        numbers = [number for number, value in enumerate(values) if is_floating(value)]

        def of_floating(*floating: Any) -> list[Any]:
            whole = list(values)
            for number, value in zip(numbers, floating, strict=True):
                whole[number] = value
            return [value for value in self.run(whole) if is_floating(value)]

        _, backward = jax.vjp(of_floating, *[jax.numpy.asarray(values[number]) for number in numbers])
        return dict(zip(numbers, backward(list(cotangents)), strict=True))


class EvaluatedProgram:
    """A program with the values of one run.

    Args:
        closed: the program.
        values: the values of its arguments.

    Attributes:
        equations: its equations, in their order.
        value: the values, by keys.
        arguments: the keys of its arguments.
        results: the keys of its results.
        cotangent: the gradient of the sum of all floating results by each value that it arrives at, once `differentiate` was called.
        arrived: for each equation, by its place, the cotangents of its inputs.
    """

    def __init__(self, closed: Any, values: Sequence[Any]) -> None:
        jaxpr, constants = opened(closed)
        self.equations: list[EvaluatedEquation] = []
        self.value: dict[int, Any] = {}
        self.cotangent: dict[int, Any] = {}
        self.arrived: dict[int, dict[int, Any]] = {}
        self._reader = JaxprReader()
        self._kept: list[Any] = [closed]
        self._by_object: dict[int, list[int]] = {}
        keys: dict[Any, int] = {}
        for variable, value in [*zip(jaxpr.constvars, constants, strict=True), *zip(jaxpr.invars, values, strict=True)]:
            keys[variable] = self._new(value)
        self.arguments = [keys[variable] for variable in jaxpr.invars]
        self.results = self._add(jaxpr, keys, None)

    def keys_of(self, value: object) -> list[int]:
        """The keys under which an array is used: as a constant, or within an equation."""
        return self._by_object.get(id(value), [])

    def differentiate(self) -> None:
        """Compute all cotangents."""
        jax: Any = sys.modules["jax"]
        for key in self.results:
            if is_floating(self.value[key]):
                self._sum(key, jax.numpy.ones_like(self.value[key]))
        for place in reversed(range(len(self.equations))):
            equation = self.equations[place]
            floating = [key for key in equation.outputs if is_floating(self.value[key])]
            if not any(key in self.cotangent for key in floating) or not any(is_floating(self.value[key]) for key in equation.inputs):
                continue
            cotangents = [self.cotangent[key] if key in self.cotangent else jax.numpy.zeros_like(self.value[key]) for key in floating]
            arrived = equation.pull_back([self.value[key] for key in equation.inputs], cotangents)
            self.arrived[place] = arrived
            for number, cotangent in arrived.items():
                self._sum(equation.inputs[number], cotangent)

    def _sum(self, key: int, cotangent: Any) -> None:
        self.cotangent[key] = self.cotangent[key] + cotangent if key in self.cotangent else cotangent

    def _new(self, value: Any) -> int:
        key = len(self.value)
        self.value[key] = value
        self._kept.append(value)
        self._by_object.setdefault(id(value), []).append(key)
        return key

    def _add(self, jaxpr: Any, keys: dict[Any, int], around: SourceLocation | None) -> list[int]:
        """Add the equations of a jaxpr, and compute them.

        Args:
            jaxpr: the jaxpr.
            keys: the keys of its arguments and constants.
            around: the line that calls it, for equations without one of their own.

        Returns:
            The keys of its results.
        """

        def key_of(variable: Any) -> int:
            return self._new(variable.val) if hasattr(variable, "val") else keys[variable]

        for eqn in jaxpr.eqns:
            inputs = [key_of(variable) for variable in eqn.invars]
            called = only_body(eqn) if str(eqn.primitive.name) in CALLS else None
            if called is not None:
                body, constants = opened(called[1])
                inner_keys = dict(zip(body.invars, inputs, strict=True))
                inner_keys.update({variable: self._new(value) for variable, value in zip(body.constvars, constants, strict=True)})
                outputs = self._add(body, inner_keys, self.source(eqn) or around)
            else:
                outputs = self._add_equation(eqn, inputs, around)
            keys.update(zip(eqn.outvars, outputs, strict=True))
        return [key_of(variable) for variable in jaxpr.outvars]

    def source(self, eqn: Any) -> SourceLocation | None:
        """The user's line that made an equation, None if it is unknown."""
        frames = self._reader.frames(eqn.source_info.traceback)
        return SourceLocation(frames[-1].file, frames[-1].line) if frames else None

    def _add_equation(self, eqn: Any, inputs: list[int], around: SourceLocation | None) -> list[int]:
        equation = EvaluatedEquation(eqn, inputs, (), self.source(eqn) or around)
        if eqn.primitive.name == "io_callback":
            raise InvalidArgumentError("The function calls Python by jax.experimental.io_callback, which an explanation does not do")
        if eqn.effects and not eqn.outvars:
            return []  # it prints, perhaps: an explanation does not
        outputs = [self._new(value) for value in equation.run([self.value[key] for key in inputs])]
        equation.outputs = outputs
        self.equations.append(equation)
        return outputs


def _name_of(eqn: Any) -> str:
    """The name of the function that an equation calls, "" for another one."""
    inner = eqn.params.get("call_jaxpr") or eqn.params.get("fun_jaxpr")
    name = getattr(getattr(getattr(inner, "jaxpr", inner), "debug_info", None), "func_name", "")
    return str(eqn.params.get("name") or name).strip("_")


def finite(value: Any) -> bool:
    """True iff all elements are finite."""
    return bool(np.all(np.isfinite(np.asarray(value).astype(np.complex128))))


def zero(value: Any) -> bool:
    """True iff all elements are zero."""
    return not np.any(np.asarray(value))


def paths_from(program: EvaluatedProgram, keys: Sequence[int]) -> tuple[set[int], set[int]]:
    """The keys that depend on some keys, and those that the results depend on."""
    behind = set(keys)
    for equation in program.equations:
        if behind.intersection(equation.inputs):
            behind.update(equation.outputs)
    before = set(program.results)
    for equation in reversed(program.equations):
        if before.intersection(equation.outputs):
            before.update(equation.inputs)
    return behind, before


def equations_between(program: EvaluatedProgram, keys: Sequence[int]) -> Iterator[int]:
    """The places of the equations on ways from some keys to the results, the last first."""
    behind, before = paths_from(program, keys)
    for place in reversed(range(len(program.equations))):
        equation = program.equations[place]
        if behind.intersection(equation.inputs) and before.intersection(equation.outputs):
            yield place


def ways(program: EvaluatedProgram, keys: Sequence[int]) -> tuple[int, list[str]]:
    """The number of ways from some keys to the results that a gradient takes, and a shortest one."""
    counts, shortest = dict.fromkeys(keys, 1), {key: list[str]() for key in keys}
    for place, equation in enumerate(program.equations):
        taken = [key for number, key in enumerate(equation.inputs) if key in counts and number in program.arrived.get(place, ())]
        if not taken:
            continue
        path = [*min([shortest[key] for key in taken], key=len), equation.label]
        for key in equation.outputs:
            counts[key], shortest[key] = min(sum(counts[key] for key in taken), MOST_COUNTED), path
    reached = [key for key in program.results if key in counts]
    return sum(counts[key] for key in reached), min([shortest[key] for key in reached], key=len, default=[])
