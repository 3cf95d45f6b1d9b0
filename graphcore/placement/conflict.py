"""Minimal conflicting sets: a few nodes of a graph that cannot be placed together."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Final

from graphcore.device_spec import DeviceSpec
from graphcore.dtypes import resource
from graphcore.errors import GraphError
from graphcore.graph import Node
from graphcore.placement.colocation_graph import ColocationGraph
from graphcore.placement.constraints import PlacementOptions, class_groups
from graphcore.placement.function_calls import called_function, is_exempt
from graphcore.placement.kernels import KernelLookup
from graphcore.placement.member import ANYWHERE, Member
from graphcore.placement.possible_devices import possible_devices

_FEW: Final = 60
"""The size up to which every single node of a set is tried."""
Neighbours = dict[Node, list[Node]]


def minimal_conflict(nodes: Sequence[Node], options: PlacementOptions) -> list[Node]:
    """The nodes of a minimal conflicting set: without any one of them the others can be placed.

    They are in the order of the graph. It need not be the smallest of all such sets. Empty if all nodes can be placed.

    Args:
        nodes: the nodes to place.
        options: the devices and the rules.
    """
    single = ColocationGraph((), options)  # for the constraints that nodes have by themselves

    def fails(some: Collection[Node]) -> bool:
        kept = set(some)
        return cannot_be_placed([node for node in nodes if node in kept], options, single.kernels)

    members: dict[Node, Member] = {}
    alone = _impossible_alone(nodes, single, members)
    if alone is not None:
        return [alone]
    neighbours = neighbours_of(nodes, with_classes=not options.allow_soft_placement)  # which drops these if they are impossible
    soft = options.allow_soft_placement
    for spec_of, certain in ((_assigned, True), (_firm, not soft), (_requested, False)):
        masks = _masks({node: members[node] for node in neighbours}, options, spec_of)
        conflict = _conflict_of_masks(neighbours, masks)
        if conflict and (certain or fails(conflict)):
            return _in_order(nodes, _reduced(conflict, fails) if len(conflict) <= _FEW else conflict)
    joined = list(neighbours_of(nodes, with_classes=True))
    if not fails(joined):
        joined = list(nodes)
        if not fails(joined):
            return []
    return _in_order(nodes, _reduced(_halved(joined, fails), fails))


def cannot_be_placed(nodes: Sequence[Node], options: PlacementOptions, kernels: KernelLookup | None = None) -> bool:
    """True iff there is no placement of these nodes alone."""
    colocation = ColocationGraph(nodes, options, kernels)
    try:
        colocation.initialize()
        for node in nodes:
            if not node.assigned_device:
                colocation.devices_for(node)
    except GraphError:
        return True
    return False


def _impossible_alone(nodes: Sequence[Node], single: ColocationGraph, members: dict[Node, Member]) -> Node | None:
    """The first node without a device for itself; enters the constraints of the nodes into `members`."""
    possible: dict[int, bool] = {}
    for node in nodes:
        try:
            member = members[node] = single.member_of(node)
        except GraphError:
            return node
        if id(member) not in possible:
            possible[id(member)] = bool(possible_devices(member, single.options))
        if not (possible[id(member)] or node.assigned_device):
            return node
        if called_function(node) is not None and resource in node.output_types and cannot_be_placed([node], single.options, single.kernels):
            return node
    return None


def neighbours_of(nodes: Sequence[Node], *, with_classes: bool) -> Neighbours:
    """The nodes that edges, and optionally `_class`, join to each node; nodes without any are left out."""
    neighbours: Neighbours = {}
    node_set = set(nodes)

    def join(first: Node, second: Node) -> None:
        if first is not second and first in node_set and second in node_set:
            neighbours.setdefault(first, []).append(second)
            neighbours.setdefault(second, []).append(first)

    for node in nodes:
        if is_exempt(node) and resource not in node.output_types:
            continue
        for slot, dtype in enumerate(node.input_types):
            if (dtype.is_ref or dtype is resource) and slot < len(node.inputs):
                join(node.inputs[slot].node, node)
    if with_classes:
        for members in class_groups(nodes).values():
            for other in members[1:]:
                join(members[0], other)
    return neighbours


def _assigned(member: Member) -> DeviceSpec:
    return member.assigned


def _firm(member: Member) -> DeviceSpec:
    return member.firm


def _requested(member: Member) -> DeviceSpec:
    return member.requested


def _masks(members: dict[Node, Member], options: PlacementOptions, spec_of: Callable[[Member], DeviceSpec]) -> dict[Node, int]:
    """The devices that each node can be on by itself, a bit for each.

    `spec_of` says which of its devices counts.
    """
    devices = options.devices.devices
    mask_of: dict[tuple[int, bool], int] = {}
    masks: dict[Node, int] = {}
    everywhere = (1 << len(devices)) - 1
    for node, member in members.items():
        call = called_function(node) is not None
        key = (id(member), call)
        if key not in mask_of:
            spec = spec_of(member)
            fitting = set(options.devices.find_matching_devices(spec)) if spec != ANYWHERE else set(devices)
            types = {name for name, _ in member.types}
            bits = sum([1 << index for index, device in enumerate(devices) if device in fitting and device.device_type in types])
            mask_of[key] = everywhere if call else bits
        masks[node] = mask_of[key]
    return masks


def _conflict_of_masks(neighbours: Neighbours, masks: dict[Node, int]) -> set[Node]:
    """Joined nodes without a common device, none of them superfluous; empty if there are none."""
    seen: set[Node] = set()
    for start in neighbours:
        if start in seen:
            continue
        group, last, _ = _spread([start], None, neighbours, masks)
        if last is None:
            seen |= group
            continue
        return _pruned(_grown(group, last, neighbours, masks), neighbours, masks)
    return set()


def _spread(
    starts: Sequence[Node], within: set[Node] | None, neighbours: Neighbours, masks: dict[Node, int]
) -> tuple[set[Node], Node | None, dict[Node, Node]]:
    """Visit joined nodes, the nearest first, until they have no common device.

    Returns:
        The visited nodes, the last one (None if they have a common device), and the node before each.
    """
    common = -1
    for node in starts:
        common &= masks[node]
    visited = set(starts)
    before: dict[Node, Node] = {}
    waiting = deque(starts)
    while waiting:
        node = waiting.popleft()
        for other in neighbours[node]:
            if other in visited or (within is not None and other not in within):
                continue
            visited.add(other)
            before[other] = node
            common &= masks[other]
            if not common:
                return visited, other, before
            waiting.append(other)
    return visited, None, before


def _grown(group: set[Node], last: Node, neighbours: Neighbours, masks: dict[Node, int]) -> set[Node]:
    """A small connected part of a group without a common device.

    Each round adds a node without which the rest would have a device, and the shortest chain that joins it.
    """
    included = {last: None}
    common = masks[last]
    while common:
        group, end, before = _spread(list(included), group, neighbours, masks)
        while end is not None and end not in included:
            included[end] = None
            common &= masks[end]
            end = before.get(end)
    return set(included)


def _pruned(remaining: set[Node], neighbours: Neighbours, masks: dict[Node, int]) -> set[Node]:
    """Leave out the nodes at the ends of chains that the conflict does not need."""
    again = True
    while again:
        again = False
        for node in list(remaining):
            inner = {other for other in neighbours[node] if other in remaining}
            if len(inner) > 1:
                continue
            common = -1
            for other in remaining:
                common &= masks[other] if other is not node else -1
            if not common and len(remaining) > 1:
                remaining.discard(node)
                again = True
    return remaining


def _reduced(nodes: Collection[Node], fails: Callable[[Collection[Node]], bool]) -> set[Node]:
    """Leave out single nodes as long as the rest cannot be placed."""
    kept = set(nodes)
    again = True
    while again:
        again = False
        for node in list(nodes):
            if node in kept and fails(kept - {node}):
                kept.discard(node)
                again = True
    return kept


def _halved(nodes: list[Node], fails: Callable[[Collection[Node]], bool]) -> list[Node]:
    """Leave out runs of nodes, ever shorter ones, as long as the rest cannot be placed."""
    length = len(nodes) // 2
    while length:
        start = 0
        while start < len(nodes):
            rest = nodes[:start] + nodes[start + length :]
            if fails(rest):
                nodes = rest
            else:
                start += length
        length //= 2
    return nodes


def _in_order(nodes: Sequence[Node], chosen: Collection[Node]) -> list[Node]:
    return [node for node in nodes if node in chosen]


def conflict_text(nodes: Sequence[Node]) -> str:
    """The nodes of a conflicting set, one a line, each with the line that made it; "" for one node."""
    if len(nodes) < 2:
        return ""
    lines = ["\nThese nodes cannot be placed together; without any one of them the others can:"]
    for node in nodes:
        device = f" on {node.assigned_device}" if node.assigned_device else f" requested on {node.device}" if node.device else ""
        lines.append(f"  {node.name} ({node.op}){device}" + (f", made in {node.source}" if node.source is not None else ""))
    return "\n".join(lines)
