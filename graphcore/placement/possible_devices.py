"""The devices that a group of colocated nodes can be on, and the errors of those that have none."""

from __future__ import annotations

import msgspec

from graphcore.device_spec import DeviceSpec
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.graph import Node
from graphcore.placement.constraints import PlacementOptions, requested_device
from graphcore.placement.device import Device, DeviceSet, device_type_priority, used_on_request_only
from graphcore.placement.kernels import kernels_text
from graphcore.placement.member import ANYWHERE, Member, firmly
from graphcore.placement.texts import available_text, colocation_node, gpu_hint


def possible_devices(member: Member, options: PlacementOptions) -> tuple[Device, ...]:
    """The devices of a group with these constraints, best first; empty if there is none."""
    return fitting_request(member, options)[1]


def fitting_request(member: Member, options: PlacementOptions) -> tuple[DeviceSpec, tuple[Device, ...]]:
    """The request of a group, or what soft placement leaves of it, and the devices that fit.

    The best device is first; there is none if no device fits.
    """
    requested = member.requested
    specs = [requested]
    if options.allow_soft_placement and requested != ANYWHERE:
        bare = msgspec.structs.replace(requested, type=None, id=None)
        same_type = firmly(msgspec.structs.replace(requested, id=None), member.firm)
        specs += [same_type, firmly(bare, member.firm), firmly(bare, member.assigned)]
    for spec in specs:
        devices = _supported(member, spec, options)
        if devices:
            return spec, devices
    return requested, ()


def _supported(member: Member, spec: DeviceSpec, options: PlacementOptions) -> tuple[Device, ...]:
    """The devices that match a request and have kernels for all nodes of a group, best first."""
    priorities = {name: priority for name, priority in member.types if spec.type is not None or not used_on_request_only(name)}
    local = options.default_local_device
    fitting = [device for device in options.devices.find_matching_devices(spec) if device.device_type in priorities]
    fitting.sort(
        key=lambda device: (
            local is None or device.name != local.name,
            -priorities[device.device_type],
            -device_type_priority(device.device_type),
            device.name,
        )
    )
    return tuple(fitting)


def impossible(node: Node, member: Member, options: PlacementOptions, group: str) -> GraphError:
    """The error of a node when no device is left for its group.

    Args:
        node: the node.
        member: the constraints of its group.
        options: the devices and the rules.
        group: the text about the nodes of the group.
    """
    devices = options.devices
    if member.requested == ANYWHERE:
        return InvalidArgumentError.at(
            node,
            f"Node had no OpKernel registered to support this operation: Operation was {node.op} and inputs were "
            f"[{', '.join([dtype.text for dtype in node.input_types])}].\n{group}",
        )
    own = requested_device(node) if node.device else ANYWHERE
    if own != member.requested:
        return InvalidArgumentError.at(
            node,
            f"Could not satisfy explicit device specification '{node.device}' because the node {colocation_node(node)} was colocated "
            f"with a group of nodes that required incompatible device '{member.requested}'. All available devices "
            f"[{available_text(devices)}].{group}",
        )
    if not devices.find_matching_devices(own):
        return InvalidArgumentError.at(
            node,
            f"{{{{node {node.name}}}}}was explicitly assigned to {node.device} but available devices are "
            f"[ {available_text(devices)} ]. Make sure the device specification refers to a valid device.{gpu_hint(own, devices)}",
        ).advise(
            f"Ask for a device that is there, such as `{_short(devices)[0]}`, or leave the choice to "
            "the session: `options=gc.SessionOptions(allow_soft_placement=True)`.",
            required=f"a device {node.device}",
            came=f"only {' and '.join(_short(devices))}",
        )
    if own.type is None:
        return InvalidArgumentError.at(node, f"Could not satisfy explicit device specification '{node.device}'{group}")
    return InvalidArgumentError.at(
        node,
        f"Could not satisfy explicit device specification '{node.device}' because no supported kernel for {own.type} devices is "
        f"available.{group}\nOp: {node.op}\nRegistered kernels:\n{kernels_text(node)}",
    ).advise(
        f"Make '{node.name}' within `with gc.device('/cpu:0'):`, or leave the choice to the session: "
        "`options=gc.SessionOptions(allow_soft_placement=True)`.",
        required=f"a kernel of {node.op} for {own.type}",
        came="none for its types",
    )


def _short(devices: DeviceSet) -> list[str]:
    """The names of devices as users write them: `/cpu:0`; of several tasks `/job:worker/task:1/cpu:0`."""
    parts = [device.name.rpartition("/device:") for device in devices.devices]
    is_one_task = len({task for task, _, _ in parts}) == 1
    return [f"{'' if is_one_task else task.replace('/replica:0', '')}/{kind.lower()}" for task, _, kind in parts]
