"""The equations of JAX that end a gradient or make it NaN, with the reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from graphcore.api.gradients.explanation import GradientCut
from graphcore.api.gradients.of_jax.evaluated import EvaluatedEquation, EvaluatedProgram, equations_between, finite, paths_from, zero
from graphcore.frontends.jax_reader.differentiated import is_floating
from graphcore.frontends.jax_reader.ends import FLAT
from graphcore.frontends.jax_reader.equations import opened

_SATURATING: Final = frozenset(["logistic", "tanh", "erf"])
_MOST: Final = 8


def cuts_of(program: EvaluatedProgram, keys: Sequence[int], name: str) -> list[GradientCut]:
    """The places where the gradient stops on the way from the results to an array.

    Args:
        program: a program that was differentiated.
        keys: the keys of the array.
        name: the array.
    """
    behind, before = paths_from(program, keys)
    if not before.intersection(keys):
        return _without_way(program, behind, name)
    cuts = {}
    for place in equations_between(program, keys):
        equation = program.equations[place]
        taken = [number for number, key in enumerate(equation.inputs) if key in behind]
        kind, reason = _reason(program, place, equation, taken)
        if kind:
            cuts[place] = _cut(kind, equation, reason)
    return list(dict.fromkeys(_decisive(program, keys, cuts) or cuts.values()))[:_MOST]


def _decisive(program: EvaluatedProgram, keys: Sequence[int], cuts: Mapping[int, GradientCut]) -> list[GradientCut]:
    """The cuts, by their place, that are alone on a way from some keys to the results.

    Others cut ways that are cut anyway: a softmax stops the gradient of the maximum that it subtracts, whatever comes before it.
    """
    behind, before = set(keys), set(program.results)
    equations = list(enumerate(program.equations))
    for place, equation in equations:
        if place not in cuts and behind.intersection(equation.inputs):
            behind.update(equation.outputs)
    for place, equation in reversed(equations):
        if place not in cuts and before.intersection(equation.outputs):
            before.update(equation.inputs)
    return [
        cut
        for place, cut in cuts.items()
        if behind.intersection(program.equations[place].inputs) and before.intersection(program.equations[place].outputs)
    ]


def not_finite(program: EvaluatedProgram, keys: Sequence[int]) -> Iterator[GradientCut]:
    """The equations whose results have finite gradients, and whose inputs have others."""
    behind, _ = paths_from(program, keys)
    for place in equations_between(program, keys):
        equation, arrived = program.equations[place], program.arrived.get(place, {})
        cotangents = [program.cotangent[key] for key in equation.outputs if key in program.cotangent]
        bad = [number for number, cotangent in arrived.items() if equation.inputs[number] in behind and not finite(cotangent)]
        if bad and all(finite(value) for value in cotangents):
            yield _cut("not finite", equation, _why_not_finite(program, place, equation, arrived[bad[0]]))
            return


def _reason(program: EvaluatedProgram, place: int, equation: EvaluatedEquation, taken: Sequence[int]) -> tuple[str, str]:
    """The kind and the reason of the end of a gradient at an equation, "" if it goes on."""
    floating = [number for number in taken if is_floating(program.value[equation.inputs[number]])]
    if not floating:
        return "", ""
    if equation.primitive == "stop_gradient":
        return "stop_gradient", "is jax.lax.stop_gradient, which ends gradients"
    results = [key for key in equation.outputs if is_floating(program.value[key])]
    if not results:
        return "dtype", f"gives {_types(program, equation)}: gradients flow through floating and complex arrays only"
    if not any(key in program.cotangent and not zero(program.cotangent[key]) for key in results):
        return "", ""  # the gradient has ended before
    arrived = program.arrived.get(place, {})
    if not all(number in arrived and zero(arrived[number]) for number in floating):
        return "", ""
    inside = _inside(program, equation)
    return ("not differentiable", inside) if inside else _why_zero(program, equation, floating)


def _inside(program: EvaluatedProgram, equation: EvaluatedEquation) -> str:
    """The equation in the body of a loop or branch that has the derivative zero, "" if none has."""
    for eqn in _equations(equation.eqn):
        inner = str(eqn.primitive.name)
        reason = f"{FLAT[inner]}, so its derivative is zero" if inner in FLAT else "ends gradients" if inner == "stop_gradient" else ""
        if reason:
            source = program.source(eqn)
            return f"passes nothing on: '{inner}' in its body {reason}" + (f" ({source})" if source is not None else "")
    return ""


def _equations(eqn: Any) -> Iterator[Any]:
    """The equations in the bodies of an equation, and in theirs."""
    for value in eqn.params.values():
        for part in value if isinstance(value, tuple | list) else [value]:
            for inner in getattr(opened(part)[0], "eqns", ()):
                yield inner
                yield from _equations(inner)


def _why_zero(program: EvaluatedProgram, equation: EvaluatedEquation, floating: Sequence[int]) -> tuple[str, str]:
    value = np.asarray(program.value[equation.inputs[floating[0]]])
    if equation.primitive in FLAT:
        return "not differentiable", f"{FLAT[equation.primitive]}, so its derivative is zero"
    if equation.primitive.startswith("custom_vjp"):
        return "custom gradient", "has a gradient of its own (jax.custom_vjp), which gives zeros here"
    if equation.label in {"relu", "relu6"} or equation.primitive in {"max", "min", "clamp"}:
        span = f"from {value.min():.3g} to {value.max():.3g}" if value.size else "none"
        return "dead", f"passes no gradient on: it cuts off all {value.size} values ({span})"
    if equation.primitive in _SATURATING:
        return "saturated", f"is flat for all {value.size} values (from {value.min():.3g} to {value.max():.3g})"
    if equation.primitive == "select_n":
        return "not taken", "takes another branch for all elements"
    if equation.primitive in {"mul", "dot_general", "div"}:
        return "zero factor", "multiplies by zeros only"
    if equation.primitive.startswith("custom_jvp"):
        return "zero", "has a derivative that is zero for these values"
    return "zero", "passes a gradient of zeros on for these values"


def _why_not_finite(program: EvaluatedProgram, place: int, equation: EvaluatedEquation, cotangent: Any) -> str:
    bad = ~np.isfinite(np.asarray(cotangent))
    values = np.asarray(program.value[equation.inputs[0]])
    example = f", as at {values[bad][0]:.3g}" if values.shape == bad.shape and bad.any() else ""
    text = f"has a derivative that is not finite for {int(bad.sum())} of {bad.size} values{example}"
    later = {*equation.outputs}
    for following in program.equations[place + 1 :]:
        if not later.intersection(following.inputs):
            continue
        if following.primitive == "select_n" and all(finite(program.value[key]) for key in following.outputs):
            where = f" ({following.source.where})" if following.source is not None else ""
            text += (
                f"; jnp.where{where} does not take these values, but 0 times infinity is NaN: replace them before, as in "
                "`jnp.log(jnp.where(x > 0, x, 1.0))`"
            )
            break
        later.update(following.outputs)
    return text


def _without_way(program: EvaluatedProgram, behind: set[int], name: str) -> list[GradientCut]:
    """The reasons why no result is computed from an array."""
    used = [equation for equation in program.equations if behind.intersection(equation.inputs)]
    if not used:
        return [GradientCut(kind="no path", node=name, op="", reason="is used by no operation of the computation")]
    taken = {key for equation in program.equations for key in equation.inputs}
    last = [equation for equation in used if not taken.intersection(equation.outputs)]
    return [
        _cut("unused", equation, f"gives a result that is computed from '{name}', and that no result depends on")
        for equation in last[:_MOST]
    ]


def _types(program: EvaluatedProgram, equation: EvaluatedEquation) -> str:
    return ", ".join(dict.fromkeys([str(program.value[key].dtype) for key in equation.outputs]))


def _cut(kind: str, equation: EvaluatedEquation, reason: str) -> GradientCut:
    return GradientCut(kind=kind, node=equation.label, op=f"jax.{equation.primitive}", reason=reason, source=equation.source)
