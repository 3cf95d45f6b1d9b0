"""Tracing of a call with fake tensors."""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import ForeignFunction, ForeignGraph, InputRef
from graphcore.frontends.frontend import Call
from graphcore.frontends.torch_calls.copying import FakeCopies
from graphcore.frontends.torch_calls.recording import Recorder, tensors_of
from graphcore.frontends.torch_reader.placing import placed_states

torch: Any = import_module("torch")
_fakes: Any = import_module("torch._subclasses.fake_tensor")


def trace(call: Call) -> ForeignGraph:
    """The graph of a call.

    Raises:
        InvalidArgumentError: the call fails before any operation.
    """
    mode = _fakes.FakeTensorMode(allow_non_fake_inputs=True)
    copies = FakeCopies(torch, mode)
    module = call.function if isinstance(call.function, torch.nn.Module) else getattr(call.function, "__self__", None)
    is_module = isinstance(module, torch.nn.Module)
    copied = copies.of_module(module) if is_module else None
    function = _counterpart(call.function, module, copied)
    recorder = Recorder(_states(copied), copies.original)
    args, kwargs = copies.of_arguments(tuple(call.args)), copies.of_arguments(dict(call.kwargs))
    for name, tensor in _named_tensors(call.function, args, kwargs):
        recorder.add_input(name, tensor)
    if copied is not None:
        _follow(copied, recorder)
    result, error = None, None
    with ExitStack() as stack:
        for context in (_kept_random_states(), mode, recorder):
            stack.enter_context(context)
        try:
            result = function(*args, **kwargs)
        except Exception as raised:  # noqa: BLE001 - a user's function may raise anything, which the picture says
            error = raised
    return _graph(call, recorder, result, error)


def _graph(call: Call, recorder: Recorder, result: Any, error: Exception | None) -> ForeignGraph:
    said = "" if error is None else f"{type(error).__name__}: {error}".strip()
    if error is not None and not any(node.kind == "op" for node in recorder.nodes):
        raise InvalidArgumentError(f"The call failed before any operation: {said}") from error
    outputs: list[InputRef] = [recorder.ref(tensor) for tensor in tensors_of(result)]
    nodes = [replace(node, error=said) if node.name == recorder.failed else node for node in recorder.nodes]
    main = ForeignFunction("main", outputs=tuple(outputs), output_names=("",) * len(outputs), nodes=placed_states(nodes))
    main.inputs = tuple([node.outputs[0] for node in nodes if node.kind == "input"])
    name = getattr(call.function, "__name__", type(call.function).__name__)
    found = ForeignGraph("PyTorch call", main, producer=f"PyTorch {torch.__version__}", name=name)
    if said:
        found.notes.append(f"The call failed: {said}")
    return found


def _counterpart(function: Any, module: Any, copied: Any) -> Callable[..., Any]:
    """The function to call: that of the copied module."""
    found: Callable[..., Any] = function if copied is None else copied if function is module else partial(function.__func__, copied)
    return found


def _states(module: Any) -> dict[int, tuple[str, str]]:
    found: dict[int, tuple[str, str]] = {}
    if module is not None:
        found.update({id(tensor): (name, "buffer") for name, tensor in module.named_buffers()})
        found.update({id(tensor): (name, "parameter") for name, tensor in module.named_parameters()})
    return found


def _named_tensors(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The tensors among the arguments, named as the parameters are."""
    called = function.forward if isinstance(function, torch.nn.Module) else function
    try:
        given = inspect.signature(called).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        given = {**{f"argument_{place}": value for place, value in enumerate(args)}, **kwargs}
    for name, value in given.items():
        tensors = tensors_of(list(value.values()) if isinstance(value, dict) else value)
        for place, tensor in enumerate(tensors):
            yield name if len(tensors) == 1 else f"{name}_{place}", tensor


def _follow(module: Any, recorder: Recorder) -> None:
    """Tell the recorder which module of a copy is called."""
    for path, part in module.named_modules():
        kind = type(part).__name__
        part.register_forward_pre_hook(lambda _module, _args, path=path, kind=kind: recorder.enter(path, kind))
        part.register_forward_hook(lambda _module, _args, _result: recorder.leave(), always_call=True)


@contextmanager
def _kept_random_states() -> Iterator[None]:
    """Set the generators of Python, NumPy and PyTorch back at the end."""
    python, own = random.getstate(), torch.get_rng_state()
    numpy = sys.modules.get("numpy")
    drawn = None if numpy is None else numpy.random.get_state()
    try:
        yield
    finally:
        random.setstate(python)
        torch.set_rng_state(own)
        if numpy is not None:
            numpy.random.set_state(drawn)
