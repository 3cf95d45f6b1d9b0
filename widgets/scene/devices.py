"""The devices lens: the device of each node, and the copies between devices on edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphcore.device_spec import is_specification
from graphcore.errors import GraphError
from graphcore.placement.last_placer import last_placer
from graphcore.runtime.core.memory import tensor_bytes
from widgets.scene.types import LensMark
from widgets.scene.words import byte_count, counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from graphcore.graph import Node, Tensor

COPY_TONE: Final = 6
"""The tone of edges that cross devices."""


def assigned_device(node: Node) -> str:
    """The assigned device of a node, marked if it is simulated; "" if it has none."""
    if not node.assigned_device:
        return ""
    placer = last_placer.of(node.graph)
    device = None if placer is None else placer.options.devices.find_device_by_name(node.assigned_device)
    return node.assigned_device if device is None else str(device)


def device_of(node: Node) -> str:
    """The assigned device of a node; else the one it requests, else ""."""
    return assigned_device(node) or (f"requested {node.device}" if node.device else "")


def devices_of(nodes: Iterable[Node]) -> list[str]:
    """The devices of nodes as `device_of` names them, in the order of the nodes."""
    first: dict[tuple[str, str], Node] = {}
    for node in nodes:
        first.setdefault((node.assigned_device, node.device), node)
    return list(dict.fromkeys(map(device_of, first.values())))


def is_elsewhere(node: Node) -> bool:
    """True iff a node is assigned to another device than it requests."""
    return bool(node.assigned_device and node.device) and not _is_part(node.device, node.assigned_device)


def device_words(node: Node) -> str:
    """The device of a node, and its request if it is on another one."""
    return f"{device_of(node)} (requested {node.device})" if is_elsewhere(node) else device_of(node)


def crosses_devices(source: Node, target: Node) -> bool:
    """True iff both nodes are placed, on different devices."""
    return source.assigned_device != target.assigned_device and source.assigned_device != "" != target.assigned_device


def copies_mark(copies: Iterable[tuple[Tensor, str]]) -> LensMark:
    """The mark of an edge with tensors that are copied, given with the names of the devices they go to."""
    sizes = [tensor_bytes(tensor) for tensor, _ in copies]
    known = [size for size in sizes if size is not None]
    text = byte_count(sum(known)) if known else "size unknown"
    if known and len(known) < len(sizes):
        text = f"over {text}"
    if len(sizes) > 1:
        text = f"{counted(len(sizes), 'copy', 'copies')}, {text}"
    return LensMark(text=text, tone=COPY_TONE)


def _is_part(requested: str, assigned: str) -> bool:
    """True iff the assigned device is one that was requested; a malformed name is no request of it."""
    try:
        return is_specification(requested, assigned)
    except GraphError:
        return False
