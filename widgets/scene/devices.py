"""The devices lens: the device of each node, and the copies between devices on edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphcore.device_spec import is_specification
from graphcore.errors import GraphError
from graphcore.frontends.record import foreign_of
from graphcore.placement.placer import last_placer

if TYPE_CHECKING:
    from graphcore.graph import Node


def assigned_device(node: Node) -> str:
    """The assigned device of a node, marked if it is simulated; "" if it has none.

    For a node of another framework it is the device, or the sharding, that the source says.
    """
    if not node.assigned_device:
        foreign = foreign_of(node.graph)
        record = None if foreign is None else foreign.nodes.get(node.name)
        return "" if record is None else record.device
    placer = last_placer.of(node.graph)
    device = None if placer is None else placer.options.devices.find_device_by_name(node.assigned_device)
    return node.assigned_device if device is None else str(device)


def is_elsewhere(node: Node) -> bool:
    """True iff a node is assigned to another device than it requests."""
    return bool(node.assigned_device and node.device) and not _is_part(node.device, node.assigned_device)


def _is_part(requested: str, assigned: str) -> bool:
    """True iff the assigned device is one that was requested; a malformed name is no request of it."""
    try:
        return is_specification(requested, assigned)
    except GraphError:
        return False
