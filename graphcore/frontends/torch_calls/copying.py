"""Copies of modules, functions and tensors, so that a call leaves the originals as they are."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from types import CellType, FunctionType, MethodType
from typing import Any, Final

from graphcore.frontends.function_values import global_names, is_filled, is_of_user

_MAX_DEPTH: Final = 6
_HOOKS: Final = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Copies:
    """Makes copies for one call.

    The originals are read only: parameters, buffers, attributes, hooks and modes stay as they are.

    Args:
        torch: the library.
        mode: makes the copy of a tensor by `from_tensor`, such as a mode of fake tensors.

    Attributes:
        original: the tensor behind each copy, by the id of the copy.
        modules: the copies of whole modules, with the names under which they were met.
        names: the names under which tensors were met, by the ids of their copies.
    """

    def __init__(self, torch: Any, mode: Any) -> None:
        self._torch = torch
        self._mode = mode
        self._copied: dict[int, Any] = {}
        self._kept: list[Any] = []
        self.original: dict[int, Any] = {}
        self.modules: list[tuple[str, Any]] = []
        self.names: dict[int, str] = {}

    def of_tensor(self, tensor: Any, name: str = "") -> Any:
        """The copy that stands for a tensor."""
        if id(tensor) in self.original:
            return tensor
        found = self._copied.get(id(tensor))
        if found is None:
            # The copy of a result is a leaf: its gradient ends where the call begins.
            leaf = tensor if tensor.is_leaf else tensor.detach().requires_grad_(tensor.requires_grad)
            found = self._keep(tensor, self._mode.from_tensor(leaf))
            self.original[id(found)] = tensor
        if name:
            self.names.setdefault(id(found), name)
        return found

    def of_arguments(self, value: Any, name: str = "") -> Any:
        """Arguments with copies in place of tensors, modules and functions that use them."""
        if isinstance(value, self._torch.Tensor):
            return self.of_tensor(value, name)
        if isinstance(value, self._torch.nn.Module):
            return self.of_module(value, name)
        if type(value) in {list, tuple, set}:
            return type(value)([self.of_arguments(item) for item in value])
        if type(value) is dict:
            return {key: self.of_arguments(item, str(key)) for key, item in value.items()}
        if isinstance(value, MethodType):
            return MethodType(self.of_arguments(value.__func__), self.of_arguments(value.__self__, name))
        if isinstance(value, FunctionType) and is_of_user(value):
            return self._of_function(value)
        return value

    def of_module(self, module: Any, name: str = "") -> Any:
        """The copy of a module. Its hooks are those of PyTorch alone, such as the ones that normalise weights."""
        known = self._copied.get(id(module))
        if known is not None:
            return known
        memo: dict[int, Any] = {}
        parts = list(module.modules())
        for part in parts:
            if id(part) in self._copied:
                memo[id(part)] = self._copied[id(part)]
            for tensor in _tensors(vars(part), self._torch.Tensor, 0):
                memo[id(tensor)] = self.of_tensor(tensor)
        copied = copy.deepcopy(module, memo)
        for part, twin in zip(parts, copied.modules(), strict=True):
            self._keep(part, twin)
            for hooks in [getattr(twin, table) for table in _HOOKS]:
                for key in [key for key, hook in hooks.items() if not _is_own(hook)]:
                    del hooks[key]
        self.modules.append((name, copied))
        return copied

    def _of_function(self, function: FunctionType) -> Any:
        """A function of the user with copies in place of the tensors, modules and functions that it uses."""
        known = self._copied.get(id(function))
        if known is not None:
            return known
        variables = self._copied.get(id(function.__globals__))
        if variables is None:
            variables = self._keep(function.__globals__, dict(function.__globals__))
        cells = tuple([self._of_cell(cell) for cell in function.__closure__ or ()])
        made = FunctionType(function.__code__, variables, function.__name__, function.__defaults__, cells)
        made.__kwdefaults__ = function.__kwdefaults__
        made.__dict__.update(function.__dict__)
        self._keep(function, made)
        for cell, twin, name in zip(function.__closure__ or (), cells, function.__code__.co_freevars, strict=True):
            if is_filled(cell) and twin.cell_contents is cell.cell_contents:
                twin.cell_contents = self.of_arguments(cell.cell_contents, name)
        for name in global_names(function.__code__):
            if name in variables and variables[name] is function.__globals__.get(name):
                variables[name] = self.of_arguments(variables[name], name)
        return made

    def _of_cell(self, cell: CellType) -> CellType:
        known: CellType | None = self._copied.get(id(cell))
        if known is None:
            known = self._keep(cell, CellType(cell.cell_contents) if is_filled(cell) else CellType())
        return known

    def _keep(self, original: Any, copied: Any) -> Any:
        """Note a copy. Originals are kept, since an id is unique only while its object lives."""
        self._kept.append(original)
        self._copied[id(original)] = copied
        return copied


def _tensors(value: Any, kind: type, depth: int) -> Iterator[Any]:
    if isinstance(value, kind):
        yield value
    elif depth < _MAX_DEPTH and isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item, kind, depth + 1)
    elif depth < _MAX_DEPTH and isinstance(value, list | tuple | set):
        for item in value:
            yield from _tensors(item, kind, depth + 1)


def _is_own(hook: Any) -> bool:
    module = getattr(hook, "__module__", None) or type(hook).__module__
    return str(module).partition(".")[0] == "torch"
