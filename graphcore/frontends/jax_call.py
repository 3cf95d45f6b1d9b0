"""Calls of functions of JAX, traced with abstract values: without computing."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends import jaxpr
from graphcore.frontends.frontend import Call, MadeCall
from graphcore.frontends.function_values import values_used_by
from graphcore.frontends.jax_reader.calls import Traced, traced
from graphcore.frontends.jax_reader.ends import zero_gradients
from graphcore.frontends.jax_reader.failed_calls import failed_call
from graphcore.frontends.jax_reader.named_arrays import named_arrays
from graphcore.frontends.jax_reader.remarks import remarks_on
from graphcore.frontends.keras_reader.calls import is_layer_of_jax, name_layers, variable_names, without_effects
from graphcore.frontends.shape_remarks import mark_broadcasts
from graphcore.remarks import remark
from graphcore.support.random_states import kept_generators

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignGraph
    from graphcore.frontends.frontend import Source
    from graphcore.runtime.runners import RunRecord

KIND: Final = "call of a JAX function (gc.show(f, x), %graph f(x))"
_MAX_TEXT: Final = 2000
_WRAPPERS: Final = "/jax/_src/"


def sniff(source: Source) -> bool:
    """True iff the source is a call of a function that JAX has made, or with arrays of JAX.

    With numbers for arguments, or with none, it is one if the function uses JAX.
    """
    call = source.value
    if not isinstance(call, Call):
        return False
    code = getattr(call.function, "__code__", None)
    is_wrapper = _WRAPPERS in getattr(code, "co_filename", "").replace("\\", "/")  # jax.grad(f), jax.vmap(f)
    if _is_of_jax(call.function) or is_layer_of_jax(call.function) or is_wrapper or call.gives(_is_of_jax):
        return True
    is_plain = call.gives(_is_number) or not (call.args or call.kwargs)
    return is_plain and any(_is_of_jax(value) or _is_jax(value) for value in values_used_by(call.function))


def read(source: Source) -> ForeignGraph:
    """Trace the call. A call that fails is shown up to the operation that failed.

    Raises:
        InvalidArgumentError: it fails before any operation.
    """
    assert isinstance(source.value, Call)
    with _kept(source.value):
        return _traced(source.value)[0]


def make(call: Call, record: RunRecord) -> MadeCall:
    """Trace the call, run it operation by operation, and record it; see `MakesCalls`.

    The result is that of the call under `jax.disable_jit()`, bit for bit.
    """
    with _kept(call):
        return _made(call, record)


def _kept(call: Call) -> AbstractContextManager[None]:
    """Keep generators, lists and objects that a call uses: they would get values of the trace."""
    return kept_generators([*call.args, *call.kwargs.values(), call.function, *values_used_by(call.function)])


def _made(call: Call, record: RunRecord) -> MadeCall:
    source, result = _traced(call)
    if source.runner is None:
        return MadeCall(source, None, result.error)
    try:
        outputs = source.runner().run({}, record)
    except Exception as error:  # noqa: BLE001 - callbacks of the user may raise anything, which the run says
        failed = record.running[0][0] if record.running else ""
        for node in source.main.nodes:
            if node.name == failed:
                node.error = f"{type(error).__name__}: {error}"[:_MAX_TEXT]
        return MadeCall(source, None, error)
    jax: Any = sys.modules["jax"]
    return MadeCall(source, jax.tree_util.tree_unflatten(result.structure, outputs), None)


def _traced(call: Call) -> tuple[ForeignGraph, Traced]:
    jax = sys.modules.get("jax")
    if jax is None:
        raise InvalidArgumentError("A call of a JAX function is traced where jax is imported")
    name = str(getattr(call.function, "__name__", type(call.function).__name__))
    model = call.function if is_layer_of_jax(call.function) else None
    arrays = named_arrays(call.function) if model is None else variable_names(model)
    if model is not None:
        call = replace(call, function=without_effects(model))
    result = traced(call)
    if result.error is not None:
        return failed_call(result.error, name, f"jax {getattr(jax, '__version__', '')}".strip(), arrays), result
    graph = jaxpr.read_program(result.closed, name, arrays, result.arguments)
    graph.missing = zero_gradients(graph, result.gradients)
    if model is not None:
        name_layers(graph, model)
    for text in (*remarks_on(result.closed), *mark_broadcasts(graph)):
        graph.notes.append(text)
        remark(text)
    return graph, result


def _is_of_jax(value: object) -> bool:
    return type(value).__module__.partition(".")[0] in {"jax", "jaxlib"}


def _is_jax(value: object) -> bool:
    """True iff a value is JAX or a module of it."""
    return isinstance(value, ModuleType) and value.__name__.partition(".")[0] == "jax"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | complex)


def array_versions(call: Call) -> tuple[object, ...]:
    """A key that changes with the arrays of JAX that a call takes or uses; they never change."""
    jax: Any = sys.modules.get("jax")
    if jax is None:
        return ()
    values = [call.function, *call.args, *call.kwargs.values()]
    used = [*values, *[other for value in values for other in values_used_by(value)]]
    return tuple([id(leaf) for leaf in jax.tree_util.tree_leaves(used) if isinstance(leaf, jax.Array)])
