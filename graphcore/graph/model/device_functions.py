"""Devices of new nodes: chosen by functions (`with gc.device(function):`), or those of other nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from graphcore.brief import brief
from graphcore.definitions import NodeDef
from graphcore.device_spec import DeviceSpec
from graphcore.errors import InvalidArgumentError

_ANY_DEVICE: Final = {"cpu": "/device:CPU:*", "gpu": "/device:GPU:*"}


class NewOperation:
    """A node that is about to be made, as a device function sees it.

    Attributes:
        node_def: its definition, with the device requested within the function's block.
        inputs: its data inputs.
        name, type, device: those of `node_def`.
    """

    def __init__(self, node_def: NodeDef, inputs: Sequence[Any]) -> None:
        self.node_def = node_def
        self.inputs = list(inputs)
        self.name = node_def.name
        self.type = node_def.op
        self.device = node_def.device

    def get_attr(self, name: str) -> Any:
        """The value of an attr.

        Raises:
            InvalidArgumentError: there is none of that name.
        """
        if name not in self.node_def.attr:
            raise InvalidArgumentError(f"Operation '{self.name}' has no attr named '{name}'", node=self.name, attr=name)
        return self.node_def.attr[name]


DeviceFunction = Callable[[NewOperation], str | DeviceSpec]
DeviceFunctions = tuple[tuple[DeviceFunction, str], ...]
"""Functions, each with the request that surrounds it, outermost first."""


def parsed_device(spec: str | DeviceSpec) -> DeviceSpec:
    """The parts of a device request; a leading "/" may be left out or doubled, as in "cpu:0".

    Raises:
        InvalidArgumentError: the text names no device.
    """
    if isinstance(spec, DeviceSpec):
        return spec
    if not isinstance(spec, str):
        raise InvalidArgumentError(f"A device must be a text such as '/cpu:0', a gc.DeviceSpec, a function or None, got {brief(spec)}")
    parts = [_ANY_DEVICE.get(part.lower(), f"/{part}") for part in spec.split("/") if part]
    return DeviceSpec.parse("".join(parts) if all(part.startswith("/") for part in parts) and parts else spec)


def with_chosen_device(node_def: NodeDef, inputs: Sequence[Any], functions: DeviceFunctions) -> NodeDef:
    """`node_def` with the device that functions choose, innermost first.

    Args:
        node_def: a node with the request made within the innermost function's block.
        inputs: its data inputs.
        functions: each with the request that surrounds it, outermost first. A function's choice replaces what was requested within
            its block, and the surrounding request adds the parts that it leaves open.
    """
    for function, around in reversed(functions):
        chosen = function(NewOperation(node_def, inputs))
        if not isinstance(chosen, str | DeviceSpec):
            raise InvalidArgumentError(
                f"A device function must return a text such as '/cpu:0', got {brief(chosen)} for '{node_def.name}'", node=node_def.name
            )
        device = parsed_device(chosen) if chosen else DeviceSpec()
        whole = device.merge_unset(parsed_device(around)) if around else device
        node_def = msgspec.structs.replace(node_def, device=whole.to_string())
    return node_def


def with_colocation(attrs: Mapping[str, Any], groups: tuple[bytes, ...]) -> Mapping[str, Any]:
    """Attrs with further groups in `_class`."""
    if not groups:
        return attrs
    own = [group.encode() if isinstance(group, str) else group for group in attrs.get("_class", ())]
    return {**attrs, "_class": tuple(sorted({*own, *groups}))}
