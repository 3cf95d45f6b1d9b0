"""Calls of functions of JAX, traced with abstract values: without computing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends import jaxpr
from graphcore.frontends.frontend import Call, Source

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignGraph

KIND: Final = "call of a JAX function (gc.show(f, x), %graph f(x))"


def sniff(source: Source) -> bool:
    """True iff the source is a call of a jitted function, or of a function with arrays of JAX."""
    call = source.value
    if not isinstance(call, Call):
        return False
    return _is_of_jax(call.function) or call.gives(_is_of_jax)


def read(source: Source) -> ForeignGraph:
    """Trace the call.

    Raises:
        InvalidArgumentError: it fails.
    """
    call, jax = source.value, sys.modules.get("jax")
    assert isinstance(call, Call)
    if jax is None:
        raise InvalidArgumentError("A call of a JAX function is traced where jax is imported")
    traced: Any = jax
    try:
        closed = traced.make_jaxpr(call.function)(*call.args, **call.kwargs)
    except Exception as error:
        raise InvalidArgumentError(f"The call failed: {type(error).__name__}: {error}") from error
    found = jaxpr.read(Source(value=closed))
    found.name = getattr(call.function, "__name__", found.name)
    return found


def _is_of_jax(value: object) -> bool:
    return type(value).__module__.partition(".")[0] in {"jax", "jaxlib"}
