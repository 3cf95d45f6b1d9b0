"""Equations of jaxprs: their bodies, and their results by JAX."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, Final

CALLS: Final = frozenset(["jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint"])
"""Primitives that only call the body that they hold."""

NAMED: Final = frozenset(["jit", "pjit", "custom_jvp_call", "custom_vjp_call"])
"""Primitives that call a function that the user knows by its name, such as `relu`."""


def opened(value: Any) -> tuple[Any, Sequence[Any]]:
    """A jaxpr and its constants."""
    return getattr(value, "jaxpr", value), list(getattr(value, "consts", ()) or ())


def called_name(eqn: Any) -> str:
    """The name of the function that an equation calls; that of its primitive where the function has none."""
    held = only_body(eqn) if eqn.primitive.name in NAMED else None
    said = getattr(getattr(opened(held[1])[0], "debug_info", None), "func_name", "") if held else ""
    return str(eqn.params.get("name") or (said if str(said).isidentifier() else "") or eqn.primitive.name)


def only_body(eqn: Any) -> tuple[str, Any] | None:
    """The body of an equation with its role, None where there is none or more than one."""
    held = [(key, value) for key, value in eqn.params.items() if type(value).__name__ in {"Jaxpr", "ClosedJaxpr"}]
    return held[0] if len(held) == 1 else None


def results_of(eqn: Any, inputs: Sequence[Any]) -> list[Any]:
    """The results of the primitive of an equation."""
    primitive = eqn.primitive
    params = primitive.get_bind_params(eqn.params)
    functions: Sequence[Any] = ()
    if isinstance(params, tuple):  # in versions before 0.10
        functions, params = params
    with getattr(eqn.ctx, "manager", nullcontext()):
        results = primitive.bind(*functions, *inputs, **params)
    return list(results) if primitive.multiple_results else [results]
