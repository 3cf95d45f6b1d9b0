"""Modules that a trace must prepare: lazy ones, wrappers, and those that run outside of Python."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.torch_calls.recording import Recorder, tensors_of
from graphcore.frontends.torch_calls.wrappers import inside, without_wrappers
from graphcore.frontends.torch_reader.objects import is_class

if TYPE_CHECKING:
    from graphcore.frontends.frontend import Call

torch: Any = import_module("torch")
_overrides: Any = import_module("torch.overrides")
_fakes: Any = import_module("torch._subclasses.fake_tensor")


def unwrapped(call: Call) -> Call:
    """The call of what is inside of wrappers, which fix arguments, compile or distribute.

    Raises:
        InvalidArgumentError: it cannot be followed.
    """
    function, args, kwargs = without_wrappers(call.function, tuple(call.args), call.kwargs)
    owner = getattr(function, "__self__", function)
    if is_class(owner, "ScriptModule", "torch.jit") or is_class(owner, "ScriptFunction", "torch"):
        raise InvalidArgumentError(
            "A scripted module runs outside of Python, so that its call cannot be followed. Show the module itself: gc.show(model)"
        )
    return replace(call, function=function, args=args, kwargs=kwargs)


def unwrap_parts(root: Any) -> None:
    """Take wrappers off the parts of a copied module, and have each scripted one written down whole."""
    for part in list(root.modules()):
        for name, child in list(part._modules.items()):
            wrapped = None if child is None else inside(child)
            if wrapped is not None:
                part._modules[name] = wrapped
            elif is_class(child, "ScriptModule", "torch.jit"):
                part._modules[name] = _Scripted(child)
        if getattr(part, "_compiled_call_impl", None) is not None:
            part._compiled_call_impl = None


def follow_lazy_modules(root: Any, recorder: Recorder, mode: Any, states: dict[int, tuple[str, str]]) -> None:
    """Let the lazy parts of a copied module get their parameters at their first calls."""
    for part in root.modules():
        if is_class(part, "LazyModuleMixin", "torch") and part.has_uninitialized_params():
            part._initialize_hook.remove()
            path = recorder.modules_by_id[id(part)].path
            part.register_forward_pre_hook(_Initialization(path, mode, states), with_kwargs=True, prepend=True)


class _Scripted(torch.nn.Module):  # type: ignore[misc]  # the class is known where torch is
    """Stands for a scripted module: one operation."""

    def __init__(self, scripted: Any) -> None:
        super().__init__()
        self._scripted = [scripted]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the scripted module, and write it down."""
        return _run_scripted(self._scripted[0], args, kwargs)


def _run_scripted(scripted: Any, args: Any, kwargs: Any) -> Any:
    """Run a scripted module as a function that modes see."""
    if _overrides.has_torch_function(tensors_of([*args, *kwargs.values()])):
        return _overrides.handle_torch_function(_run_scripted, tensors_of([*args, *kwargs.values()]), scripted, args, kwargs)
    return scripted(*args, **kwargs)


class _Initialization:
    """Gives a lazy module its parameters at its first call, of the shapes that fit its input.

    Args:
        path: the path of the module.
        mode: the mode of fake tensors.
        states: the names and kinds of tensors, to which those of the module are added.
    """

    def __init__(self, path: str, mode: Any, states: dict[int, tuple[str, str]]) -> None:
        self._path = path
        self._mode = mode
        self._states = states

    def __call__(self, module: Any, args: Any, kwargs: Any) -> None:
        """Initialize the module, unless that is done."""
        if not module.has_uninitialized_params():
            return
        with torch._C.DisableTorchFunction(), _fakes.unset_fake_temporarily():
            plain = [
                torch.empty(tuple(value.shape), dtype=value.dtype, device="meta") if isinstance(value, torch.Tensor) else value
                for value in args
            ]
            devices = _devices(module)
            for table in (module._parameters, module._buffers):
                _to_meta(table)
            module.initialize_parameters(*plain, **kwargs)
        for table, kind in ((module._parameters, "parameter"), (module._buffers, "buffer")):
            for name, tensor in table.items():
                if tensor is not None:
                    self._replace(table, name, tensor, devices[name], kind)
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replace(self, table: Any, name: str, tensor: Any, device: Any, kind: str) -> None:
        with torch._C.DisableTorchFunction(), self._mode:
            made = torch.empty(tuple(tensor.shape), dtype=tensor.dtype, device=device)
        table[name] = torch.nn.Parameter(made, tensor.requires_grad) if kind == "parameter" else made
        self._states[id(table[name])] = f"{self._path}.{name}" if self._path else name, kind


def _devices(module: Any) -> dict[str, Any]:
    return {name: tensor.device for name, tensor in (*module._parameters.items(), *module._buffers.items()) if tensor is not None}


def _to_meta(table: Any) -> None:
    for name, tensor in table.items():
        if tensor is None:
            continue
        kind = type(tensor)
        table[name] = (
            kind(requires_grad=tensor.requires_grad, device="meta", dtype=tensor.dtype) if hasattr(tensor, "materialize") else tensor
        )
