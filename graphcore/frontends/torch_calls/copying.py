"""Copies of modules, functions and tensors, so that a call leaves the originals as they are."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import CellType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any, Final

from graphcore.frontends.function_values import global_names, is_filled, is_of_user, is_wrapper
from graphcore.frontends.torch_calls.parts import copied_in_parts, rebuilt
from graphcore.frontends.torch_calls.transforms import outside_of_transforms
from graphcore.frontends.torch_reader.objects import is_class
from graphcore.support.random_states import way_back

_MAX_DEPTH: Final = 6
_MAX_SEEN: Final = 1000
_HOOKS: Final = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Twins:
    """Makes copies of tensors with their values, leaves as they are."""

    def from_tensor(self, tensor: Any) -> Any:
        """The copy of a tensor, with memory of its own."""
        with outside_of_transforms():
            twin = tensor.detach().clone()
            is_parameter = type(tensor).__name__ == "Parameter"
            return type(tensor)(twin, tensor.requires_grad) if is_parameter else twin.requires_grad_(tensor.requires_grad)


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
        twin = self._copied.get(id(tensor))
        if twin is None:
            # The copy of a result is a leaf: its gradient ends where the call begins.
            leaf = tensor if tensor.is_leaf else tensor.detach().requires_grad_(tensor.requires_grad)
            twin = self._keep(tensor, self._mode.from_tensor(leaf))
            self.original[id(twin)] = tensor
        if name:
            self.names.setdefault(id(twin), name)
        return twin

    def twin_of(self, tensor: Any) -> Any:
        """The copy of a tensor, None if it was not met."""
        return self._copied.get(id(tensor))

    def of_arguments(self, value: Any, name: str = "") -> Any:
        """Arguments with copies in place of tensors, modules and functions that use them."""
        if isinstance(value, self._torch.Tensor):
            return self.of_tensor(value, name)
        if isinstance(value, self._torch.nn.Module):
            return self.of_module(value, name)
        if isinstance(value, self._torch.optim.Optimizer):
            return self._of_optimizer(value)
        if isinstance(value, self._torch.optim.lr_scheduler.LRScheduler):
            return self._of_scheduler(value)
        if way_back(value) is not None:
            return self._of_generator(value)
        if isinstance(value, MethodType):
            return MethodType(self.of_arguments(value.__func__), self._of_owner(value.__self__, name))
        if isinstance(value, FunctionType):
            return self._of_function(value) if is_of_user(value) or is_wrapper(value) else value
        if type(value) is partial:
            parts = [self.of_arguments(part, name) for part in (value.func, value.args, value.keywords)]
            return partial(parts[0], *parts[1], **parts[2])
        if isinstance(value, list | tuple | set | Mapping) or is_dataclass(value):
            return self._of_structure(value)
        return self._of_object(value)

    def of_module(self, module: Any, name: str = "") -> Any:
        """The copy of a module. Its hooks are those of PyTorch alone, such as the ones that normalise weights."""
        cached = self._copied.get(id(module))
        if cached is not None:
            return cached
        memo: dict[int, Any] = {}
        parts = list(module.modules())
        for part in parts:
            if id(part) in self._copied:
                memo[id(part)] = self._copied[id(part)]
            for tensor in _tensors(vars(part), self._torch.Tensor, 0):
                if not is_class(tensor, "UninitializedTensorMixin", "torch"):
                    memo[id(tensor)] = self.of_tensor(tensor)
        copied = copied_in_parts(module, memo, self._torch.nn.Module)
        for part in parts:
            self._keep(part, memo.get(id(part), part))
        own = {id(part) for part in parts}
        # Of a copy of Keras there may be more, since it registers its variables anew.
        for twin in [twin for twin in copied.modules() if id(twin) not in own]:
            for hooks in [getattr(twin, table) for table in _HOOKS]:
                for key in [key for key, hook in hooks.items() if not _is_own(hook)]:
                    del hooks[key]
        self.modules.append((name, copied))
        return copied

    def _of_function(self, function: FunctionType) -> Any:
        """A function of the user, or a wrapper of one, with copies of the values that it uses."""
        cached = self._copied.get(id(function))
        if cached is not None:
            return cached
        is_own = is_of_user(function)
        variables = self._copied.get(id(function.__globals__)) if is_own else function.__globals__
        if variables is None:
            variables = self._keep(function.__globals__, dict(function.__globals__))
        cells = tuple([self._of_cell(cell) for cell in function.__closure__ or ()])
        made = FunctionType(function.__code__, variables, function.__name__, self.of_arguments(function.__defaults__), cells)
        made.__kwdefaults__ = self.of_arguments(function.__kwdefaults__)
        made.__dict__.update(function.__dict__)
        self._keep(function, made)
        for cell, twin, name in zip(function.__closure__ or (), cells, function.__code__.co_freevars, strict=True):
            if is_filled(cell) and twin.cell_contents is cell.cell_contents:
                twin.cell_contents = self._of_variable(cell.cell_contents, name)
        for name in global_names(function.__code__) if is_own else ():
            if name in variables and variables[name] is function.__globals__.get(name):
                variables[name] = self._of_variable(variables[name], name)
        return made

    def _of_variable(self, value: Any, name: str) -> Any:
        """Like `of_arguments` for a variable around a function.

        Other objects and long lists, such as data sets, are used as they are; short ones are copied without their items.
        """
        optim = self._torch.optim
        kinds: tuple[Any, ...] = (optim.Optimizer, optim.lr_scheduler.LRScheduler, FunctionType, partial, MethodType)
        kinds += (self._torch.Tensor, self._torch.nn.Module)
        is_short = type(value) in {list, tuple, dict, set} and len(value) <= _MAX_SEEN
        if isinstance(value, kinds) or (is_short and _holds(value, kinds, 0)) or way_back(value) is not None:
            return self.of_arguments(value, name)
        if is_short and id(value) not in self._copied:
            self._keep(value, copy.copy(value))  # to which a step may add
        return self._copied[id(value)] if is_short else value

    def _of_owner(self, owner: Any, name: str) -> Any:
        """The object of a method: the copy of a module, or of an object with copies in its attributes."""
        if isinstance(owner, self._torch.nn.Module | self._torch.Tensor | type) or not hasattr(owner, "__dict__"):
            return self.of_arguments(owner, name)
        if id(owner) in self._copied or not is_of_user(type(owner).__dict__.get("__init__", _of_user)):
            return self._copied.get(id(owner), owner)
        try:
            made = copy.copy(owner)
        except Exception:  # noqa: BLE001 - an object that cannot be copied is used as it is
            return owner
        self._keep(owner, made)
        vars(made).update({key: self._of_variable(item, key) for key, item in vars(owner).items()})
        return made

    def _of_optimizer(self, optimizer: Any) -> Any:
        if id(optimizer) not in self._copied:
            groups = [tensor for group in optimizer.param_groups for tensor in group["params"]]
            states = [item for state in optimizer.state.values() for item in state.values() if isinstance(item, self._torch.Tensor)]
            memo = {id(tensor): self.of_tensor(tensor) for tensor in (*groups, *states)}
            self._keep(optimizer, copy.deepcopy(optimizer, memo))
        return self._copied[id(optimizer)]

    def _of_scheduler(self, scheduler: Any) -> Any:
        """The copy of a scheduler of learning rates, for the copy of its optimizer."""
        if id(scheduler) not in self._copied:
            memo = {id(scheduler.optimizer): self._of_optimizer(scheduler.optimizer)}
            self._keep(scheduler, copy.deepcopy(scheduler, memo))
        return self._copied[id(scheduler)]

    def _of_generator(self, generator: Any) -> Any:
        if id(generator) not in self._copied:
            self._keep(generator, generator.clone_state() if hasattr(generator, "clone_state") else copy.deepcopy(generator))
        return self._copied[id(generator)]

    def _of_structure(self, value: Any) -> Any:
        kind = type(value)
        if kind in {list, tuple, set}:
            return kind([self.of_arguments(item) for item in value])
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return kind(*[self.of_arguments(item) for item in value])
        if isinstance(value, Mapping):
            copied = {key: self.of_arguments(item, str(key)) for key, item in value.items()}
            return copied if kind is dict else rebuilt(value, copied)
        if is_dataclass(value):
            return rebuilt(value, {part.name: self.of_arguments(getattr(value, part.name)) for part in fields(value) if part.init})
        return value

    def _of_object(self, value: Any) -> Any:
        """A copy of an object, such as a cache that a model adds to; the object if it cannot be copied."""
        if (
            not hasattr(value, "__dict__")
            or isinstance(value, ModuleType | GeneratorType | type)
            or callable(getattr(value, "__get__", None))
        ):
            return value
        if id(value) in self._copied:
            return self._copied[id(value)]
        memo = {id(tensor): self.of_tensor(tensor) for tensor in _tensors_in(value, self._torch.Tensor, set(), 0)}
        try:
            return self._keep(value, copy.deepcopy(value, memo))
        except Exception:  # noqa: BLE001 - an object may refuse in any way to be copied
            return value

    def _of_cell(self, cell: CellType) -> CellType:
        cached: CellType | None = self._copied.get(id(cell))
        if cached is None:
            cached = self._keep(cell, CellType(cell.cell_contents) if is_filled(cell) else CellType())
        return cached

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


def _of_user() -> None:
    """A function as a user's, for classes without one of their own."""


def _holds(value: Any, kinds: Any, depth: int) -> bool:
    """True iff a list or table holds values of some classes."""
    items = list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, list | tuple | set) else []
    return isinstance(value, kinds) or (depth < _MAX_DEPTH and any(_holds(item, kinds, depth + 1) for item in items))


def _tensors_in(value: Any, kind: type, seen: set[int], depth: int) -> Iterator[Any]:
    """The tensors in an object, its attributes, lists and tables."""
    if isinstance(value, kind):
        yield value
    if isinstance(value, bool | int | float | str | bytes | type | FunctionType | kind) or id(value) in seen:
        return
    if depth > _MAX_DEPTH or len(seen) > _MAX_SEEN:
        return
    seen.add(id(value))
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple | set) else ()
    for part in [*parts, *getattr(value, "__dict__", {}).values()]:
        yield from _tensors_in(part, kind, seen, depth + 1)


def _is_own(hook: Any) -> bool:
    module = getattr(hook, "__module__", None) or type(hook).__module__
    return str(module).partition(".")[0] == "torch"
