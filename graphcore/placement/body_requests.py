"""Device requests in the bodies that calls, branches and loops run whole on one device."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from graphcore.device_spec import DeviceSpec
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Node
from graphcore.placement.called_work import runs_functions
from graphcore.remarks import remark

_MOST_NAMED: Final = 3


class BodyRequest(msgspec.Struct, frozen=True):
    """The request of a node in a body.

    Args:
        function: the function with the body.
        node, op: the node in it.
        device: the requested device.
    """

    function: str
    node: str
    op: str
    device: str


def requests_in_bodies(node: Node, device: DeviceSpec) -> list[BodyRequest]:
    """The requests in the functions that `node` reaches and that its device, `device`, does not meet."""
    library = node.graph.library
    if not len(library) or not runs_functions(node):
        return []
    return [
        BodyRequest(function.name, inner.name, inner.op, inner.device)
        for function in library.reachable_definitions([node.node_def])
        for inner in function.node_def
        if inner.device and not _meets(device, inner.device)
    ]


def request_note(requests: list[BodyRequest], device: str) -> str:
    """The requests of one call in words, "" for none."""
    if not requests:
        return ""
    named = [
        f"'{request.node}' ({request.op}) in the body '{request.function}' requests {request.device}" for request in requests[:_MOST_NAMED]
    ]
    more = f"; {len(requests) - _MOST_NAMED} more nodes in bodies request other devices" if len(requests) > _MOST_NAMED else ""
    return f"{'; '.join(named)}{more}; a body runs as one on the device of its call, which is {device}"


def remark_body_requests(nodes: Iterable[Node], sole: str = "") -> None:
    """Say which requests in bodies have no effect, as their calls are on other devices.

    Args:
        nodes: the nodes of a run, which are placed.
        sole: the device of all of them, if they are not.
    """
    for node in nodes:
        device = sole or node.assigned_device
        if device and (requests := requests_in_bodies(node, DeviceSpec.parse(device))):
            remark(
                f"'{node.name}' ({node.op}): {request_note(requests, device)}. "
                "`with gc.device(...)` around the call itself places all of it; to divide the work among devices, build it outside of the body."
            )


def _meets(device: DeviceSpec, request: str) -> bool:
    try:
        return DeviceSpec.parse(request).is_specification_of(device)
    except InvalidArgumentError:
        return False
