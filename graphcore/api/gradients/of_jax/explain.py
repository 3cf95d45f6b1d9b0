"""The gradient of a function of JAX by an array: where it ends, is zero, or is not finite."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

from graphcore.api.gradients.explanation import GradientCut, GradientExplanation
from graphcore.api.gradients.of_jax.arrays import arrays_of, call_of, chosen
from graphcore.api.gradients.of_jax.cuts import cuts_of, not_finite
from graphcore.api.gradients.of_jax.evaluated import EvaluatedProgram, finite, ways, zero
from graphcore.errors import GraphError
from graphcore.frontends.frontend import Call
from graphcore.frontends.jax_reader.calls import traced
from graphcore.frontends.jax_reader.differentiated import is_floating
from graphcore.frontends.jax_reader.failed_calls import failed_call
from graphcore.frontends.jax_reader.messages import tidied
from graphcore.frontends.jax_reader.programs import arg_names

_MAX_DEPTH: Final = 8


def explain_jax(y: Any, x: Any) -> GradientExplanation:
    """Explain a gradient of JAX.

    Args:
        y: a function without arguments, such as `lambda: loss(params, batch)`; a `functools.partial` of a function or of `jax.grad(function)` with
            all arguments.
        x: an array that it uses, or its name: "params['w']".

    Raises:
        InvalidArgumentError: no array has that name.
    """
    call, numbers = _undifferentiated(y)
    arrays = arrays_of(call)
    array, name = chosen(x, arrays)
    title = (getattr(call.function, "__name__", "") or type(call.function).__name__).strip("<>")
    if not is_floating(array):
        return _none(title, name, "dtype", f"is {array.dtype}: only floating and complex arrays have gradients")
    left_out = _left_out(call, numbers, array)
    if left_out:
        return _none(title, name, "argnums", left_out)
    result = traced(call)
    if result.closed is None:
        assert result.error is not None
        return GradientExplanation(y=title, x=name, error=_words(result.error))
    names = arg_names(result.closed.jaxpr)
    try:
        program = EvaluatedProgram(result.closed, result.arguments)
    except GraphError as error:
        return GradientExplanation(y=title, x=name, error=error.message)
    keys = program.keys_of(array)
    if keys and keys[0] in program.arguments and len(names) == len(program.arguments):
        name = names[program.arguments.index(keys[0])]
    program.differentiate()
    return _explained(program, keys, title, name, array)


def _explained(program: EvaluatedProgram, keys: Sequence[int], title: str, name: str, array: Any) -> GradientExplanation:
    cuts = cuts_of(program, keys, name)
    arrived = [program.cotangent[key] for key in keys if key in program.cotangent]
    kind = f"{array.dtype} {list(array.shape)}"
    if not arrived:
        return GradientExplanation(
            y=title, x=name, gradient=f"jax.grad({title})", kind=kind, built=True, is_zero=True, of_values=True, cuts=tuple(cuts)
        )
    total = sum(arrived[1:], start=arrived[0])
    bad = tuple(not_finite(program, keys)) if not finite(total) else ()
    is_zero = zero(total)
    if not is_zero:
        cuts = [cut for cut in cuts if cut.kind != "dtype"]  # a comparison beside the way, as in jnp.where
    count, path = ways(program, keys)
    return GradientExplanation(
        y=title,
        x=name,
        gradient=f"jax.grad({title})",
        kind=kind + ("" if finite(total) else ", not finite"),
        built=True,
        is_zero=is_zero,
        of_values=True,
        path_count=count,
        paths=((name, *path),),
        cuts=(*bad, *cuts),
    )


def _none(y: str, x: str, kind: str, reason: str) -> GradientExplanation:
    return GradientExplanation(y=y, x=x, cuts=(GradientCut(kind=kind, node=x, op="", reason=reason),))


def _undifferentiated(y: Any) -> tuple[Call, tuple[int, ...] | None]:
    """The call of the function that `jax.grad` differentiates, and its `argnums`.

    For another function the call itself and None.
    """
    call = call_of(y)
    inner = _cells(call.function, 0)
    if inner is None:
        return call, None
    numbers = inner["argnums"]
    return Call(inner["fun"], call.args, call.kwargs), (numbers,) if isinstance(numbers, int) else tuple(numbers)


def _cells(function: Any, depth: int) -> dict[str, Any] | None:
    """The variables of `jax.grad` or `jax.value_and_grad` that a function of theirs has kept."""
    code, closure = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    if code is None or closure is None or "/jax/_src/" not in code.co_filename.replace("\\", "/") or depth > _MAX_DEPTH:
        return None
    cells = {name: cell.cell_contents for name, cell in zip(code.co_freevars, closure, strict=True)}
    if code.co_name.startswith("value_and_grad_f") and {"argnums", "fun"} <= set(cells):
        return cells
    return next((inner for value in cells.values() if (inner := _cells(value, depth + 1)) is not None), None)


def _left_out(call: Call, numbers: tuple[int, ...] | None, array: Any) -> str:
    """The reason why `argnums` leaves an array out, "" if it does not."""
    if numbers is None:
        return ""
    jax: Any = sys.modules["jax"]
    count = len(call.args)
    chosen = {number % count for number in numbers if count}
    for number, value in enumerate(call.args):
        if number not in chosen and any(leaf is array for leaf in jax.tree_util.tree_leaves(value)):
            return f"is in argument {number}, and jax.grad differentiates by argnums={', '.join(map(str, numbers))} only"
    return ""


def _words(error: Exception) -> str:
    """An error of a call with its line, as its picture says it."""
    try:
        nodes = failed_call(error, "", "", {}).main.nodes
    except GraphError:  # before any operation
        nodes = []
    return next((node.error for node in nodes if node.error), "") or tidied(error)
