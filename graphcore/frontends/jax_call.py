"""Calls of functions of JAX, traced with abstract values: without computing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends import jaxpr
from graphcore.frontends.frontend import Call, Source
from graphcore.frontends.jax_reader.calls import traced
from graphcore.frontends.jax_reader.failed_calls import failed_call
from graphcore.frontends.jax_reader.named_arrays import named_arrays
from graphcore.frontends.jax_reader.remarks import remarks_on
from graphcore.frontends.shape_remarks import mark_broadcasts
from graphcore.remarks import remark

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignGraph
    from graphcore.frontends.frontend import Source

KIND: Final = "call of a JAX function (gc.show(f, x), %graph f(x))"
_WRAPPERS: Final = "/jax/_src/"


def sniff(source: Source) -> bool:
    """True iff the source is a call of a function that JAX has made, or of a function with arrays of JAX."""
    call = source.value
    if not isinstance(call, Call):
        return False
    code = getattr(call.function, "__code__", None)
    is_wrapper = _WRAPPERS in getattr(code, "co_filename", "").replace("\\", "/")  # jax.grad(f), jax.vmap(f)
    return _is_of_jax(call.function) or is_wrapper or call.gives(_is_of_jax)


def read(source: Source) -> ForeignGraph:
    """Trace the call. A call that fails is shown up to the operation that failed.

    Raises:
        InvalidArgumentError: it fails before any operation.
    """
    call, jax = source.value, sys.modules.get("jax")
    assert isinstance(call, Call)
    if jax is None:
        raise InvalidArgumentError("A call of a JAX function is traced where jax is imported")
    name = str(getattr(call.function, "__name__", type(call.function).__name__))
    arrays = named_arrays(call.function)
    result = traced(call)
    if result.error is not None:
        return failed_call(result.error, name, f"jax {getattr(jax, '__version__', '')}".strip(), arrays)
    graph = jaxpr.read_program(result.closed, name, arrays, result.arguments)
    for text in (*remarks_on(result.closed), *mark_broadcasts(graph)):
        graph.notes.append(text)
        remark(text)
    return graph


def _is_of_jax(value: object) -> bool:
    return type(value).__module__.partition(".")[0] in {"jax", "jaxlib"}
