"""Keys of calls: they change with all that the picture of a traced call depends on."""

from __future__ import annotations

import dis
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache, partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

from graphcore.frontends.frontend import Call

_PLAIN: Final = frozenset({bool, int, float, str, bytes, complex, type(None), type(...)})
_MAX_DEPTH: Final = 60
_MAX_ITEMS: Final = 1000
"""The items of a list or table that are looked at; its length is always part of the key."""
_MAX_PARTS: Final = 500_000
_SMALL: Final = 64
"""The bytes of a NumPy array whose elements are part of the key: a traced function may write them into the graph."""
_GLOBALS: Final = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_PROJECT: Final = frozenset({"graphcore", "kernelext", "widgets"})
_PACKAGES: Final = frozenset({"site-packages", "dist-packages"})
_STANDARD: Final = sysconfig.get_paths()["stdlib"]
_STATES: Final = frozenset({"_parameters", "_buffers"})
_LAZY: Final = frozenset({"UninitializedParameter", "UninitializedBuffer"})
"""Tensors that have no shape yet."""
_HOOKS: Final = frozenset(
    {
        *("_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
        *("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_state_dict_hooks", "_state_dict_pre_hooks"),
        *("_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_is_full_backward_hook", "_non_persistent_buffers_set"),
    }
)
"""The attributes of PyTorch's modules for hooks, of which only PyTorch's own are traced: these come with parameters."""


class Same:
    """Is equal only to another one of the same object, which it keeps alive: no other object gets its id."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def state_of(call: Call) -> tuple[object, ...]:
    """A key that changes with the modules, code, variables, types and shapes that a call depends on.

    The elements of tensors are not part of it. Functions and classes of the notebook and of modules beside it count with their code, and with
    the variables that they use; those of installed packages by their names.
    """
    walk = _Walk()
    walk.all((call.function, *call.args, *call.kwargs.items()))
    return (*_settings(), *walk.parts)


def _settings() -> Iterable[object]:
    """The settings of frameworks for the whole process that decide types."""
    torch: Any = sys.modules.get("torch")
    if hasattr(torch, "get_default_dtype"):
        yield from (torch.get_default_dtype(), torch.is_grad_enabled())
    jax: Any = sys.modules.get("jax")
    if hasattr(jax, "config"):
        yield getattr(jax.config, "jax_enable_x64", None)


class _Walk:
    """Writes the parts of a key."""

    def __init__(self) -> None:
        self.parts: list[object] = []
        self._places: dict[int, int] = {}
        self._methods: dict[type, Any] = {}

    def all(self, values: Iterable[Any], depth: int = 0) -> None:
        for value in values:
            self.add(value, depth)

    def add(self, value: Any, depth: int) -> None:
        """Write a value."""
        kind = type(value)
        if kind in _PLAIN:
            self.parts += (kind, value)
            return
        place = self._places.setdefault(id(value), len(self.parts))
        if place != len(self.parts) or depth > _MAX_DEPTH or place > _MAX_PARTS:
            self.parts.append(place)
            return
        write = self._methods.get(kind)
        if write is None:
            write = self._methods[kind] = self._method(kind)
        write(value, depth)

    def _method(self, kind: type) -> Any:
        """The method that writes values of a class."""
        for base, method in (
            *((FunctionType, self._function), (MethodType, self._bound), (partial, self._partial), (ModuleType, self._same)),
            *((type, self._class), (Mapping, self._table), (list | tuple | set | frozenset, self._items)),
        ):
            if issubclass(kind, base):
                return method
        if hasattr(kind, "dtype") and hasattr(kind, "shape"):
            return self._array if kind.__module__ == "numpy" else self._tensor
        if any(base.__module__ == "torch.nn.modules.module" for base in kind.__mro__):
            return self._module
        return self._object

    def _same(self, value: Any, _depth: int) -> None:
        self.parts.append(Same(value))

    def _tensor(self, value: Any, _depth: int) -> None:
        self.parts += (type(value), value.dtype, value.shape, getattr(value, "requires_grad", None), getattr(value, "device", None))

    def _array(self, value: Any, _depth: int) -> None:
        self.parts += (value.dtype, value.shape, value.tobytes() if value.nbytes <= _SMALL and not value.dtype.hasobject else b"")

    def _table(self, value: Any, depth: int) -> None:
        self.parts.append(len(value))
        for number, (key, item) in enumerate(value.items()):
            if number == _MAX_ITEMS:
                return
            self.add(key, depth + 1)
            self.add(item, depth + 1)

    def _items(self, value: Any, depth: int) -> None:
        self.parts += (type(value), len(value))
        for number, item in enumerate(value):
            if number == _MAX_ITEMS:
                return
            self.add(item, depth + 1)

    def _module(self, value: Any, depth: int) -> None:
        """A module of PyTorch, of which a model may have thousands."""
        kind = type(value)
        parts = self.parts
        parts.append(kind)
        if _is_own(kind.__module__):
            self.add(kind, depth + 1)
        for name, item in vars(value).items():
            kind = type(item)
            if kind in _PLAIN:
                parts += (name, kind, item)
            elif name in _STATES:
                self._states(item)
            elif name == "_modules":
                parts += item
                self.all(item.values(), depth + 1)
            elif name not in _HOOKS:
                parts.append(name)
                self.add(item, depth + 1)

    def _states(self, tensors: Mapping[str, Any]) -> None:
        """The parameters or buffers of a module."""
        parts, places = self.parts, self._places
        for name, tensor in tensors.items():
            if tensor is None:
                parts.append(name)
            else:
                shape = tensor.shape if type(tensor).__name__ not in _LAZY else None
                parts += (name, places.setdefault(id(tensor), len(parts)), tensor.dtype, shape, tensor.requires_grad, tensor.device)

    def _object(self, value: Any, depth: int) -> None:
        kind = type(value)
        fields = getattr(value, "__dict__", None)
        wrapped = getattr(value, "__wrapped__", None) if callable(value) else None
        if not isinstance(fields, dict) and wrapped is None:
            self.parts.append(Same(value))
            return
        self.parts.append(kind)
        if _is_own(kind.__module__):
            self.add(kind, depth + 1)
        if wrapped is not None:
            self.add(wrapped, depth + 1)
        if isinstance(fields, dict):
            self._table(fields, depth)

    def _class(self, value: type, depth: int) -> None:
        """A class: with its code and values if it is the user's own."""
        self.parts.append(value.__qualname__)
        for base in value.__mro__:
            if not _is_own(base.__module__):
                self.parts.append(Same(base))
                continue
            for name, item in list(vars(base).items()):
                if not name.startswith("__") or isinstance(item, FunctionType):
                    self.parts.append(name)
                    self.add(getattr(item, "__func__", item), depth + 1)

    def _bound(self, value: Any, depth: int) -> None:
        self.add(value.__func__, depth + 1)
        self.add(value.__self__, depth + 1)

    def _partial(self, value: Any, depth: int) -> None:
        self.all((value.func, *value.args, *value.keywords.items()), depth + 1)

    def _function(self, value: Any, depth: int) -> None:
        """A function: its code, defaults and closure, and the variables that it uses if it is the user's own."""
        code = value.__code__
        self.parts += (code, code.co_filename)
        self.all((value.__defaults__, value.__kwdefaults__), depth + 1)
        for cell in value.__closure__ or ():
            self._cell(cell, depth)
        if "__wrapped__" in vars(value):
            self.add(value.__wrapped__, depth + 1)
        variables = value.__globals__
        if not _is_own(str(variables.get("__name__", ""))):
            return
        for name in _names_in(code):
            if name in variables:
                self.parts.append(name)
                self._variable(variables[name], code, depth)

    def _variable(self, value: Any, code: CodeType, depth: int) -> None:
        """A variable that code uses; of a module of the user those of its variables that the code names."""
        if isinstance(value, ModuleType) and _is_own(value.__name__):
            own = vars(value)
            self.all([own[name] for name in code.co_names if name in own], depth + 1)
        else:
            self.add(value, depth + 1)

    def _cell(self, cell: Any, depth: int) -> None:
        try:
            content = cell.cell_contents
        except ValueError:  # not assigned yet
            return
        self.add(content, depth + 1)


@lru_cache(maxsize=4096)
def _names_in(code: CodeType) -> tuple[str, ...]:
    """The global names that code reads, in the functions within it, too."""
    names = dict.fromkeys([str(part.argval) for part in dis.get_instructions(code) if part.opname in _GLOBALS])
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names.update(dict.fromkeys(_names_in(constant)))
    return tuple(names)


@cache
def _is_own(module: str) -> bool:
    """True for the notebook and for modules beside it, False for installed ones and Python's own."""
    if module == "__main__":
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    if not isinstance(file, str) or module.partition(".")[0] in _PROJECT:
        return False
    path = Path(file)
    return _PACKAGES.isdisjoint(path.parts) and not path.is_relative_to(_STANDARD)
