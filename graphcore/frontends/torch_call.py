"""Calls of PyTorch's modules and functions, traced by fake tensors without computing anything."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Final

from graphcore.frontends.frontend import Call, MadeCall
from graphcore.frontends.function_values import values_used_by
from graphcore.frontends.torch_reader.objects import is_class

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignGraph
    from graphcore.frontends.frontend import Source
    from graphcore.runtime.runners import RunRecord

KIND: Final = "call of a PyTorch module or function (gc.show(model, x), %graph model(x))"


def sniff(source: Source) -> bool:
    """True iff the source is a call of a module, or of a function that takes or uses PyTorch."""
    return isinstance(source.value, Call) and (uses_torch(source.value) or imports_torch(source.value))


def read(source: Source) -> ForeignGraph:
    """Trace the call. A call that fails is shown up to the operation that failed.

    Raises:
        InvalidArgumentError: it fails before any operation.
    """
    assert isinstance(source.value, Call)
    tracing = import_module("graphcore.frontends.torch_calls.tracing")
    traced: ForeignGraph = tracing.trace(source.value)
    return traced


def make(call: Call, record: RunRecord) -> MadeCall:
    """Make the call once and record it; see `MakesCalls`."""
    running = import_module(f"graphcore.frontends.torch_calls.{'running_backward' if call.gradients else 'running'}")
    made: MadeCall = (running.make_with_gradients if call.gradients else running.make_call)(call, record)
    return made


def uses_torch(call: Call) -> bool:
    """True iff a call is of a module, or its function or arguments are or use modules or tensors."""
    if _is_of_torch(call.function) or call.gives(_is_of_torch):
        return True
    return any(_is_of_torch(used) for value in (call.function, *call.args, *call.kwargs.values()) for used in values_used_by(value))


def imports_torch(call: Call) -> bool:
    """True iff the function of a call, or one that it gets, uses PyTorch, and it gets no arrays of JAX."""
    functions = call.function, *call.args, *call.kwargs.values()
    modules = [value.__name__ for function in functions for value in values_used_by(function) if isinstance(value, ModuleType)]
    is_used = any(name.partition(".")[0] == "torch" for name in modules)
    return is_used and not call.gives(lambda value: type(value).__module__.partition(".")[0] in {"jax", "jaxlib"})


def _is_of_torch(value: object) -> bool:
    return is_class(value, "Tensor", "torch") or is_class(value, "Module", "torch.nn")
