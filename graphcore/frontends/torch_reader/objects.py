"""Objects of PyTorch in words and plain data: types, shapes, ops, tensors. PyTorch itself is never imported."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import ForeignNode, ModuleCall, Port, Size, WeightRef
from graphcore.frontends.torch_reader.tensors import bytes_of, item_type
from graphcore.frontends.torch_reader.traces import class_name, module_call
from graphcore.frontends.words import REPLICATED, SHARDED

if TYPE_CHECKING:
    from graphcore.attrs import Array

_SYMBOLIC: Final = {"SymInt", "SymFloat", "SymBool"}
_HOOK: Final = "_empty_nn_module_stack"


def is_class(value: object, name: str, module: str) -> bool:
    """True iff a value is of a class, or of one derived from it, by names of the class and its module."""
    return any(kind.__name__ == name and kind.__module__.startswith(module) for kind in type(value).__mro__)


def word_of(value: object) -> str:
    """A type, device or layout in PyTorch's words: `float32`."""
    return str(value).removeprefix("torch.")


def sizes_of(shape: object) -> tuple[Size, ...] | None:
    """The sizes of a shape; None if they cannot be listed."""
    try:
        return tuple([int(size) if isinstance(size, int) else str(size) for size in shape])  # type: ignore[attr-defined]  # a shape of torch, which is not imported
    except (TypeError, ValueError, RuntimeError):
        return None


def port_of(name: str, value: Any) -> Port:
    """The type of a value: a tensor, a symbolic number, or metadata of a tensor."""
    kind = type(value).__name__
    if kind in _SYMBOLIC:
        return Port(name, kind, (), f"= {value}")
    if hasattr(value, "dtype") and _has_shape(value):
        layout = word_of(getattr(value, "layout", "strided"))
        return Port(name, word_of(value.dtype), sizes_of(value.shape), "" if layout in {"strided", "None"} else layout)
    if hasattr(value, "dtype"):
        return Port(name, word_of(value.dtype), None, "nested" if getattr(value, "is_nested", False) else "")
    if isinstance(value, bool | int | float):
        return Port(name, kind, ())
    return Port(name)


def device_words(value: Any) -> str:
    """The device of a tensor, `cuda:0`, or its sharding, `sharded dp: Shard(0)`; "" for other values."""
    placements = getattr(value, "placements", None)
    if placements is None:
        device = getattr(value, "device", None)
        return "" if device is None else word_of(device)
    if all(type(placement).__name__ == "Replicate" for placement in placements):
        return REPLICATED
    axes = getattr(value.device_mesh, "mesh_dim_names", None) or range(len(placements))
    words = [f"{axis}: {type(placement).__name__}({_dim(placement)})" for axis, placement in zip(axes, placements, strict=True)]
    return SHARDED + ", ".join(words)


def _dim(placement: Any) -> str:
    return str(getattr(placement, "dim", getattr(placement, "reduce_op", "")))


def with_devices(nodes: Iterable[ForeignNode], tensors: Mapping[tuple[str, int], Any]) -> tuple[list[ForeignNode], str]:
    """The nodes with the devices or shardings of their tensors, where they are not all on one device.

    Args:
        nodes: the nodes.
        tensors: the outputs, by the name of the node and their number.

    Returns:
        The nodes, and the device that all tensors are on, "" if there is no such one.
    """
    devices: dict[str, dict[str, None]] = {}
    for (name, _), tensor in tensors.items():
        words = device_words(tensor)
        if words:
            devices.setdefault(name, {})[words] = None
    named = {words for several in devices.values() for words in several}
    if len(named) < 2:
        return list(nodes), "".join(named)
    return [replace(node, device="; ".join(devices.get(node.name, {}))) for node in nodes], ""


def _has_shape(value: Any) -> bool:
    """True iff a value says its shape; a nested tensor refuses to."""
    try:
        return hasattr(value, "shape")
    except RuntimeError:
        return False


