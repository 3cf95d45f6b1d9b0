"""The devices of a session, and the check of requested devices."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cache

from graphcore.device_spec import DeviceSpec
from graphcore.errors import InvalidArgumentError
from graphcore.graph.model.node import Node
from graphcore.remarks import remark
from graphcore.runtime.core.rewrite import DeviceAttributes
from graphcore.runtime.core.tracing import CPU
from graphcore.support.memory_limits import memory_limit


@cache
def local_devices() -> tuple[DeviceAttributes, ...]:
    """The devices of this process."""
    return (DeviceAttributes(CPU, "CPU", memory_limit(), int.from_bytes(os.urandom(8)) >> 1),)


def check_devices(nodes: Iterable[Node], devices: Sequence[DeviceAttributes]) -> None:
    """Check that the device requested by each node exists.

    Raises:
        InvalidArgumentError: a requested device does not exist, or an op has no kernel.
    """
    requests = _Requests(devices)
    for node in nodes:
        request = node.device
        if not requests.has(request):
            names = ", ".join(device.name for device in devices)
            raise InvalidArgumentError.at(
                node,
                f"Cannot assign a device for operation {node.name}: {{{{node {node.name}}}}} was explicitly assigned to {request} "
                f"but available devices are [ {names} ]. Make sure the device specification refers to a valid device.",
            ).advise(
                "Ask for a device that is there, such as `/cpu:0`, or set `allow_soft_placement=True` in the options of the session.",
                required=f"a device {request}",
                came=f"only {names.lower().replace('/job:localhost/replica:0/task:0/device:', '/')}",
            )
        if node.registration.kernel is None and not node.registration.is_function:
            raise InvalidArgumentError.at(node, f"No OpKernel was registered to support Op '{node.op}' used by {{{{node {node.name}}}}}")


class _Requests:
    """Tells which requests the devices of a session fulfil."""

    def __init__(self, devices: Sequence[DeviceAttributes]) -> None:
        self._devices = [DeviceSpec.parse(device.name) for device in devices]
        self._answers: dict[str, bool] = {"": True}

    def has(self, request: str) -> bool:
        """True iff one of the devices is what `request` names."""
        if request not in self._answers:
            self._answers[request] = any(DeviceSpec.parse(request).is_specification_of(device) for device in self._devices)
        return self._answers[request]


def remark_absent_devices(nodes: Iterable[Node], devices: Sequence[DeviceAttributes]) -> None:
    """Say which requested devices do not exist, so that their nodes run on the CPU."""
    requests = _Requests(devices)
    absent: dict[str, list[str]] = {}
    for node in nodes:
        if not requests.has(node.device):
            absent.setdefault(node.device, []).append(node.name)
    for request, names in absent.items():
        which = f"'{names[0]}' requests" if len(names) == 1 else f"'{names[0]}' and {len(names) - 1} more nodes request"
        what = "runs" if len(names) == 1 else "run"
        remark(
            f"{which} {request}, which this session does not have, and {what} on the CPU. `gc.Session(devices=[...])` gives a session devices, "
            "which are simulated where the machine has none; `gc.SessionOptions(allow_soft_placement=False)` refuses such requests."
        )
