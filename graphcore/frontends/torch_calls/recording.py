"""A mode of PyTorch that writes down each function called on tensors."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, Final

from graphcore.frontends.foreign import ForeignNode, ModuleCall, Port, SourceFrame
from graphcore.frontends.torch_reader.arguments import Named, collect
from graphcore.frontends.torch_reader.objects import literal, port_of, weight_of_object
from graphcore.frontends.unique_names import UniqueNames

overrides: Any = import_module("torch.overrides")
torch: Any = import_module("torch")
_LIBRARY: Final = str(Path(torch.__file__).parent)
_HERE: Final = str(Path(__file__).parent)
_MAX_FRAMES: Final = 32
_QUIET: Final = frozenset({"__set__", "size", "dim", "stride", "is_floating_point", "numel", "type", "__len__", "is_complex"})
_OUTSIDE: Final = (ModuleCall(""),)
_VIEWS: Final = frozenset({"T", "mT", "H", "mH", "real", "imag", "data"})
"""The properties of tensors that are tensors made of them."""


class Recorder(overrides.TorchFunctionMode):  # type: ignore[misc]  # the class is known where torch is
    """Writes down the calls made in it.

    Args:
        states: paths of the tensors of the module, by the ids of fake tensors.
        original: the tensor behind a fake one, by the id of the fake one.

    Attributes:
        nodes: what was called, inputs first.
        failed: the node at which the call ended with an error, "" if it did not.
        names: the names of nodes, which are unique.
    """

    def __init__(self, states: Mapping[int, tuple[str, str]], original: Mapping[int, Any]) -> None:
        super().__init__()
        self.nodes: list[ForeignNode] = []
        self.failed = ""
        self._states = states
        self._original = original
        self._refs: dict[int, tuple[str, int]] = {}
        self._kept: list[Any] = []
        self.names = UniqueNames()
        self._modules: list[ModuleCall] = []

    def enter(self, path: str, kind: str) -> None:
        """A module is called."""
        self._modules.append(ModuleCall(path, kind))

    def leave(self) -> None:
        """The module that was called last has returned."""
        self._modules.pop()

    def add_input(self, name: str, tensor: Any) -> None:
        """A tensor that is given."""
        self._add(ForeignNode(self.names.unique(name), "torch.Input", outputs=(port_of(name, tensor),), kind="input"), [tensor])

    def ref(self, tensor: Any) -> tuple[str, int]:
        """The node and output that a tensor comes from; one that is not known yet is a state or a constant."""
        found = self._refs.get(id(tensor))
        if found is None:
            path, kind = self._states.get(id(tensor), ("constant", "constant"))
            weight = weight_of_object(self._original.get(id(tensor), tensor))
            name = self.names.unique(path)
            node = ForeignNode(name, f"torch.{kind.capitalize()}", outputs=(port_of(path, tensor),), weight=weight, kind=kind)
            self._add(node, [tensor])
            found = name, 0
        return found

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Call a function, and write down what it takes and gives."""
        kwargs = kwargs or {}
        try:
            result = func(*args, **kwargs)
        except Exception:
            if not self.failed:
                self.failed = self._call(func, args, kwargs, None)
            raise
        outputs = tensors_of(args[0] if name_of(func) == "__setitem__" else result)
        if outputs and not is_quiet(func):
            self._call(func, args, kwargs, outputs)
        return result

    def _call(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], outputs: list[Any] | None) -> str:
        given = [("", self._plain(value)) for value in args] + [(key, self._plain(value)) for key, value in kwargs.items()]
        collected = collect(given, self._named, {})
        title = _title(func)
        name = self.names.unique(title.rpartition(".")[2])
        node = ForeignNode(
            name,
            title,
            tuple(collected.inputs),
            (Port(),) if outputs is None else tuple([port_of("", tensor) for tensor in outputs]),
            tuple(collected.names),
            collected.attrs,
            modules=tuple(self._modules) or _OUTSIDE,
            frames=frames_of(sys._getframe(2)),
        )
        self._add(node, outputs or [])
        return name

    def _plain(self, value: Any) -> object:
        """An argument as plain data, tensors as `Named`."""
        if isinstance(value, torch.Tensor):
            name, place = self.ref(value)
            return Named(f"{place}:{name}")
        if isinstance(value, Mapping):
            return {str(key): self._plain(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._plain(item) for item in value]
        return literal(value)

    def _named(self, text: str) -> tuple[str, int]:
        place, _, name = text.partition(":")
        return name, int(place)

    def _add(self, node: ForeignNode, tensors: Any) -> None:
        self.nodes.append(node)
        for place, tensor in enumerate(tensors):
            self._refs[id(tensor)] = node.name, place
            self._kept.append(tensor)  # an id is unique only while its object lives


def tensors_of(value: Any) -> list[Any]:
    """The tensors in a value: one, or those in lists and tables."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in tensors_of(item)]
    return []


def name_of(func: Any) -> str:
    """The name of a function; of the reading of a property, that of the property."""
    name: str = getattr(func, "__name__", type(func).__name__)
    return str(getattr(getattr(func, "__self__", None), "__name__", name)) if name == "__get__" else name


def is_quiet(func: Any) -> bool:
    """True for functions that are not shown: they read sizes, types and the like."""
    is_property = getattr(func, "__name__", "") == "__get__"
    return name_of(func) not in _VIEWS if is_property else name_of(func) in _QUIET


def _title(func: Any) -> str:
    """The name under which users know a function."""
    plain = name_of(func).strip("_")
    module = getattr(func, "__module__", "") or ""
    if module.startswith("torch.nn.functional") or module == "torch._C._nn":
        return f"torch.nn.functional.{plain}"
    return f"torch.{plain}"


def frames_of(frame: FrameType | None) -> tuple[SourceFrame, ...]:
    """The lines around a call that are not PyTorch's own, the innermost last."""
    found: list[SourceFrame] = []
    while frame is not None and len(found) < _MAX_FRAMES:
        file = frame.f_code.co_filename
        if not file.startswith((_LIBRARY, _HERE)):
            found.append(SourceFrame(file, frame.f_lineno, linecache.getline(file, frame.f_lineno).strip(), frame.f_code.co_name))
        frame = frame.f_back
    return tuple(reversed(found))
