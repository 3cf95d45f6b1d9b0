"""Calls of functions of JAX, traced with abstract arrays; other arguments stay as they are."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graphcore.frontends.jax_reader.backward import is_backward
from graphcore.frontends.jax_reader.copied_modules import with_copied_modules
from graphcore.frontends.jax_reader.differentiated import is_floating, with_gradients
from graphcore.frontends.jax_reader.failures import whole_tracebacks

if TYPE_CHECKING:
    from graphcore.frontends.frontend import Call


@dataclass(slots=True)
class Traced:
    """The outcome of a call.

    Attributes:
        closed: the program, None if the call failed.
        error: the error, None if the call succeeded.
        arguments: the values of the program's inputs.
        structure: the structure of the result, with the leaves that are the program's results.
        gradients: the number of gradients by floating arguments that were added to the results.
    """

    closed: Any = None
    error: Exception | None = None
    arguments: list[Any] = field(default_factory=list)
    structure: Any = None
    gradients: int = 0


def traced(call: Call) -> Traced:
    """Trace a call, and its gradients if it asks for them.

    The arrays among its arguments, and those of a module, are abstract values.

    An interruption ends it as any other code: JAX's own contexts set back what they have set.
    """
    jax: Any = sys.modules["jax"]
    function, args = _opened(call)
    tree = jax.tree_util
    originals = (args, dict(call.kwargs))
    is_traced = _is_array if any(_is_array(leaf) for leaf in tree.tree_leaves(originals)) else _is_number
    masked = tree.tree_map(lambda leaf: leaf if is_traced(leaf) else None, originals)

    def run(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree.tree_map(
            lambda ours, own: own if ours is None else ours, (args, kwargs), originals, is_leaf=lambda leaf: leaf is None
        )
        return function(*args, **kwargs)

    run.__name__ = getattr(call.function, "__name__", type(call.function).__name__)
    signature = _signature(function)
    if signature is not None:
        run.__signature__ = signature  # type: ignore[attr-defined]  # JAX takes the names of arguments from it
    result = _traced(run, masked)
    if (
        not call.gradients
        or result.closed is None
        or any(is_backward(str(equation.source_info.name_stack)) for equation in result.closed.jaxpr.eqns)
    ):
        return result
    differentiated = _traced(with_gradients(run), masked)
    differentiated.gradients = sum(map(is_floating, tree.tree_leaves(masked)))
    return differentiated


def _traced(run: Callable[..., Any], masked: Any) -> Traced:
    jax: Any = sys.modules["jax"]
    with whole_tracebacks():
        try:
            closed, shapes = jax.make_jaxpr(run, return_shape=True)(*masked[0], **masked[1])
        except Exception as error:  # noqa: BLE001 - a user's function may raise anything, which the picture says
            return Traced(error=error)
    tree = jax.tree_util
    return Traced(closed, None, tree.tree_leaves(masked), tree.tree_structure(shapes))


def _is_array(value: object) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | complex)


def _signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _opened(call: Call) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The function to trace and its arguments.

    The arrays of a module of Flax's NNX or Equinox become an argument `model`.
    """
    function = call.function
    owner = getattr(function, "__self__", function)
    parted = _parted(owner)
    if parted is None:
        return with_copied_modules(function), tuple(call.args)
    arrays, together = parted

    def run(model: Any, *args: Any, **kwargs: Any) -> Any:
        whole = together(model)
        called = whole if owner is function else getattr(whole, function.__name__)
        return called(*args, **kwargs)

    signature = _signature(function)
    if signature is not None:
        first = inspect.Parameter("model", inspect.Parameter.POSITIONAL_ONLY)
        rest = [parameter for name, parameter in signature.parameters.items() if name != "model"]
        run.__signature__ = signature.replace(parameters=[first, *rest])  # type: ignore[attr-defined]  # as above
    return run, (arrays, *call.args)


def _parted(owner: Any) -> tuple[Any, Callable[[Any], Any]] | None:
    """The arrays of a module, and a function that makes a module of them; None for another object."""
    nnx: Any = sys.modules.get("flax.nnx")
    if nnx is not None and isinstance(owner, nnx.Module):
        definition, state = nnx.split(owner)
        return state, lambda arrays: nnx.merge(definition, arrays)
    equinox: Any = sys.modules.get("equinox")
    if equinox is not None and isinstance(owner, equinox.Module):
        arrays, rest = equinox.partition(owner, equinox.is_array)
        return arrays, lambda arrays: equinox.combine(arrays, rest)
    return None
