"""The state that a call may change, kept and set back after it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final

import numpy as np

from graphcore.frontends.function_values import values_used_by
from graphcore.support.critical_section import critical_section
from graphcore.support.kept_objects import way_of_container
from graphcore.support.random_states import way_back

torch: Any = import_module("torch")
_modes: Any = import_module("torch.autograd.grad_mode")
_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None), type, FunctionType, ModuleType)
_LAZY: Final = torch.nn.parameter.UninitializedTensorMixin
_MAX_DEPTH: Final = 8
_CHANGES: Final = frozenset({"__setitem__", "__set__"})


class Kept:
    """Keeps what a call may change: modules, tensors, optimizers, generators, lists, tables.

    Buffers and gradients are copied at once. A parameter or an argument is copied just before the first operation that changes it, so that
    a large model takes no more memory than the call itself.
    """

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._objects: list[Any] = []
        self._back: list[Callable[[], object]] = []
        self._tensors: list[_KeptTensor] = []
        self._by_storage: dict[int, list[_KeptTensor]] = {}

    def keep(self, values: Iterable[object]) -> None:
        """Keep the state of some objects, and of what they hold."""
        for value in values:
            self._visit(value, 0)

    def keep_variables(self, function: object) -> None:
        """Keep generators and PyTorch's objects that a function takes from variables around it."""
        for value in values_used_by(function):
            if way_back(value) is not None or any(kind.__module__.partition(".")[0] == "torch" for kind in type(value).__mro__):
                self._visit(value, 0)

    def before(self, func: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Copy the kept tensors that an operation is about to change."""
        name = getattr(func, "__name__", "")
        if "out" in kwargs:
            self._copy(kwargs["out"])
        if name in _CHANGES or (name.endswith("_") and (not name.endswith("__") or name.startswith("__i"))):
            self._copy(args)

    def holds(self, tensor: Any) -> bool:
        """True for a tensor whose elements are set back, and for views of it."""
        return any(kept.copy is not None for kept in self._by_storage.get(_storage_of(tensor), ()))

    def knows(self, tensor: Any) -> bool:
        """True for a tensor that is kept, and for views of it."""
        return _storage_of(tensor) in self._by_storage

    def set_back(self) -> None:
        """Set everything back, undisturbed by Ctrl-C."""
        with critical_section, torch._C.DisableTorchFunction(), torch.no_grad():
            self._set_back()

    def _set_back(self) -> None:
        errors: list[Exception] = []
        for back in (*reversed(self._back), *[kept.set_back for kept in self._tensors]):
            try:
                back()
            except Exception as error:  # noqa: BLE001 - an object of the user's may refuse; the others are set back all the same
                errors.append(error)
        if errors:
            raise errors[0]

    def _copy(self, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            for kept in self._by_storage.get(_storage_of(value), ()):
                kept.copy_now()
        elif isinstance(value, list | tuple):
            for item in value:
                self._copy(item)

    def _visit(self, value: Any, depth: int) -> None:
        if isinstance(value, _PLAIN) or id(value) in self._seen or depth > _MAX_DEPTH:
            return
        self._seen.add(id(value))
        self._objects.append(value)  # an id is unique only while its object lives
        if isinstance(value, torch.Tensor):
            self._keep_tensor(value, is_copied=depth > 0 and not isinstance(value, torch.nn.Parameter))
            return
        if isinstance(value, torch.nn.Module):
            self._back.append(partial(_set_back_class, value, type(value)))
        back = _way_back(value)
        if back is not None:
            self._back.append(back)
        for item in _parts_of(value):
            self._visit(item, 0 if isinstance(value, torch.nn.Module) else depth + 1)

    def _keep_tensor(self, tensor: Any, *, is_copied: bool) -> None:
        kept = _KeptTensor(tensor)
        self._tensors.append(kept)
        self._by_storage.setdefault(_storage_of(tensor), []).append(kept)
        if is_copied:
            kept.copy_now()
        if tensor.is_leaf and tensor.grad is not None:
            self._visit(tensor.grad, 1)


class _KeptTensor:
    """A tensor as it was.

    Attributes:
        copy: its elements, None while nothing has changed them.
    """

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor
        self._data = tensor.data
        self._class = type(tensor)
        self._needs_grad = tensor.requires_grad
        self._grad = tensor.grad if tensor.is_leaf else None
        self._version = None if is_lazy(tensor) or tensor.is_inference() else _modes._unsafe_preserve_version_counter(tensor)
        self.copy: Any = None

    def copy_now(self) -> None:
        """Copy its elements, unless that was done."""
        if self.copy is None and self._tensor.device.type != "meta" and not is_lazy(self._tensor):
            self.copy = self._data.clone()

    def set_back(self) -> None:
        """Give the tensor its elements, gradient and mode."""
        tensor, data = self._tensor, self._data
        if issubclass(self._class, _LAZY):
            _set_back_class(tensor, self._class)
            tensor.data = data
            return
        if self.copy is not None:
            with self._version or nullcontext():  # so that a backward pass of before the call finds unchanged what it has saved
                data.copy_(self.copy)
        is_other = _storage_of(tensor) != _storage_of(data) or tensor.dtype != data.dtype
        if is_other or (not tensor.is_nested and tensor.shape != data.shape):
            tensor.data = data
        if tensor.is_leaf:
            if tensor.requires_grad != self._needs_grad:
                tensor.requires_grad_(self._needs_grad)
            if tensor.grad is not self._grad:
                tensor.grad = self._grad


def is_lazy(tensor: object) -> bool:
    """True for a parameter or buffer that has no shape before the first call of its module."""
    return isinstance(tensor, _LAZY)


def _set_back_class(value: Any, kind: type) -> None:
    if type(value) is not kind:
        value.__class__ = kind


def _storage_of(tensor: Any) -> int:
    """The address of the elements of a tensor; the identity of one without such, such as a sparse one."""
    try:
        with torch._C.DisableTorchFunctionSubclass():
            return int(tensor.untyped_storage().data_ptr()) or id(tensor)
    except (NotImplementedError, RuntimeError):
        return id(tensor)


def _way_back(value: Any) -> Callable[[], object] | None:
    """A function that sets an object back, without what it holds.

    None for one that never changes, or is not understood.
    """
    if isinstance(value, np.ndarray) and value.flags.writeable:
        return partial(np.copyto, value, value.copy())
    return way_of_container(value) or way_back(value)


def _parts_of(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from [item for item in value.values() if not isinstance(item, _PLAIN)]
    elif isinstance(value, list | tuple | set | frozenset | deque):
        yield from [item for item in value if not isinstance(item, _PLAIN)]
    fields = getattr(value, "__dict__", None)
    if isinstance(fields, dict) and not isinstance(value, MethodType):
        yield fields
