"""Explanations of placements: why a node is on its device, or why it cannot be placed."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from graphcore.device_spec import DeviceSpec
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.graph import Node
from graphcore.placement.body_requests import request_note, requests_in_bodies
from graphcore.placement.colocation_graph import ColocationGraph
from graphcore.placement.constraints import Link, link_map
from graphcore.placement.copies import Copy, copies_of, total_text
from graphcore.placement.device import Device, device_type_priority, used_on_request_only
from graphcore.placement.possible_devices import fitting_request
from graphcore.support.shown import shown

_MOST_SHOWN: Final = 12
RULES: Final = {
    "assigned before": "it was assigned there before, and an assigned device is kept",
    "best device of its group": "it is the first of the devices that the node and those colocated with it can be on",
    "goes with its group": "a node colocated with it follows its consumers or its input there",
    "follows its consumers": "the node has no inputs and one output, and all its consumers are there",
    "follows its input": "the node needs only the shape of its input, which is there",
}
"""The rules that choose a device, in words."""


class NodeInConflict(msgspec.Struct, frozen=True):
    """A node of a minimal conflicting set.

    Args:
        name, op: the node.
        device: its assigned or requested device, "" for none.
        where: the cell and the line that made it, "" if unknown.
    """

    name: str
    op: str
    device: str
    where: str


def described_conflict(nodes: Sequence[Node]) -> tuple[NodeInConflict, ...]:
    """The nodes of a minimal conflicting set with their devices and places."""
    return tuple(
        [
            NodeInConflict(node.name, node.op, node.assigned_device or node.device, "" if node.source is None else str(node.source))
            for node in nodes
        ]
    )


class Candidate(msgspec.Struct, frozen=True):
    """A device, and the reason for which the node is not on it.

    Args:
        device: the name of the device.
        removed_by: the node whose kernels, request or assignment exclude the device; "" if none does.
        why: the reason in words; "" for the chosen device.
        chain: the constraints that lead from the node to `removed_by`.
    """

    device: str
    removed_by: str
    why: str
    chain: tuple[str, ...] = ()


class PlacementExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """The reasons for the device of a node.

    Args:
        node, op: the node.
        requested: the requested device, "" for none.
        assigned: the chosen device, "" if the graph cannot be placed.
        candidates: all devices of the device set.
        group: the names of the nodes that must be on the same device.
        links: the constraints of the group: two nodes and the reason in words.
        notes: requests and constraints of the group that gave way, and requests in the bodies that the node runs which have no effect.
        rule: the rule that chose the device.
        copies: the transfers that the placement of the node causes.
        error: the error, if the graph cannot be placed.
        conflict: a minimal set of nodes that cannot be placed together.
    """

    node: str
    op: str
    requested: str
    assigned: str
    candidates: tuple[Candidate, ...]
    group: tuple[str, ...]
    links: tuple[tuple[str, str, str], ...]
    notes: tuple[str, ...]
    rule: str
    copies: tuple[Copy, ...]
    error: str = ""
    conflict: tuple[NodeInConflict, ...] = ()

    @property
    def copied_bytes(self) -> int | None:
        """The bytes of all copies, None if a shape is unknown."""
        sizes = [copy.bytes for copy in self.copies]
        return None if None in sizes else sum([size for size in sizes if size is not None])

    def chain(self, first: str, second: str) -> tuple[str, ...]:
        """The constraints that lead from one node of the group to another: the shortest chain of reasons.

        Raises:
            InvalidArgumentError: a node is not in the group.
        """
        for name in (first, second):
            if name not in self.group:
                raise InvalidArgumentError(f"Required two nodes of the group of '{self.node}', got '{name}'", node=name)
        neighbours: dict[str, list[tuple[str, str]]] = {}
        for one, other, why in self.links:
            neighbours.setdefault(one, []).append((other, why))
            neighbours.setdefault(other, []).append((one, why))
        return shortest_chain(first, second, neighbours)

    def to_json(self) -> str:
        """The explanation as JSON."""
        return msgspec.json.encode(self).decode()

    def __str__(self) -> str:
        lines = [f"{self.node} ({self.op}) is on {self.assigned}" if self.assigned else f"{self.node} ({self.op}) has no device"]
        lines.append(f"  requested: {self.requested or 'nothing'}")
        if self.rule:
            lines.append(f"  rule: {self.rule}: {RULES[self.rule]}")
        lines += [f"  note: {note}" for note in self.notes]
        lines.append("  devices:")
        lines += _shown([f"    {entry.device}: {_reason(entry, self)}" for entry in self.candidates], "    ")
        if len(self.group) > 1:
            lines.append(f"  on one device with: {', '.join(_shown([name for name in self.group if name != self.node]))}")
            lines += _shown([f"    {first} and {second}: {why}" for first, second, why in self.links], "    ")
        if self.copies:
            lines.append(f"  copies: {total_text(self.copies)}")
            lines += _shown([f"    {copy}" for copy in self.copies], "    ")
        if self.error:
            lines.append(f"  error: {self.error.splitlines()[0]}")
        if self.conflict:
            lines.append("  these nodes cannot be placed together; without any one of them the others can:")
            lines += [
                f"    {node.name} ({node.op}){' ' + node.device if node.device else ''}  {node.where}".rstrip() for node in self.conflict
            ]
        return shown("\n".join(lines))

    def __repr__(self) -> str:
        return str(self)


def _reason(entry: Candidate, explanation: PlacementExplanation) -> str:
    if not entry.why:
        return "chosen" if explanation.assigned else "possible"
    return entry.why + (f" (by {'; '.join(_shown(list(entry.chain)))})" if entry.chain else "")


def _shown(lines: list[str], indent: str = "") -> list[str]:
    """The first lines, and the number of the others."""
    if len(lines) <= _MOST_SHOWN:
        return lines
    return [*lines[:_MOST_SHOWN], f"{indent}and {len(lines) - _MOST_SHOWN} more"]


def shortest_chain(first: str, second: str, neighbours: Mapping[str, Sequence[tuple[str, str]]]) -> tuple[str, ...]:
    """The reasons on the shortest way between two nodes; empty if there is none."""
    before: dict[str, tuple[str, str]] = {first: ("", "")}
    waiting = deque([first])
    while waiting and second not in before:
        name = waiting.popleft()
        for other, why in neighbours.get(name, ()):
            if other not in before:
                before[other] = (name, why)
                waiting.append(other)
    chain: list[str] = []
    name = second
    while name != first and name in before:
        name, why = before[name]
        chain.append(why)
    return tuple(reversed(chain))


def explain(
    node: Node,
    colocation: ColocationGraph,
    devices: Mapping[Node, Device],
    rules: Mapping[Node, str],
    error: GraphError | None = None,
    conflict: Sequence[Node] = (),
) -> PlacementExplanation:
    """Explain the device of a node.

    Args:
        node: the node.
        colocation: the groups of its graph, as far as they could be made.
        devices, rules: the chosen devices with the rules that chose them; empty if the graph cannot be placed.
        error: the error, if the graph cannot be placed.
        conflict: the nodes of a minimal conflicting set.
    """
    joined = _joined(node, colocation.links)
    root = colocation.root_of(node)
    members = {other: before for other, before in joined.items() if error is not None or colocation.root_of(other) == root}
    group = [other for other in colocation.nodes if other in members]
    chosen = devices.get(node)
    fixed = {other for other in group if other.assigned_device and rules.get(other, "assigned before") == "assigned before"}
    request, possible = (None, ()) if error is not None else fitting_request(colocation.group(node), colocation.options)
    subject = _Subject(node, colocation, chosen, request, possible, joined, members.keys(), fixed)
    links = [
        (link.first.name, link.second.name, link.detail) for link in colocation.links if link.first in members or link.second in members
    ]
    return PlacementExplanation(
        node=node.name,
        op=node.op,
        requested=node.device,
        assigned="" if chosen is None else str(chosen),
        candidates=tuple([_candidate(subject, device) for device in colocation.options.devices]),
        group=tuple([other.name for other in group]),
        links=tuple(links),
        notes=tuple(_notes(subject, group)),
        rule=rules.get(node, ""),
        copies=tuple(copies_of(node, devices)),
        error="" if error is None else error.message,
        conflict=described_conflict(conflict),
    )


class _Subject(msgspec.Struct):
    """The node to explain, and what is known of its group.

    Args:
        node: the node.
        colocation: the groups of its graph.
        chosen: its device, None if the graph cannot be placed.
        request: the request of its group, or what soft placement leaves of it; None if the graph cannot be placed.
        possible: the devices that its group can be on, best first.
        before: for each node that links join with it, the node before it on the shortest chain, with the link.
        members: the nodes of its group.
        fixed: those that were assigned before.
    """

    node: Node
    colocation: ColocationGraph
    chosen: Device | None
    request: DeviceSpec | None
    possible: Sequence[Device]
    before: Mapping[Node, tuple[Node, str] | None]
    members: Collection[Node]
    fixed: Collection[Node]

    def chain_to(self, other: Node) -> tuple[str, ...]:
        """The reasons that lead to a node of the group."""
        chain: list[str] = []
        step = self.before[other]
        while step is not None:
            chain.append(step[1])
            step = self.before[step[0]]
        return tuple(reversed(chain))


def _joined(node: Node, links: Sequence[Link]) -> dict[Node, tuple[Node, str] | None]:
    """The nodes joined with a node, the nearest first, each with the node before it and the link."""
    by_node = link_map(links)
    reached_from: dict[Node, tuple[Node, str] | None] = {node: None}
    waiting = deque([node])
    while waiting:
        here = waiting.popleft()
        for link in by_node.get(here, ()):
            other = link.second if link.first is here else link.first
            if other not in reached_from:
                reached_from[other] = (here, link.detail)
                waiting.append(other)
    return reached_from


def _notes(subject: _Subject, group: Sequence[Node]) -> list[str]:
    node, chosen, ignored, dropped = subject.node, subject.chosen, subject.colocation.ignored, subject.colocation.dropped
    notes = [f"'{other.name}' gave way: {reasons[other]}" for other in group for reasons in (ignored, dropped) if other in reasons]
    if chosen is None:
        return notes
    inside = request_note(requests_in_bodies(node, chosen.spec), str(chosen))
    notes += [inside] if inside else []
    if not node.device or node in ignored or node in subject.fixed:
        return notes
    if not DeviceSpec.parse(node.device).is_specification_of(chosen.spec):
        notes.append(f"the requested device {node.device} was replaced")
    return notes


def _candidate(subject: _Subject, device: Device) -> Candidate:
    """The reason for which the node is not on a device."""
    if device is subject.chosen or (subject.chosen is not None and device.name == subject.chosen.name):
        return Candidate(str(device), "", "")
    if device in subject.possible and subject.node not in subject.fixed:
        return Candidate(str(device), "", _after(subject, device))
    for exclusion in (_kernel_exclusion, _request_exclusion):
        for other in subject.before:
            why = exclusion(subject, other, device) if other in subject.members else ""
            if why:
                return Candidate(str(device), other.name, why, subject.chain_to(other))
    if used_on_request_only(device.device_type):
        return Candidate(str(device), "", f"{device.device_type} devices are used only when requested")
    if subject.chosen is None:
        return Candidate(str(device), "", "")
    colocation, root = subject.colocation, subject.colocation.root_of(subject.node)
    calls = dict.fromkeys([f"'{call.name}'" for entry, call in colocation.limits if colocation.root(entry) == root])
    by = f" (in {', '.join(calls)})" if calls else ""
    return Candidate(str(device), "", f"the functions that handle its resource exclude the device{by}")


def _kernel_exclusion(subject: _Subject, node: Node, device: Device) -> str:
    """The reason for which the kernels of a node of the group exclude a device; "" if they do not."""
    if any(name == device.device_type for name, _ in subject.colocation.kernels.supported(node)):
        return ""
    return f"'{node.name}' (op {node.op}) has no kernel for {device.device_type} devices"


def _request_exclusion(subject: _Subject, node: Node, device: Device) -> str:
    """The reason for which the assigned or requested device of a node excludes a device, or ""."""
    if node in subject.fixed:
        assigned = node.assigned_device
        return "" if assigned == device.name else f"'{node.name}' was assigned to {assigned} before"
    if not node.device or node in subject.colocation.ignored:
        return ""
    try:
        requested = DeviceSpec.parse(node.device)
    except InvalidArgumentError:
        return f"'{node.name}' has the malformed request {node.device}"
    excludes = not requested.is_specification_of(device.spec) if subject.request is None else _excludes(requested, subject.request, device)
    return f"'{node.name}' requests {node.device}" if excludes else ""


def _excludes(requested: DeviceSpec, request: DeviceSpec, device: Device) -> bool:
    """True if the device lacks a part of the node's request that also counts in its group's request."""
    parts = zip(*map(msgspec.structs.astuple, (requested, request, device.spec)), strict=True)
    return any(mine is not None and mine == counted != theirs for mine, counted, theirs in parts)


def _after(subject: _Subject, device: Device) -> str:
    """The reason for which a possible device is not the chosen one."""
    chosen, possible = subject.chosen, subject.possible
    if chosen is None:
        return ""
    if chosen is not possible[0]:
        return "possible, but another rule goes first"
    local = subject.colocation.options.default_local_device
    if local is not None and local.name == chosen.name:
        return "the default local device goes first"
    priorities = dict(subject.colocation.group(subject.node).types)
    mine, best = priorities[device.device_type], priorities[chosen.device_type]
    if mine < best:
        return f"kernels for {chosen.device_type} devices have a higher priority here ({best} to {mine})"
    own, other = device_type_priority(device.device_type), device_type_priority(chosen.device_type)
    if own < other:
        return f"{chosen.device_type} devices have a higher priority ({other} to {own})"
    return "possible, but its name comes later"
