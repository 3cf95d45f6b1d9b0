"""Simulated devices, which stand for a machine that is not there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from graphcore.device_spec import full_name
from graphcore.errors import InvalidArgumentError
from graphcore.placement.device import Device, DeviceSet

_WHOLE: Final = re.compile(r"(?:(?P<tasks>\d+)\s+tasks?\s*[x*]\s*)?(?P<open>\()?(?P<list>[^()]*)(?(open)\))")
_PART: Final = re.compile(r"(?P<count>\d+)\s+(?P<type>[A-Za-z][A-Za-z0-9_]*)")
_FORM: Final = "such as '2 tasks x (1 cpu, 2 gpu)' or '1 cpu, 2 gpu'"
_MOST_DEVICES: Final = 10_000


class SimulatedHardware(msgspec.Struct, frozen=True, kw_only=True):
    """The properties of the simulated devices of one type.

    Args:
        memory: bytes.
        bandwidth: bytes per second of a transfer to or from the device.
        throughput: floating-point operations per second.
    """

    memory: int
    bandwidth: float
    throughput: float


_CPU: Final = SimulatedHardware(memory=16 << 30, bandwidth=20e9, throughput=100e9)
_ACCELERATOR: Final = SimulatedHardware(memory=8 << 30, bandwidth=12e9, throughput=5e12)


def simulated_devices(description: str, *, job: str = "worker", hardware: Mapping[str, SimulatedHardware] | None = None) -> DeviceSet:
    """Make simulated devices from a description such as `2 tasks x (1 cpu, 2 gpu)`.

    They are named `/job:worker/replica:0/task:0/device:CPU:0` and so on, and compute at NumPy's speed: their time is a virtual clock.

    Args:
        description: the number of tasks (1 if left out) and the devices of each.
        job: the name of the job.
        hardware: the properties of the devices by type; by default a CPU has 16 GiB, 20 GB/s and 100 GFLOP/s, and every other device
            8 GiB, 12 GB/s and 5 TFLOP/s.

    Raises:
        InvalidArgumentError: the description cannot be read, or has no task or no device.
    """
    whole = _WHOLE.fullmatch(description.strip())
    if whole is None:
        raise InvalidArgumentError(f"Required a description of devices {_FORM}, got '{description}'")
    tasks = int(whole["tasks"] or 1)
    counts = _counts(whole["list"], description)
    if not tasks or not sum(counts.values()):
        raise InvalidArgumentError(f"Required at least one task and one device in it, {_FORM}; got '{description}'")
    if tasks * sum(counts.values()) > _MOST_DEVICES:
        raise InvalidArgumentError(
            f"Required at most {_MOST_DEVICES} simulated devices, got {tasks * sum(counts.values())} in '{description}'"
        )
    properties_by_type = {name.upper(): properties for name, properties in (hardware or {}).items()}
    unknown = sorted(properties_by_type.keys() - counts.keys())
    if unknown:
        raise InvalidArgumentError(f"Required properties of the devices in '{description}', got some of {', '.join(unknown)}")
    devices = DeviceSet()
    for task in range(tasks):
        for device_type, count in counts.items():
            properties = properties_by_type.get(device_type, _CPU if device_type == "CPU" else _ACCELERATOR)
            for number in range(count):
                devices.add(
                    Device(
                        full_name(job, 0, task, device_type, number),
                        memory_limit_bytes=properties.memory,
                        incarnation=len(devices) + 1,
                        bandwidth=properties.bandwidth,
                        throughput=properties.throughput,
                        simulated=True,
                    )
                )
    return devices


def _counts(text: str, description: str) -> dict[str, int]:
    """The number of devices by type."""
    counts: dict[str, int] = {}
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise InvalidArgumentError(f"Required a number and a type of device, {_FORM}; got '{part.strip()}' in '{description}'")
        device_type = match["type"].upper()
        if device_type in counts:
            raise InvalidArgumentError(f"Required each type of device once, got '{device_type}' twice in '{description}'")
        counts[device_type] = int(match["count"])
    return counts
