"""Devices and sets of devices: the places on which a graph's nodes can be put."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from graphcore.device_spec import DeviceSpec, canonicalize_device_name, get_names_for_device_mappings
from graphcore.errors import AlreadyExistsError, InvalidArgumentError

LOCAL: Final = "/job:localhost/replica:0/task:0/device:CPU:0"
"""The name that supplies the parts a device's name leaves out."""
_ON_REQUEST: Final = "XLA_"
"""The prefix of device types that are used on request only."""

_priorities: Final[dict[str, int]] = {"CPU": 70, "GPU": 210}


def register_device_type(device_type: str, priority: int) -> None:
    """Set the priority of a device type. A node goes to the type of highest priority that has a kernel for it.

    CPU has priority 70, GPU 210, and an unregistered type 0. A second registration replaces the first.

    Raises:
        InvalidArgumentError: the type is no name of a device type.
    """
    DeviceSpec.parse(f"/device:{device_type}:0")
    _priorities[device_type] = priority


def device_type_priority(device_type: str) -> int:
    """The priority of a device type; 0 for an unregistered one."""
    return _priorities.get(device_type, 0)


def used_on_request_only(device_type: str) -> bool:
    """True for types that no node is put on unless it is requested or assigned there (XLA devices)."""
    return device_type.startswith(_ON_REQUEST)


class Device(msgspec.Struct, frozen=True):
    """A device that runs nodes.

    Args:
        name: its name; missing parts come from `/job:localhost/replica:0/task:0/device:CPU:0`.
        memory_limit_bytes: its memory, 0 if unknown.
        incarnation: a number that changes when the device restarts.
        bandwidth: the bytes per second of a transfer to or from the device, 0 if unknown.
        throughput: floating-point operations per second, 0 if unknown.
        simulated: True for a device that stands for hardware that is not there.
        cuda: the number of the CUDA device that it is, -1 for none.

    Raises:
        InvalidArgumentError: the name is not a device name.
    """

    name: str
    memory_limit_bytes: int = 0
    incarnation: int = 0
    bandwidth: float = 0.0
    throughput: float = 0.0
    simulated: bool = False
    cuda: int = -1

    def __post_init__(self) -> None:
        """Complete the name."""
        msgspec.structs.force_setattr(self, "name", canonicalize_device_name(self.name, LOCAL))

    @property
    def spec(self) -> DeviceSpec:
        """The parts of the name."""
        return DeviceSpec.parse(self.name)

    @property
    def device_type(self) -> str:
        """The type: `CPU`, `GPU` or another."""
        return self.spec.type or ""

    def __repr__(self) -> str:
        return f"<gc.Device {self}>"

    def __str__(self) -> str:
        return f"{self.name} (simulated)" if self.simulated else self.name


class DeviceSet:
    """The devices that a graph can be placed on.

    Args:
        devices: devices, or names of devices.

    Raises:
        AlreadyExistsError: two devices have the same name.
    """

    def __init__(self, devices: Iterable[Device | str] = ()) -> None:
        self._by_name: dict[str, Device] = {}
        self._aliases: dict[str, Device] = {}
        self._matches: dict[DeviceSpec, tuple[Device, ...]] = {}
        for device in devices:
            self.add(device)

    def add(self, device: Device | str) -> None:
        """Add a device, or the device of a name.

        Raises:
            AlreadyExistsError: there is a device of this name.
            InvalidArgumentError: the name is not a device name.
        """
        added = Device(device) if isinstance(device, str) else device
        if added.name in self._by_name:
            raise AlreadyExistsError(f"Device '{added.name}' is in the device set already")
        self._by_name[added.name] = added
        self._aliases.update(dict.fromkeys(get_names_for_device_mappings(added.name), added))
        self._matches.clear()

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices in the order in which they were added."""
        return tuple(self._by_name.values())

    def find_device_by_name(self, name: str) -> Device | None:
        """The device of this complete name; `/cpu:0` may stand for `/device:CPU:0`. None if there is none."""
        return self._aliases.get(name)

    def find_matching_devices(self, spec: DeviceSpec | str) -> tuple[Device, ...]:
        """The devices that match all parts set in `spec`.

        Raises:
            InvalidArgumentError: `spec` is not a device name.
        """
        wanted = DeviceSpec.parse(spec) if isinstance(spec, str) else spec
        devices = self._matches.get(wanted)
        if devices is None:
            devices = tuple([device for device in self if wanted.is_specification_of(device.spec)])
            self._matches[wanted] = devices
        return devices

    @property
    def simulated(self) -> bool:
        """True if all of the devices are simulated: the times of runs are then those of a virtual clock."""
        return bool(self._by_name) and all(device.simulated for device in self)

    def device_types(self) -> list[str]:
        """The types of the devices, those of higher priority first, then in the order of the set."""
        types = dict.fromkeys([device.device_type for device in self])
        return sorted(types, key=lambda name: -device_type_priority(name))

    def require(self, name: str) -> Device:
        """The device of this name.

        Raises:
            InvalidArgumentError: there is none; the error lists the devices that exist.
        """
        device = self.find_device_by_name(name)
        if device is None:
            raise InvalidArgumentError(f"Device '{name}' does not exist: available devices are [ {self.names_text()} ]")
        return device

    def names_text(self) -> str:
        """The names of all devices, sorted, with commas."""
        return ", ".join(sorted(self._by_name))

    def __iter__(self) -> Iterator[Device]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._aliases if isinstance(name, str) else name in self._by_name.values()

    def __repr__(self) -> str:
        return f"<gc.DeviceSet [{', '.join([str(device) for device in self])}]>"
