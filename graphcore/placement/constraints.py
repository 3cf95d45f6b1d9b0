"""Constraints of placement: options, links between nodes, and checks of requested devices."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from graphcore.attrs import attr_text
from graphcore.device_spec import DeviceSpec
from graphcore.dtypes import resource
from graphcore.errors import InvalidArgumentError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph import Node
from graphcore.placement.device import Device, DeviceSet

CLASS_ATTR: Final = "_class"
_LOC: Final = b"loc:@"

Reason = Literal["reference edge", "resource edge", "loc:@", "call"]


class PlacementOptions(msgspec.Struct, frozen=True):
    """The choices that hold for a whole placement.

    Args:
        devices: the devices to choose from.
        library: the functions that nodes call.
        allow_soft_placement: replace requested devices that do not exist or have no kernel.
        default_local_device: the device that goes before all others of equal rank, None for none.
        log: the log of ignored requests.
    """

    devices: DeviceSet
    library: FunctionLibraryDefinition
    allow_soft_placement: bool = False
    default_local_device: Device | None = None
    log: logging.Logger | None = None


class Link(msgspec.Struct, frozen=True):
    """A reason for two nodes to be on one device.

    Args:
        first, second: the nodes; for an edge its source and destination.
        reason: the kind of the constraint.
        detail: its words, such as `resource edge v:0 -> assign:0`.
    """

    first: Node
    second: Node
    reason: Reason
    detail: str


def check_compatible(kind: str, theirs: DeviceSpec, mine: DeviceSpec, source: Node, node: Node) -> None:
    """Check that devices of the two ends of a reference or resource edge can be the same.

    Raises:
        InvalidArgumentError: they differ.
    """
    if theirs.is_compatible_with(mine):
        return
    raise InvalidArgumentError.at(
        node,
        f"Cannot place the graph because a reference or resource edge connects colocation groups with incompatible {kind}: {theirs} vs "
        f"{mine}. The edge leads from {source.name} to {node.name}.",
    )


def class_groups(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    """The nodes of each group that `_class` names; a node is in the group of its own name too."""
    named: dict[str, list[Node]] = {}
    for node in nodes:
        classes = node.attr.get(CLASS_ATTR)
        for group in classes if isinstance(classes, tuple) else ():
            if isinstance(group, bytes) and group.startswith(_LOC):
                named.setdefault(attr_text(group[len(_LOC) :]), []).append(node)
    for node in nodes if named else ():
        members = named.get(node.name)
        if members is not None and node not in members:
            members.append(node)
            members.sort(key=lambda member: member.id)
    return named


def makes_handle(node: Node) -> bool:
    """True iff a node without inputs makes one reference or resource: its request counts as assigned."""
    return not node.input_types and len(node.output_types) == 1 and (node.output_types[0].is_ref or node.output_types[0] is resource)


def link_map(links: Iterable[Link]) -> dict[Node, list[Link]]:
    """The links of each node."""
    links_by_node: dict[Node, list[Link]] = {}
    for link in links:
        links_by_node.setdefault(link.first, []).append(link)
        links_by_node.setdefault(link.second, []).append(link)
    return links_by_node


def requested_device(node: Node) -> DeviceSpec:
    """The requested device of a node.

    Raises:
        InvalidArgumentError: the request is malformed.
    """
    try:
        return DeviceSpec.parse(node.device)
    except InvalidArgumentError as error:
        raise InvalidArgumentError.at(node, f"Malformed device specification '{node.device}' in node {{{{node {node.name}}}}}") from error
