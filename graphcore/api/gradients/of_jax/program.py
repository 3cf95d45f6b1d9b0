"""Programs of JAX as one list of equations with their values and cotangents."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.jax_reader.differentiated import is_floating
from graphcore.frontends.jax_reader.messages import tidied
from graphcore.frontends.jax_reader.programs import JaxprReader, opened
from graphcore.passes.gradients.explanation.paths import MOST_COUNTED
from graphcore.source import SourceLocation

_INLINED: Final = frozenset(["jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint"])


class Step:
    """An equation, outside of the functions that only hold it.

    Attributes:
        equation: the equation.
        primitive: the name of its primitive.
        inputs, outputs: keys of the values that it takes and gives.
        label: the name under which users know it.
        source: the user's line.
    """

    def __init__(self, equation: Any, inputs: Sequence[int], outputs: Sequence[int], source: SourceLocation | None) -> None:
        self.equation = equation
        self.inputs = inputs
        self.outputs = outputs
        self.source = source
        self.primitive = str(equation.primitive.name)
        self.label = _name_of(equation) or self.primitive

    def run(self, values: Sequence[Any]) -> list[Any]:
        """Compute its results.

        Raises:
            InvalidArgumentError: it calls functions outside of JAX that have effects, or fails.
        """
        try:
            return self._run(values)
        except Exception as error:
            raise InvalidArgumentError(f"'{self.label}' cannot be computed by itself: {tidied(error)}") from error

    def _run(self, values: Sequence[Any]) -> list[Any]:
        primitive = self.equation.primitive
        bind_params = primitive.get_bind_params(self.equation.params)
        functions, params = (
            bind_params if isinstance(bind_params, tuple) else ((), bind_params)
        )  # older versions of JAX give functions apart
        result = primitive.bind(*functions, *values, **params)
        return list(result) if primitive.multiple_results else [result]

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


class Program:
    """A program with the values of one run.

    Args:
        closed: the program.
        values: the values of its arguments.

    Attributes:
        steps: its equations, in their order.
        value: the values, by keys.
        arguments: the keys of its arguments.
        results: the keys of its results.
        cotangent: the gradient of the sum of all floating results by each value that it arrives at, once `differentiate` was called.
        arrived: for each step, by its place, the cotangents of its inputs.
    """

    def __init__(self, closed: Any, values: Sequence[Any]) -> None:
        jaxpr, constants = opened(closed)
        self.steps: list[Step] = []
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
        for place in reversed(range(len(self.steps))):
            step = self.steps[place]
            floating = [key for key in step.outputs if is_floating(self.value[key])]
            if not any(key in self.cotangent for key in floating) or not any(is_floating(self.value[key]) for key in step.inputs):
                continue
            cotangents = [self.cotangent[key] if key in self.cotangent else jax.numpy.zeros_like(self.value[key]) for key in floating]
            arrived = step.pull_back([self.value[key] for key in step.inputs], cotangents)
            self.arrived[place] = arrived
            for number, cotangent in arrived.items():
                self._sum(step.inputs[number], cotangent)

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

        for equation in jaxpr.eqns:
            inputs = [key_of(variable) for variable in equation.invars]
            inner = _inner(equation)
            if inner is not None:
                body, constants = opened(inner)
                inner_keys = dict(zip(body.invars, inputs, strict=True))
                inner_keys.update({variable: self._new(value) for variable, value in zip(body.constvars, constants, strict=True)})
                outputs = self._add(body, inner_keys, self.source(equation) or around)
            else:
                outputs = self._step(equation, inputs, around)
            keys.update(zip(equation.outvars, outputs, strict=True))
        return [key_of(variable) for variable in jaxpr.outvars]

    def source(self, equation: Any) -> SourceLocation | None:
        """The user's line that made an equation, None if it is unknown."""
        frames = self._reader.frames(equation.source_info.traceback)
        return SourceLocation(frames[-1].file, frames[-1].line) if frames else None

    def _step(self, equation: Any, inputs: list[int], around: SourceLocation | None) -> list[int]:
        step = Step(equation, inputs, (), self.source(equation) or around)
        if equation.primitive.name == "io_callback":
            raise InvalidArgumentError("The function calls Python by jax.experimental.io_callback, which an explanation does not do")
        if equation.effects and not equation.outvars:
            return []  # it prints, perhaps: an explanation does not
        outputs = [self._new(value) for value in step.run([self.value[key] for key in inputs])]
        step.outputs = outputs
        self.steps.append(step)
        return outputs


def _name_of(equation: Any) -> str:
    """The name of the function that an equation calls, "" for another one."""
    inner = equation.params.get("call_jaxpr") or equation.params.get("fun_jaxpr")
    name = getattr(getattr(getattr(inner, "jaxpr", inner), "debug_info", None), "func_name", "")
    return str(equation.params.get("name") or name).strip("_")


def _inner(equation: Any) -> Any:
    """The jaxpr of an equation that only calls it."""
    if str(equation.primitive.name) not in _INLINED:
        return None
    return equation.params.get("jaxpr") or equation.params.get("call_jaxpr")


def finite(value: Any) -> bool:
    """True iff all elements are finite."""
    return bool(np.all(np.isfinite(np.asarray(value).astype(np.complex128))))


def zero(value: Any) -> bool:
    """True iff all elements are zero."""
    return not np.any(np.asarray(value))


def paths_from(program: Program, keys: Sequence[int]) -> tuple[set[int], set[int]]:
    """The keys that depend on some keys, and those that the results depend on."""
    behind = set(keys)
    for step in program.steps:
        if behind.intersection(step.inputs):
            behind.update(step.outputs)
    before = set(program.results)
    for step in reversed(program.steps):
        if before.intersection(step.outputs):
            before.update(step.inputs)
    return behind, before


def steps_between(program: Program, keys: Sequence[int]) -> Iterator[int]:
    """The places of the steps on ways from some keys to the results, the last first."""
    behind, before = paths_from(program, keys)
    for place in reversed(range(len(program.steps))):
        step = program.steps[place]
        if behind.intersection(step.inputs) and before.intersection(step.outputs):
            yield place


def ways(program: Program, keys: Sequence[int]) -> tuple[int, list[str]]:
    """The number of ways from some keys to the results that a gradient takes, and a shortest one."""
    counts, shortest = dict.fromkeys(keys, 1), {key: list[str]() for key in keys}
    for place, step in enumerate(program.steps):
        taken = [key for number, key in enumerate(step.inputs) if key in counts and number in program.arrived.get(place, ())]
        if not taken:
            continue
        path = [*min([shortest[key] for key in taken], key=len), step.label]
        for key in step.outputs:
            counts[key], shortest[key] = min(sum(counts[key] for key in taken), MOST_COUNTED), path
    reached = [key for key in program.results if key in counts]
    return sum(counts[key] for key in reached), min([shortest[key] for key in reached], key=len, default=[])
