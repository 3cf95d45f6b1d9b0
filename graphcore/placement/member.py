"""Members of a colocation graph: what is known of the device of one node or of one group."""

from __future__ import annotations

from typing import Final

import msgspec

from graphcore.device_spec import DeviceSpec
from graphcore.placement.kernels import DeviceTypes, by_priority

ANYWHERE: Final = DeviceSpec()


class Member(msgspec.Struct, frozen=True):
    """The constraints of a group of colocated nodes; a group has at least one node.

    Args:
        types: the device types that all its nodes support, best first.
        requested: the requested device; it contains the parts of the other two.
        assigned: the assigned device.
        resource: the requested device of a node that makes a resource or reference, which counts as assigned.
    """

    types: DeviceTypes
    requested: DeviceSpec = ANYWHERE
    assigned: DeviceSpec = ANYWHERE
    resource: DeviceSpec = ANYWHERE

    @property
    def firm(self) -> DeviceSpec:
        """The parts of the device that soft placement keeps if it can: those of assigned device and resource."""
        return firmly(self.resource, self.assigned)

    def merged(self, other: Member, allow_soft: bool) -> Member | None:
        """The constraints of both; None if no device type is left.

        Raises:
            InvalidArgumentError: the devices of the two differ, `Cannot merge devices with incompatible ...`.
        """
        assigned = self.assigned if other.assigned == ANYWHERE else self.assigned.merge(other.assigned)
        resource = self.resource if other.resource == ANYWHERE else self.resource.merge(other.resource)
        requested = self.requested if other.requested == ANYWHERE else self.requested.merge(other.requested, allow_soft)
        types = merged_types(self.types, other.types)
        if not allow_soft and resource != ANYWHERE:
            resource.merge(assigned)
        return Member(types, firmly(firmly(requested, resource), assigned), assigned, resource) if types else None

    def following(self, source: Member) -> Member:
        """These constraints with the request of `source`; an own request gives way where it is incompatible."""
        requested = firmly(source.requested, self.firm)
        return Member(self.types, requested, self.assigned, self.resource)


def firmly(requested: DeviceSpec, firm: DeviceSpec) -> DeviceSpec:
    """A request with the parts set in `firm`."""
    return requested if firm == ANYWHERE else firm if requested == ANYWHERE else firm.merge_unset(requested)


def merged_types(first: DeviceTypes, second: DeviceTypes) -> DeviceTypes:
    """The common device types with their priorities.

    A side that states priorities of kernels prevails; if both state some, and in different orders, none counts.
    """
    if first is second:
        return first
    names = {name for name, _ in first} & {name for name, _ in second}
    mine = by_priority([entry for entry in first if entry[0] in names])
    theirs = by_priority([entry for entry in second if entry[0] in names])
    if not _states_priorities(theirs):
        return mine
    if not _states_priorities(mine):
        return theirs
    if [name for name, _ in mine] == [name for name, _ in theirs]:
        return mine
    return by_priority([(name, 0) for name, _ in mine])


def _states_priorities(types: DeviceTypes) -> bool:
    return any(priority for _, priority in types)
