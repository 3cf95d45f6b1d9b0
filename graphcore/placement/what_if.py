"""The effect of a requested device, before it is requested."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from graphcore.device_spec import DeviceSpec
from graphcore.errors import FailedPreconditionError, GraphError, InvalidArgumentError
from graphcore.graph import Graph, Node
from graphcore.placement.conflict import minimal_conflict
from graphcore.placement.copies import Copy, copies_of, total_text
from graphcore.placement.cost_model import model_of
from graphcore.placement.device import Device, DeviceSet
from graphcore.placement.explanation import NodeInConflict, described_conflict
from graphcore.placement.placer import node_behind, placer_for, without_placement
from graphcore.placement.requests import DeviceLine, device_lines, request_devices, tried_requests
from graphcore.placement.step_prediction import StepPrediction, client_of, predict_step, step_devices


class MovedNode(msgspec.Struct, frozen=True):
    """A node that changes its device.

    Args:
        name: the node.
        source, destination: the names of the devices.
        requested: True if the device is requested for the node itself; False if the node follows.
    """

    name: str
    source: str
    destination: str
    requested: bool


class PlacementEffect(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of requesting a device for some nodes.

    Args:
        nodes: their names.
        device: the device, as requested.
        error: the constraint that the request breaks, in the placer's words; "" if the graph can be placed.
        conflict: the nodes of a minimal conflicting set, if it cannot.
        moved: the nodes that change their device; those that are colocated with the requested ones or follow them too.
        ignored: the nodes for which the placer ignores the request, as it does where a variable that they change requests another device.
        before, after: the predicted step; None where the graph cannot be placed.
        copies_before, copies_after: the copies between devices in the step.
        lines: the lines that make the request in the cells of the nodes.
    """

    nodes: tuple[str, ...]
    device: str
    error: str = ""
    conflict: tuple[NodeInConflict, ...] = ()
    moved: tuple[MovedNode, ...] = ()
    ignored: tuple[str, ...] = ()
    before: StepPrediction | None = None
    after: StepPrediction | None = None
    copies_before: tuple[Copy, ...] = ()
    copies_after: tuple[Copy, ...] = ()
    lines: tuple[DeviceLine, ...] = ()

    def apply(self, graph: Graph) -> tuple[DeviceLine, ...]:
        """Make the request, and return the lines that make it in the cells of the nodes.

        Raises:
            InvalidArgumentError: the graph could not be placed then.
            NotFoundError: the graph has no such node.
            FailedPreconditionError: the graph has been finalized.
        """
        if self.error:
            raise InvalidArgumentError(f"'{self.device}' cannot be requested for {_listed(self.nodes)}: {self.error}")
        return request_devices(graph, dict.fromkeys(self.nodes, self.device))

    def to_json(self) -> str:
        """All of it, as JSON."""
        return msgspec.json.encode(self).decode()

    def __str__(self) -> str:
        lines = [f"{_listed(self.nodes)} on {self.device}"]
        if self.error:
            lines += [f"  cannot be placed: {self.error.splitlines()[0]}"]
            lines += [f"    {' '.join(filter(None, (entry.name, entry.device, entry.where)))}" for entry in self.conflict]
            return "\n".join(lines)
        followers = [node for node in self.moved if not node.requested]
        lines += [
            f"  moves: {len(self.moved)}" + (f", of which {len(followers)} follow: {_listed(_names(followers))}" if followers else "")
        ]
        if self.ignored:
            lines += [f"  ignored for {_listed(self.ignored)}"]
        if self.after is not None:
            lines += [f"  predicted step{self.after.clock}: {_length(self.before)} before, {_length(self.after)} after"]
            lines += [f"    {note}" for note in self.after.notes]
            devices = sorted({*self.after.peak_bytes, *(self.before.peak_bytes if self.before else ())})
            lines += [f"  peak memory of {name}: {self._peak(name)}" for name in devices]
        lines += [f"  copies: {total_text(self.copies_before)} before; {total_text(self.copies_after)} after"]
        return "\n".join(lines + [f"  {line}" for entry in self.lines for line in str(entry).splitlines()])

    def _peak(self, device: str) -> str:
        before = "unknown" if self.before is None else f"{self.before.peak_bytes.get(device, 0):,} bytes"
        after = 0 if self.after is None else self.after.peak_bytes.get(device, 0)
        return f"{before} before, {after:,} bytes after"


