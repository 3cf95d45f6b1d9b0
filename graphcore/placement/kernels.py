"""Kernels by device type: the types of devices on which an op can run, and its preference among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from graphcore.attrs import AttrValue
from graphcore.device_spec import DeviceSpec
from graphcore.dtypes import DType, as_dtype, string
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Node
from graphcore.placement.device import device_type_priority
from graphcore.registry import OpRegistration

DeviceTypes = tuple[tuple[str, int], ...]
"""Device types with the priority of the kernel there, best first."""
_HOST: Final = "CPU"


class KernelRegistration(msgspec.Struct, frozen=True):
    """A kernel of an op on devices of one type.

    Args:
        device_type: the type of device.
        priority: a preference among the kernels of the op; it goes before the priorities of device types.
        constraints: the dtypes allowed in a type attr, by the name of the attr.
    """

    device_type: str
    priority: int = 0
    constraints: tuple[tuple[str, tuple[DType, ...]], ...] = ()

    def allows(self, attrs: Mapping[str, AttrValue]) -> bool:
        """True iff every constrained attr has allowed dtypes only."""
        for name, allowed in self.constraints:
            value = attrs.get(name)
            types = value if isinstance(value, tuple) else (value,)
            if any(dtype not in allowed for dtype in types):
                return False
        return True

    def __str__(self) -> str:
        text = f"device='{self.device_type}'"
        for name, allowed in self.constraints:
            text += f"; {name} in [{', '.join([dtype.enum_name for dtype in allowed])}]"
        return text + (f"; priority={self.priority}" if self.priority else "")


_registered: Final[dict[str, list[KernelRegistration]]] = {}


def register_kernel(
    op: str, device_type: str, priority: int = 0, constraints: Mapping[str, Iterable[DType | str] | DType | str] | None = None
) -> None:
    """Declare that an op has a kernel on devices of a type, beside those that its block declares.

    Registering a kernel again has no effect.

    Args:
        op: the name of the op; it may be registered later.
        device_type: the type of device, such as `GPU`.
        priority: the kernel of the highest priority decides the device type of a node, before the priority of the device types.
        constraints: allowed dtypes by type attr, such as `{"T": [gc.float32]}`.

    Raises:
        InvalidArgumentError: the type is no name of a device type, or a constraint names no dtype.
    """
    DeviceSpec.parse(f"/device:{device_type}:0")
    limits = [(name, _dtypes(allowed)) for name, allowed in (constraints or {}).items()]
    kernel = KernelRegistration(device_type, priority, tuple(limits))
    kernels = _registered.setdefault(op, [])
    if kernel not in kernels:
        kernels.append(kernel)


def _dtypes(allowed: Iterable[DType | str] | DType | str) -> tuple[DType, ...]:
    several = [allowed] if isinstance(allowed, DType | str) else list(allowed)
    return tuple([as_dtype(dtype) for dtype in several])


def kernels_of(registration: OpRegistration, *, of_strings: bool = False) -> list[KernelRegistration]:
    """The kernels of an op: those that its block declares, then the registered ones in order.

    Args:
        registration: the op.
        of_strings: True for a node with strings among its inputs or outputs, which a kernel on an array module has on the host only.
    """
    declared = registration.traits.device_types if registration.kernel is not None else ()
    kernels = [KernelRegistration(name) for name in declared if name == _HOST or not of_strings]
    return kernels + _registered.get(registration.op_def.name, [])


class KernelLookup:
    """Looks up the device types on which nodes have kernels, among given ones.

    Args:
        device_types: the types to choose from, in the order of preference.
        local: the address of this process; a node without kernels may be requested at another one, which may have them.
    """

    def __init__(self, device_types: Sequence[str], local: DeviceSpec) -> None:
        self.device_types = tuple(device_types)
        self.local = local
        self._plain: dict[object, DeviceTypes] = {}

    def supported(self, node: Node) -> DeviceTypes:
        """The supported device types of a node, those with the highest priority of a kernel first."""
        registration = node.registration
        key = (registration, node.input_types, node.output_types)
        types = self._plain.get(key)
        if types is None:
            kernels = kernels_of(registration, of_strings=_has_strings(node))
            types = self._among(node, kernels)
            if types and not any(kernel.constraints for kernel in kernels):
                self._plain[key] = types
        return types

    def _among(self, node: Node, kernels: Sequence[KernelRegistration]) -> DeviceTypes:
        if node.registration.is_function:
            return tuple([(name, 0) for name in self.device_types])
        types: list[tuple[str, int]] = []
        for name in self.device_types:
            fitting = [kernel.priority for kernel in kernels if kernel.device_type == name and kernel.allows(node.attr)]
            if fitting:
                types.append((name, max(fitting)))
        if not types and not kernels:
            types = self._elsewhere(node)
        return tuple(sorted(types, key=lambda entry: -entry[1]))

    def _elsewhere(self, node: Node) -> list[tuple[str, int]]:
        """The types for a node without kernels here that is requested in another task."""
        requested = _parsed(node.device)
        here = (self.local.job, self.local.replica, self.local.task)
        there = (requested.job, requested.replica, requested.task)
        if not any(mine is not None and other is not None and mine != other for mine, other in zip(here, there, strict=True)):
            return []
        return [(requested.type, 0)] if requested.type is not None else [(name, 0) for name in self.device_types]


def _has_strings(node: Node) -> bool:
    return any(dtype.base is string for dtype in (*node.input_types, *node.output_types))


def _parsed(device: str) -> DeviceSpec:
    try:
        return DeviceSpec.parse(device)
    except InvalidArgumentError:
        return DeviceSpec()  # malformed: another check refuses it


def kernels_text(node: Node) -> str:
    """The kernels of a node, one a line."""
    kernels = kernels_of(node.registration, of_strings=_has_strings(node))
    return "".join([f"  {kernel}\n" for kernel in kernels]) or "  <no registered kernels>\n"


def by_priority(types: Iterable[tuple[str, int]]) -> DeviceTypes:
    """Sort device types by the priorities of their kernels, then by those of the types."""
    return tuple(sorted(types, key=lambda entry: (-entry[1], -device_type_priority(entry[0]))))
