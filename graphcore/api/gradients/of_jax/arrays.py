"""The arrays of JAX that a function uses, and the choice of one."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.frontend import Call
from graphcore.frontends.jax_reader.named_arrays import arrays_by_name


def is_of_jax(y: Any, x: Any) -> bool:
    """True iff `gc.explain_gradient(y, x)` is about a function of JAX."""
    if "jax" not in sys.modules or not (isinstance(y, Call) or callable(y)):
        return False
    if isinstance(x, str):
        return any(_is_array(value) for value in arrays_of(y).values())
    return _is_array(x)


def _is_array(value: object) -> bool:
    return type(value).__module__.partition(".")[0] in {"jax", "jaxlib"} and hasattr(value, "dtype") and hasattr(value, "shape")


def call_of(y: Any) -> Call:
    """The call that a value stands for."""
    if isinstance(y, Call):
        return y
    if isinstance(y, functools.partial):
        return Call(y.func, y.args, y.keywords)
    return Call(y)


def arrays_of(y: Any) -> dict[str, Any]:
    """The arrays that a call is given or that its function uses, by their names."""
    call = call_of(y)
    arguments = _bound(call)
    return {**arrays_by_name(call.function), **arrays_by_name(functools.partial(_nothing, **arguments))}


def _nothing(**_: Any) -> None:
    """Stand for a function that has only arguments."""


def _bound(call: Call) -> dict[str, Any]:
    try:
        return dict(inspect.signature(call.function).bind(*call.args, **call.kwargs).arguments)
    except (TypeError, ValueError):
        return {**{f"argument_{number}": value for number, value in enumerate(call.args)}, **call.kwargs}


def chosen(x: Any, arrays: Mapping[str, Any]) -> tuple[Any, str]:
    """The array for an array or a name, and its name."""
    if not isinstance(x, str):
        return x, next((name for name, value in arrays.items() if value is x), f"an array {x.dtype} {list(x.shape)}")
    if x in arrays:
        return arrays[x], x
    near = ", ".join(get_close_matches(x, arrays, n=4, cutoff=0.3) or list(arrays)[:4]) or "none"
    raise InvalidArgumentError(f"explain_gradient requires the name of an array that the function uses, got '{x}'; there are: {near}")
