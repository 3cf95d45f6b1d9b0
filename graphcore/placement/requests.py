"""Requests of devices: as changes of a graph, and as lines for the cells that made its nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

from graphcore.errors import NotFoundError
from graphcore.graph import Graph, Node
from graphcore.source import SourceLocation
from graphcore.support.critical_section import critical_contextmanager

Requests = Mapping[str, str]
"""The names of nodes with the devices to request, full or partial."""


class DeviceLine(msgspec.Struct, frozen=True):
    """A line of code that requests a device.

    Args:
        where: the line that made the nodes, such as `cell In [3], line 2`; "" if unknown.
        code: the line to put above it.
        nodes: the names of the nodes.
        others: the number of other nodes that the same line made, by another call of its function, say.
    """

    where: str
    code: str
    nodes: tuple[str, ...]
    others: int = 0

    def __str__(self) -> str:
        more = f" and {len(self.nodes) - 1} more" if len(self.nodes) > 1 else ""
        place = f"{self.where}: " if self.where else ""
        others = f"  # the line also makes {self.others} other nodes: put it around the call for these alone" if self.others else ""
        return f"# {place}{self.nodes[0]}{more}\n{self.code}{others}"


def device_lines(graph: Graph, requests: Requests) -> tuple[DeviceLine, ...]:
    """The lines that make the cells of the nodes request devices, in the order of the nodes."""
    names_by_place: dict[tuple[SourceLocation | None, str], list[str]] = {}
    for node, device in _nodes(graph, requests):
        names_by_place.setdefault((node.source, device), []).append(node.name)
    lines = []
    nodes_at = Counter(node.source for node in graph.nodes)
    for (source, device), names in names_by_place.items():
        where, others = ("", 0) if source is None else (source.where, nodes_at[source] - len(names))
        lines.append(DeviceLine(where, f'with gc.device("{device}"):', tuple(names), others))
    return tuple(lines)


def request_devices(graph: Graph, requests: Requests) -> tuple[DeviceLine, ...]:
    """Request devices for nodes of a graph, all or none; the lines that do so in the cells are returned.

    A cell that runs again without its line takes its requests back.

    Raises:
        NotFoundError: the graph has no such node.
        InvalidArgumentError: the name of a device is malformed.
        FailedPreconditionError: the graph has been finalized.
    """
    with graph.transaction():
        for node, device in _nodes(graph, requests):
            graph.set_requested_device(node, device)
    return device_lines(graph, requests)


@critical_contextmanager
def tried_requests(graph: Graph, requests: Requests) -> Iterator[None]:
    """Request devices for the time of the block; no subscriber is notified."""
    nodes = _nodes(graph, requests)
    with graph.lock:
        before = [(node, node.node_def) for node, _ in nodes]
        try:
            for node, device in nodes:
                node.node_def = msgspec.structs.replace(node.node_def, device=device)
            yield
        finally:
            for node, node_def in before:
                node.node_def = node_def


def _nodes(graph: Graph, requests: Requests) -> list[tuple[Node, str]]:
    pairs = [(graph.find(name), device) for name, device in requests.items()]
    missing = [name for name, (node, _) in zip(requests, pairs, strict=True) if node is None]
    if missing:
        raise NotFoundError(f"Required names of nodes of the graph, got {', '.join(repr(name) for name in missing)}")
    return [(node, device) for node, device in pairs if node is not None]
