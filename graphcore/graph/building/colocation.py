"""Colocation: new nodes on the devices of others, by attr `_class`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from graphcore.graph.building.scopes import only_device
from graphcore.graph.model.argument_errors import refuse
from graphcore.graph.model.node import Node
from graphcore.graph.model.plain_graph import PlainGraph
from graphcore.support.critical_section import critical_contextmanager


@critical_contextmanager
def colocate_with(graph: PlainGraph, op: Any, *, ignore_existing: bool) -> Iterator[None]:
    """Put new nodes on the device of another; see `Graph.colocate_with`."""
    node = op if isinstance(op, Node) else getattr(op, "op", None)
    scopes = graph.scopes
    groups: Iterable[bytes] = ()
    device = ""
    if isinstance(node, Node):
        graph.owned(node)
        groups, device = node.colocation_groups(), node.device
    elif op is not None or not ignore_existing:
        refuse("op", "a node, a tensor or a variable; None only with ignore_existing=True", op)
    if not device and scopes.device_is_fixed and not ignore_existing:
        device = scopes.device  # that of the block around
    outer = scopes.around_colocation, scopes.requests_none
    around = None if not scopes.is_entered else outer[0] or (scopes.device, scopes.device_functions)
    with only_device(graph, device, fixed=bool(device)), colocated_with(graph, groups, ignore_existing=ignore_existing):
        try:
            scopes.around_colocation, scopes.requests_none = around, True
            yield
        finally:
            scopes.around_colocation, scopes.requests_none = outer


@critical_contextmanager
def variable_devices(graph: PlainGraph) -> Iterator[None]:
    """Request the devices around the outermost `colocate_with` for a variable made directly in it.

    As in TensorFlow 1, they hold only within `as_default` of the graph, and where no colocated node has a device.
    """
    scopes = graph.scopes
    if scopes.around_colocation is None or scopes.device_is_fixed or not scopes.requests_none:
        yield
        return
    with only_device(graph, *scopes.around_colocation, fixed=False):
        yield


@critical_contextmanager
def colocated_with(graph: PlainGraph, groups: Iterable[bytes], *, ignore_existing: bool = False) -> Iterator[None]:
    """Add groups to attr `_class` of new nodes, beside the groups of surrounding blocks."""
    scopes = graph.scopes
    outer = scopes.colocated
    try:
        scopes.colocated = tuple(sorted({*(() if ignore_existing else outer), *groups}))
        yield
    finally:
        scopes.colocated = outer
