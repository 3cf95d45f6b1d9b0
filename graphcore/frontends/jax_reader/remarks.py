"""Remarks on programs of JAX: keys used twice, and arrays used after they were donated."""

from __future__ import annotations

from typing import Any, Final

from graphcore.frontends.jax_reader.equations import opened
from graphcore.frontends.jax_reader.programs import JaxprReader
from graphcore.source import SourceLocation

_NOT_DRAWING: Final = frozenset(
    ["random_unwrap", "random_fold_in", "random_clone", "broadcast_in_dim", "convert_element_type", "random_wrap"]
)
_MOST: Final = 4


def remarks_on(closed: Any) -> list[str]:
    """Sentences on a program, with the lines."""
    reader = JaxprReader()
    return list(dict.fromkeys(_in_program(opened(closed)[0], reader, "")))[:_MOST]


def _in_program(jaxpr: Any, reader: JaxprReader, around: str) -> list[str]:
    remarks = [*_keys(jaxpr, reader, around), *_donated(jaxpr, reader, around)]
    for equation in jaxpr.eqns:
        where = _where(equation, reader) or around
        for value in equation.params.values():
            inner = opened(value)[0]
            if hasattr(inner, "eqns"):
                remarks += _in_program(inner, reader, where)
    return remarks


def _keys(jaxpr: Any, reader: JaxprReader, around: str) -> list[str]:
    """The remarks on keys that several equations, or all steps of a loop, draw from."""
    origin: dict[Any, Any] = {}
    drawn: dict[Any, list[str]] = {}
    remarks = []
    for equation in jaxpr.eqns:
        name, where = str(equation.primitive.name), _where(equation, reader) or around
        first = equation.invars[0] if equation.invars else None
        if name == "random_wrap" and not hasattr(first, "val"):
            origin[equation.outvars[0]] = origin.get(first, first)
        for variable in dict.fromkeys([var for var in equation.invars if not hasattr(var, "val")]):
            if not str(getattr(variable.aval, "dtype", "")).startswith("key<") or name in _NOT_DRAWING or not _draws(equation, variable):
                continue
            if name == "scan" and equation.invars.index(variable) < int(equation.params["num_consts"]):
                remarks.append(
                    f"Each step of scan{where} draws from one key, so all draw the same numbers. Split it before: `keys = jax.random.split(key, n)`, "
                    "and scan over the keys."
                )
            drawn.setdefault(origin.get(variable, variable), []).append(f"{_title(equation)}{where}")
    remarks += [
        f"One key is used {len(draws)} times: by {' and '.join(draws[:3])}. The same key gives the same numbers: `key, sub = jax.random.split(key)` "
        "before each use."
        for draws in drawn.values()
        if len(draws) > 1
    ]
    return remarks


def _draws(equation: Any, variable: Any) -> bool:
    """True iff an equation takes numbers from a key, by itself or in a function that it calls."""
    name = str(equation.primitive.name)
    if name in {"random_bits", "random_split"}:
        return True
    for value in equation.params.values():
        inner = opened(value)[0]
        if hasattr(inner, "eqns") and len(inner.invars) == len(equation.invars):
            own = {var for var, operand in zip(inner.invars, equation.invars, strict=True) if operand is variable}
            if any(_draws(part, var) for part in inner.eqns for var in part.invars if not hasattr(var, "val") and var in own):
                return True
    return False


def _donated(jaxpr: Any, reader: JaxprReader, around: str) -> list[str]:
    """The remarks on arrays that are used after a jitted function was given their memory."""
    donated: dict[Any, str] = {}
    remarks = []
    for equation in jaxpr.eqns:
        where = _where(equation, reader) or around
        remarks += [
            f"An array of shape {tuple(variable.aval.shape)} is used by {_title(equation)}{where} after it was donated to {donated[variable]}: its memory is "
            "gone then. Use the result instead, or leave it out of `donate_argnums`."
            for variable in equation.invars
            if not hasattr(variable, "val") and variable in donated
        ]
        for variable, is_given in zip(equation.invars, equation.params.get("donated_invars", ()), strict=False):
            if is_given and not hasattr(variable, "val"):
                donated[variable] = f"{_title(equation)}{where}"
    return remarks


def _title(equation: Any) -> str:
    return str(equation.params.get("name") or equation.primitive.name).strip("_")


def _where(equation: Any, reader: JaxprReader) -> str:
    frames = reader.frames(equation.source_info.traceback)
    return f" ({SourceLocation(frames[-1].file, frames[-1].line)})" if frames else ""
