"""Calls that are made for real and recorded, and leave no traces."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from threading import get_ident
from typing import TYPE_CHECKING, Any

from graphcore.frontends.frontend import MadeCall
from graphcore.frontends.torch_calls.keeping import Kept
from graphcore.frontends.torch_calls.special import unwrapped
from graphcore.frontends.torch_calls.surroundings import kept_settings
from graphcore.frontends.torch_calls.tracing import Recording, called, graph_of, name_of_call, named_tensors
from graphcore.frontends.torch_calls.watching import WatchedRecorder
from graphcore.support.random_states import kept_random_states
from graphcore.support.watched import long_work

if TYPE_CHECKING:
    from graphcore.frontends.frontend import Call
    from graphcore.runtime.runners import RunRecord

torch: Any = import_module("torch")
_modules: Any = import_module("torch.nn.modules.module")
_overrides: Any = import_module("torch.overrides")


def make_call(call: Call, record: RunRecord) -> MadeCall:
    """Make a call once, and record it.

    Its result is that of the call without recording. Afterwards modules, tensors, optimizers, generators of random numbers and modes
    are as they were before it, whether it ended or not. Hooks run as they do in any call; what they and the function change elsewhere,
    such as a list of the user, stays changed. Compiled functions run uncompiled.

    Raises:
        InvalidArgumentError: the call fails before any operation.
    """
    inner = unwrapped(call)
    function, args, kwargs = inner.function, inner.args, inner.kwargs
    kept = Kept()
    recorder = WatchedRecorder(record, kept)
    recorder.work = f"running {name_of_call(call)}"
    owner = function if isinstance(function, torch.nn.Module) else getattr(function, "__self__", None)
    with torch._C.DisableTorchFunction():
        kept.keep([owner, *args, *kwargs.values()])
        for value in (function, *args, *kwargs.values()):
            kept.keep_variables(value)
        _name_modules(recorder, {"": owner, **kwargs})
        for name, tensor in named_tensors(function, args, kwargs):
            recorder.add_input(name, tensor)
    try:
        around = kept_settings(), kept_random_states(), _uncompiled(), _followed(recorder), _as_if_unwatched()
        result, error = called(function, args, kwargs, recorder, *around)
        source = graph_of(inner, Recording(recorder, result, error))
        result = _apart(result, kept)
    finally:
        kept.set_back()
    long_work.publish(recorder.work, 1, 1, "")
    return MadeCall(source, result, error)


def _name_modules(recorder: WatchedRecorder, values: Mapping[str, object]) -> None:
    for name, module in values.items():
        if isinstance(module, torch.nn.Module):
            recorder.name_module(module, name)


def _uncompiled() -> AbstractContextManager[object]:
    """Have compiled functions run as they were written: compiled code has no operations to follow."""
    stance: AbstractContextManager[object] = torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext()
    return stance


@contextmanager
def _followed(recorder: WatchedRecorder) -> Iterator[None]:
    """Follow the modules that are called. Modules have no hooks by this: PyTorch computes some with hooks in another way."""
    handles = [
        _modules.register_module_forward_pre_hook(recorder.enter_module),
        _modules.register_module_forward_hook(recorder.leave_module, always_call=True),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _as_if_unwatched() -> Iterator[None]:
    """Let transformer layers choose their fast path as they do without a recorder.

    They look for a mode that intercepts functions, and round in other places if there is one.
    """
    original, thread = _overrides.has_torch_function, get_ident()
    plain = {torch.Tensor, torch.nn.Parameter, type(None)}

    def is_intercepted(values: Any) -> Any:
        is_plain = get_ident() == thread and all(type(value) in plain for value in values)
        return False if is_plain else original(values)

    _overrides.has_torch_function = is_intercepted
    try:
        yield
    finally:
        _overrides.has_torch_function = original


def _apart(result: Any, kept: Kept) -> Any:
    """The result with copies of the tensors that are set back after the call."""
    if isinstance(result, torch.Tensor):
        return result.clone() if kept.holds(result) else result
    if type(result) in {list, tuple}:
        return type(result)([_apart(item, kept) for item in result])
    if type(result) is dict:
        return {key: _apart(item, kept) for key, item in result.items()}
    return result
