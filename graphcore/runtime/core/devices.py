"""The devices of a session, and the check of requested devices."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cache

from graphcore.device_spec import DeviceSpec
from graphcore.errors import InvalidArgumentError
from graphcore.graph.model.node import Node
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
    there = [DeviceSpec.parse(device.name) for device in devices]
    known: dict[str, bool] = {"": True}
    for node in nodes:
        request = node.device
        if request not in known:
            known[request] = any(DeviceSpec.parse(request).is_specification_of(device) for device in there)
        if not known[request]:
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
