"""Parts of the error texts of placement."""

from __future__ import annotations

from collections.abc import Sequence

from graphcore.device_spec import DeviceSpec
from graphcore.graph import Node
from graphcore.placement.device import DeviceSet
from graphcore.placement.kernels import KernelLookup
from graphcore.placement.member import Member


def colocation_node(node: Node) -> str:
    """The mark of a node in texts about colocation."""
    return f"{{{{colocation_node {node.name}}}}}"


def available_text(devices: DeviceSet) -> str:
    """The names of the available devices, simulated ones marked."""
    return ", ".join(sorted([str(device) for device in devices]))


def gpu_hint(spec: DeviceSpec, devices: DeviceSet) -> str:
    """A hint for a request of a GPU where there is none."""
    if (spec.type or "").upper() != "GPU" or any(device.device_type.upper() == "GPU" for device in devices):
        return ""
    return " The requested device appears to be a GPU, and there is none among these devices."


def group_text(nodes: Sequence[Node], member: Member, kernels: KernelLookup) -> str:
    """The device types of each op of a group, best first, and its nodes; "" for a single node."""
    if len(nodes) < 2:
        return ""
    types = {node.op: " ".join([name for name, _ in kernels.supported(node)]) for node in nodes}
    lines = ["", "Colocation group had the following types and supported devices:", f"Group requires: {member_text(member)}"]
    lines += [f"{op}: {supported}" for op, supported in types.items()]
    lines += ["", "Colocation members, user-requested devices, and assigned devices, if any:"]
    for node in nodes:
        assigned = f" assigned device={node.assigned_device}" if node.assigned_device else ""
        lines.append(f"  {node.name} ({node.op}) {node.device}{assigned}".rstrip())
    return "\n".join(lines) + "\n"


def member_text(member: Member) -> str:
    """The constraints of a group in words."""
    parts = [
        f"{kind} device '{spec}'"
        for kind, spec in (("requested", member.requested), ("assigned", member.assigned), ("resource", member.resource))
        if str(spec)
    ]
    return ", ".join([*parts, f"one of the types {' '.join([name for name, _ in member.types])}"])
