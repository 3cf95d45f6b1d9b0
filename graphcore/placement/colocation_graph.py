"""The colocation graph: groups of nodes that must be on one device, with their constraints."""

from __future__ import annotations

from collections.abc import Sequence

from graphcore.device_spec import DeviceSpec
from graphcore.dtypes import DType, resource
from graphcore.errors import InternalError, InvalidArgumentError, UnimplementedError
from graphcore.graph import Node
from graphcore.placement.constraints import (
    Link,
    PlacementOptions,
    Reason,
    check_compatible,
    class_groups,
    makes_handle,
    requested_device,
)
from graphcore.placement.device import Device
from graphcore.placement.function_calls import CallStack, called_body, called_function, is_exempt
from graphcore.placement.kernels import KernelLookup, kernels_text
from graphcore.placement.member import ANYWHERE, Member
from graphcore.placement.possible_devices import impossible, possible_devices
from graphcore.placement.texts import available_text, colocation_node, group_text


class ColocationGraph:
    """The groups of nodes that must be on one device, and the devices that each can be on.

    Args:
        nodes: the nodes to place; edges from and to others are left out.
        options: the devices and the rules.
        kernels: the look-up of supported device types.
        stack: the calls around the nodes, for the nodes of a function body.

    Attributes:
        nodes: the nodes to place.
        links: the constraints that join nodes.
        ignored: requests that give way, with the reason, by node.
        dropped: colocations that are impossible and given up, with the reason, by node; its request holds.
        limits: the calls whose functions restrict the devices of a resource: an entry of its group, and the call.
    """

    def __init__(
        self, nodes: Sequence[Node], options: PlacementOptions, kernels: KernelLookup | None = None, stack: CallStack | None = None
    ) -> None:
        self.nodes = nodes
        self.options = options
        self.kernels = kernels or KernelLookup(options.devices.device_types(), _local_address(options))
        self.stack = stack or CallStack()
        self.links: list[Link] = []
        self.ignored: dict[Node, str] = {}
        self.dropped: dict[Node, str] = {}
        self.limits: list[tuple[int, Node]] = []
        self._index = {node: index for index, node in enumerate(nodes)}
        self._members: list[Member] = []
        self._owners: list[Node] = list(nodes)
        self._parents = list(range(len(nodes)))
        self._ranks: dict[int, int] = {}
        self._call_outputs: dict[tuple[Node, int], int] = {}
        self._possible: dict[Member, tuple[Device, ...]] = {}
        self._interned: dict[tuple[object, str], Member] = {}

    def initialize(self) -> None:
        """Enter all constraints.

        Raises:
            InvalidArgumentError, InternalError: a constraint of a node cannot be met, or two exclude each other.
            UnimplementedError: a function that handles resources calls itself.
        """
        member = self.member_of
        self._members = [member(node) for node in self.nodes]
        calls = self._add_edges()
        for node in calls:
            self._add_call(node)
        self._add_classes()

    # ---- members ---------------------------------------------------------------------------------------------------

    def member_of(self, node: Node) -> Member:
        """The constraints that a node has by itself.

        Raises:
            InvalidArgumentError: its op has no kernel, or its requested device is malformed.
            InternalError: its assigned device is malformed, does not exist, or has no kernel for it.
        """
        types = self.kernels.supported(node)
        assigned = node.assigned_device
        if assigned:
            key = (types, assigned)
            member = self._interned.get(key)
            if member is None:
                member = self._interned[key] = self._assigned_member(node, Member(types))
            return member
        if not types:
            raise InvalidArgumentError.at(
                node,
                f"No OpKernel was registered to support Op '{node.op}' used by {{{{node {node.name}}}}} with these attrs: "
                f"[{', '.join(sorted(node.attr))}]\nRegistered devices: [{', '.join(sorted(self.kernels.device_types))}]\n"
                f"Registered kernels:\n{kernels_text(node)}",
            )
        device = node.device
        generator = bool(device) and makes_handle(node)
        key = (types, f"{'resource' if generator else 'request'} {device}")
        member = self._interned.get(key)
        if member is None:
            requested = requested_device(node) if device else ANYWHERE
            member = self._interned[key] = Member(types, requested, resource=requested if generator else ANYWHERE)
        return member

    def _assigned_member(self, node: Node, member: Member) -> Member:
        name = node.assigned_device
        try:
            spec = DeviceSpec.parse(name)
        except InvalidArgumentError as error:
            raise InternalError.at(node, f"Malformed assigned device '{name}'") from error
        device = self.options.devices.find_device_by_name(name)
        if device is None:
            raise InternalError.at(
                node,
                f"Assigned device '{name}' does not match any device; available devices are [ {available_text(self.options.devices)} ]",
            )
        if not any(device.device_type == device_type for device_type, _ in member.types):
            raise InternalError.at(node, f"Assigned device '{name}' does not have registered OpKernel support for {node.op}")
        return Member(member.types, spec, assigned=spec)

    # ---- groups ----------------------------------------------------------------------------------------------------

    def root(self, index: int) -> int:
        """The representative of the group of the node at `index`."""
        parents = self._parents
        while parents[index] != index:
            parents[index] = index = parents[parents[index]]
        return index

    def group(self, node: Node) -> Member:
        """The constraints of the group of a node."""
        return self._members[self.root(self._index[node])]

    def root_of(self, node: Node) -> int:
        """The representative of the group of `node`, a number."""
        return self.root(self._index[node])

    def members(self, node: Node) -> list[Node]:
        """The nodes of the group of `node`, itself included, in the order of the graph."""
        root = self.root_of(node)
        return [other for index, other in enumerate(self.nodes) if self.root(index) == root]

    def _colocate(self, x: int, y: int) -> None:
        """Join the groups of two entries, the smaller one to the larger one. Nothing changes on an error."""
        x_root, y_root = self.root(x), self.root(y)
        if x_root == y_root:
            return
        x_rank, y_rank = self._ranks.get(x_root, 0), self._ranks.get(y_root, 0)
        new, old = (y_root, x_root) if x_rank < y_rank else (x_root, y_root)
        names = f"{colocation_node(self._owners[x])} and {colocation_node(self._owners[y])}"
        try:
            merged = self._members[new].merged(self._members[old], self.options.allow_soft_placement)
        except InvalidArgumentError as error:
            raise InvalidArgumentError.at(self._owners[x], f"Cannot colocate nodes {names}: {error.message}") from error
        if merged is None:
            raise InvalidArgumentError.at(
                self._owners[x],
                f"Cannot colocate nodes {names} because no device type supports both of those nodes and the other nodes colocated with them."
                f"{self._debug_text(x)}{self._debug_text(y)}",
            )
        self._members[new] = merged
        self._parents[old] = new
        if x_rank == y_rank:
            self._ranks[new] = x_rank + 1

    # ---- reference and resource edges --------------------------------------------------------------------------------

    def _add_edges(self) -> list[Node]:
        """Colocate the ends of reference and resource edges. Returns the calls whose functions return resources."""
        calls: list[Node] = []
        handles: dict[tuple[DType, ...], list[int]] = {}
        for node in self.nodes:
            types = node.input_types
            slots = handles.get(types)
            if slots is None:
                slots = handles[types] = [slot for slot, dtype in enumerate(types) if dtype.is_ref or dtype is resource]
            if resource in node.output_types and called_function(node) is not None:
                calls.append(node)
                for output, dtype in enumerate(node.output_types):
                    if dtype is resource:
                        self._add_call_output(node, output)
        inspected = set(calls)
        for node in self.nodes:
            slots = handles[node.input_types]
            if slots and node not in inspected and not is_exempt(node):
                for slot in slots:
                    self._add_edge(node, slot)
        return calls

    def _add_call_output(self, node: Node, output: int) -> None:
        """Add an entry for a resource that a call returns: it can be elsewhere than the call."""
        self._call_outputs[node, output] = len(self._members)
        self._parents.append(len(self._members))
        self._owners.append(node)
        self._members.append(Member(tuple([(name, 0) for name in self.kernels.device_types])))

    def _source(self, node: Node, slot: int) -> int | None:
        """The entry of the producer of an input, None if it is not among the nodes."""
        tensor = node.inputs[slot]
        if self._call_outputs:
            output = self._call_outputs.get((tensor.node, tensor.index))
            if output is not None:
                return output
        return self._index.get(tensor.node)

    def _add_edge(self, node: Node, slot: int) -> None:
        source = self._source(node, slot) if slot < len(node.inputs) else None
        if source is None:
            return
        reason: Reason = "resource edge" if node.input_types[slot] is resource else "reference edge"
        tensor = node.inputs[slot]
        self.links.append(Link(tensor.node, node, reason, f"{reason} {tensor.name} -> {node.name}:{slot}"))
        here = self.root(self._index[node])
        there = self._members[self.root(source)]
        self._members[here] = self._given_way(node, self._members[here], tensor.node, there)
        try:
            self._colocate(source, self._index[node])
        except InvalidArgumentError as error:
            raise InvalidArgumentError.at(
                node,
                "Nodes were connected by a reference or resource edge, which requires them to be on the same device, but the two nodes "
                f"were assigned two different devices: {error.message}",
            ) from error

    def _given_way(self, node: Node, mine: Member, source: Node, theirs: Member) -> Member:
        """The constraints of a consumer's group, whose request gives way to that of the producer's group.

        Raises:
            InvalidArgumentError: the assigned or resource devices of the groups differ.
        """
        check_compatible("assigned devices", theirs.assigned, mine.assigned, source, node)
        check_compatible("resource devices", theirs.resource, mine.resource, source, node)
        if not self.options.allow_soft_placement:
            check_compatible("assigned and resource devices", theirs.firm, mine.firm, source, node)
        if theirs.requested.is_compatible_with(mine.requested):
            return mine
        self.ignored[node] = f"the edge from '{source.name}' requires its device, {theirs.requested}"
        if self.options.log is not None:
            self.options.log.info(
                "Ignoring device specification %s for node '%s': the reference or resource edge from '%s' requires %s",
                *(mine.requested, node.name, source.name, theirs.requested),
            )
        return mine.following(theirs)

    # ---- calls -----------------------------------------------------------------------------------------------------

    def _add_call(self, node: Node) -> None:
        """Colocate the resources that a call takes and returns as its body requires."""
        called = called_function(node)
        assert called is not None
        if called in self.stack:
            raise UnimplementedError.at(
                node,
                f"Recursive function calls are not supported: {{{{node {node.name}}}}} calls function {called.name}, which is in the call "
                f"stack already: {self.stack}",
            )
        body = called_body(called, self.options.library)
        inner = ColocationGraph(body.graph.nodes, self.options, self.kernels, self.stack.push(called))
        inner.initialize()
        groups: dict[int, int] = {}
        entries = [
            (inner._index[arg], self._source(node, slot)) for slot, arg in enumerate(body.arg_nodes) if body.arg_types[slot] is resource
        ]
        entries += [
            (inner._index[ret], self._call_outputs.get((node, output)))
            for output, ret in enumerate(body.ret_nodes)
            if body.ret_types[output] is resource
        ]
        for within, outside in entries:
            root = inner.root(within)
            if outside is None:
                continue
            first = groups.setdefault(root, outside)
            if first == outside:
                self._limit(node, outside, inner._members[root])
                continue
            one, two = self._members[self.root(first)], self._members[self.root(outside)]
            check_compatible("resource devices", one.resource, two.resource, self._owners[first], self._owners[outside])
            self.links.append(
                Link(self._owners[first], self._owners[outside], "call", f"resources joined by {called.name} in call {node.name}")
            )
            self._colocate(first, outside)

    def _limit(self, node: Node, entry: int, inside: Member) -> None:
        """Restrict a group to the devices that the body of a call allows for a resource."""
        root = self.root(entry)
        check_compatible("resource devices", self._members[root].resource, inside.resource, self._owners[entry], node)
        try:
            merged = self._members[root].merged(inside, self.options.allow_soft_placement)
        except InvalidArgumentError as error:
            raise InvalidArgumentError.at(node, f"Cannot place the resources of call {{{{node {node.name}}}}}: {error.message}") from error
        if merged is None:
            raise InvalidArgumentError.at(
                node,
                f"Cannot colocate nodes {colocation_node(self._owners[entry])} and {colocation_node(node)} because no device type supports "
                "both of those nodes and the other nodes colocated with them.",
            )
        self._members[root] = merged
        self.limits.append((root, node))

    # ---- _class ----------------------------------------------------------------------------------------------------

    def _add_classes(self) -> None:
        """Colocate the nodes that name the same group by `loc:@`; a node is in the group of its own name."""
        wanted = [(node, members[0], group) for group, members in class_groups(self.nodes).items() for node in members[1:]]
        for node, first, group in sorted(wanted, key=lambda entry: entry[0].id):
            self._colocate_class(node, first, group)

    def _colocate_class(self, node: Node, first: Node, group: str) -> None:
        try:
            self._colocate(self._index[node], self._index[first])
        except InvalidArgumentError as error:
            if not self.options.allow_soft_placement:
                self.links.append(Link(node, first, "loc:@", f"_class loc:@{group}"))
                raise
            self.dropped[node] = (
                f"the colocation with '{first.name}' (loc:@{group}) is impossible and dropped: {error.message.splitlines()[0]}"
            )
            if self.options.log is not None:
                self.options.log.info("Ignoring request to colocate '%s' with group '%s': %s", node.name, group, error.message)
        else:
            self.links.append(Link(node, first, "loc:@", f"_class loc:@{group}"))

    # ---- possible devices ------------------------------------------------------------------------------------------

    def devices_for(self, node: Node) -> tuple[Device, ...]:
        """The devices that the group of a node can be on, best first.

        Raises:
            InvalidArgumentError: there is none.
        """
        member = self._members[self.root(self._index[node])]
        devices = self._possible.get(member)
        if devices is None:
            devices = self._possible[member] = possible_devices(member, self.options)
        if not devices:
            raise impossible(node, member, self.options, self._debug_text(self._index[node]))
        return devices

    def _debug_text(self, entry: int) -> str:
        """The types of device of each op of a group, and its members with their requests."""
        root = self.root(entry)
        nodes = [node for index, node in enumerate(self.nodes) if self.root(index) == root]
        return group_text(nodes, self._members[root], self.kernels)


def _local_address(options: PlacementOptions) -> DeviceSpec:
    """The address of this process: that of the local device, or of the first device."""
    local = options.default_local_device
    return ANYWHERE if not len(options.devices) else (local or options.devices.devices[0]).spec