def value_of(meta: Mapping[str, Any]) -> object:
    """The value that a node had when it was traced, or the metadata of it; None if neither is known."""
    for key in ("val", "example_value", "tensor_meta"):
        if meta.get(key) is not None:
            return meta[key]
    return None


def literal(value: object) -> object:
    """A value that is no node as plain data."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, slice):
        return f"{'' if value.start is None else value.start}:{'' if value.stop is None else value.stop}"
    if isinstance(value, complex):
        return f"{value.real}+{value.imag}j"
    return word_of(value)[:200]


def op_of(target: Any) -> str:
    """The name of an op or function: `aten.conv2d.default`, `higher_order.cond`, `torch.relu`."""
    if isinstance(target, str):
        return f"Tensor.{target}"
    kind = type(target).__name__
    if kind == "OpOverload":
        return str(target)
    if is_class(target, "HigherOrderOperator", "torch"):
        return f"higher_order.{getattr(target, '__name__', kind)}"
    if kind == "OpOverloadPacket":
        return str(target)
    name = getattr(target, "__name__", kind)
    module = getattr(target, "__module__", None) or "torch"
    return f"{module.removeprefix('torch._C.').replace('torch._C', 'torch')}.{name}"[:200]


def argument_names(target: Any) -> list[str]:
    """The names of the arguments of an op, as its schema gives them."""
    schema = getattr(target, "_schema", None)
    return [argument.name for argument in schema.arguments] if schema is not None else []


def modules_of(stack: object) -> tuple[ModuleCall, ...]:
    """The modules around a node, from its metadata."""
    if not isinstance(stack, Mapping):
        return ()
    modules = []
    for key, value in stack.items():
        if isinstance(value, tuple) and len(value) == 2 and not str(key).startswith(_HOOK):
            path, kind = value
            modules.append(module_call(str(path), f"{kind.__module__}.{kind.__qualname__}" if isinstance(kind, type) else str(kind)))
    return tuple(modules)


def weight_of_object(tensor: Any) -> WeightRef:
    """A tensor of a program in memory, whose elements are copied when they are asked for."""
    dtype, shape = word_of(tensor.dtype), (sizes_of(tensor.shape) if _has_shape(tensor) else None) or ()
    numbers = tuple([size if isinstance(size, int) else -1 for size in shape])
    is_fake = type(tensor).__name__ == "FakeTensor" or str(getattr(tensor, "device", "")) == "meta"
    return WeightRef(dtype, numbers, bytes_of(dtype, numbers), None if is_fake else partial(_elements, tensor, dtype), "in memory")


def _elements(tensor: Any, dtype: str) -> Array:
    """The elements of a tensor.

    Raises:
        InvalidArgumentError: NumPy lacks its type, or PyTorch cannot copy it.
    """
    kind, torch = item_type(dtype), sys.modules.get("torch")
    if kind is None or torch is None:
        raise InvalidArgumentError(f"A tensor has type {dtype}, whose elements NumPy cannot hold")
    try:
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        return np.array(flat.view(torch.uint8).numpy()).view(kind).reshape(tuple(tensor.shape))
    except (RuntimeError, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"A tensor cannot be read: {str(error)[:200]}") from None


def plain_fields(module: Any) -> dict[str, Any]:
    """The fields of a module that are numbers, texts or tuples of them, such as `kernel_size`."""
    fields = {name: value for name, value in vars(module).items() if not name.startswith("_") and name != "training"}
    return {name: _listed(value) for name, value in fields.items() if _is_plain(value)}


def _is_plain(value: object) -> bool:
    return isinstance(value, bool | int | float | str) or (
        isinstance(value, tuple | list) and len(value) < 20 and all(isinstance(item, bool | int | float | str) for item in value)
    )


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def module_op(module: Any) -> str:
    """The op that stands for the call of a module: `nn.Conv2d`."""
    kind = type(module)
    return f"nn.{kind.__name__}" if kind.__module__.startswith("torch.nn") else class_name(f"{kind.__module__}.{kind.__qualname__}")