def what_if(
    nodes: Any,
    device: str | DeviceSpec,
    devices: DeviceSet | None = None,
    *,
    fetches: Iterable[Any] | None = None,
    allow_soft_placement: bool = False,
    measured: Mapping[str, float] | None = None,
) -> PlacementEffect:
    """Find the effect of requesting a device; the graph is unchanged.

    Args:
        nodes: a node, a tensor, a variable or a name in the default graph, or several of these, of one graph.
        device: the device, by a full or partial name; "" withdraws requests.
        devices: the devices to choose from; by default those of the last placement of the graph, or else the CPU of this process.
        fetches: the fetches of the step, as for `predict_step`, or names of them.
        allow_soft_placement: as for `Placer`; counts with `devices` only.
        measured: the seconds of nodes by name, as for `CostModel`.

    Raises:
        InvalidArgumentError: there is no node, they are of several graphs, or the name of the device is malformed.
        NotFoundError: no such node.
        FailedPreconditionError: there are no devices.
    """
    items = nodes if isinstance(nodes, list | tuple | set | frozenset) else [nodes]
    targets = list(dict.fromkeys([node_behind(item) for item in items]))
    if not targets or any(node.graph is not targets[0].graph for node in targets):
        raise InvalidArgumentError(f"Required nodes of one graph, got {_listed([node.name for node in targets]) or 'none'}")
    graph = targets[0].graph
    spec = device if isinstance(device, DeviceSpec) else DeviceSpec.parse(device)
    placer = placer_for(graph, devices, allow_soft_placement)
    names = tuple([node.name for node in targets])
    requests = dict.fromkeys(names, spec.to_string())
    try:
        before = placer.choose().devices
    except FailedPreconditionError:
        raise
    except GraphError:
        before = {}
    with tried_requests(graph, requests):
        try:
            after = placer.choose().devices
        except GraphError as error:
            with without_placement(graph):
                conflict = described_conflict(minimal_conflict(graph.nodes, placer.options))
            return PlacementEffect(nodes=names, device=spec.to_string(), error=error.message, conflict=conflict)
    model, client = model_of(graph, measured), client_of(placer.options.devices)
    wanted = None if fetches is None else [node_behind(fetch) for fetch in fetches]
    return PlacementEffect(
        nodes=names,
        device=spec.to_string(),
        moved=tuple(
            [
                MovedNode(node.name, before[node].name, there.name, node.name in requests)
                for node, there in after.items()
                if node in before and before[node].name != there.name
            ]
        ),
        ignored=tuple([node.name for node in targets if not spec.is_specification_of(after[node].spec)]),
        before=predict_step(before, model, wanted, client=client) if before else None,
        after=predict_step(after, model, wanted, client=client),
        copies_before=_copies(step_devices(before, wanted)),
        copies_after=_copies(step_devices(after, wanted)),
        lines=device_lines(graph, requests),
    )


def _copies(devices: Mapping[Node, Device]) -> tuple[Copy, ...]:
    return tuple(dict.fromkeys([copy for node in devices for copy in copies_of(node, devices)]))


def _names(nodes: Iterable[MovedNode]) -> list[str]:
    return [node.name for node in nodes]


def _listed(names: Iterable[str], most: int = 3) -> str:
    listed = list(names)
    more = [f"{len(listed) - most} more"] if len(listed) > most else []
    shown = listed[:most] + more
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))


def _length(prediction: StepPrediction | None) -> str:
    return "cannot be placed" if prediction is None else prediction.length
