"""Serving: parameters, constants and plumbing belong to the one item that they serve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from widgets.scene.structure.items import Items

if TYPE_CHECKING:
    from graphcore.graph import Node

CONE: Final = 24
"""A value computed from constants and variables is a parameter up to this many nodes; beyond, it is computation."""
NEAR: Final = 24
"""A parameter of several items is kept with the first if they are at most so many items apart."""
SOURCES: Final = frozenset({"Const", "Variable", "VariableV2", "VarHandleOp", "TemporaryVariable"})
SHAPES: Final = frozenset({"Shape", "ShapeN", "Size", "Rank", "VariableShape"})
PLUMBING: Final = frozenset({"Identity", "IdentityN", "StopGradient", "PreventGradient", "CheckNumerics", "EnsureShape"})
ENDS: Final = frozenset({"Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "_Arg", "_Retval"})
HEAVY: Final = frozenset({"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum", "Conv2D", "Conv3D", "DepthwiseConv2dNative"})


def is_parameter(node: Node) -> bool:
    """True for a source of values that do not depend on what is fed."""
    return node.op in SOURCES or (node.op in ENDS and bool(node.outputs) and node.outputs[0].dtype.name == "resource")


def serving_nodes(nodes: Sequence[Node]) -> set[str]:
    """The names of constants, variables, shapes, and of everything computed from few of these alone."""
    cones: dict[str, int] = {}
    for node in sorted(nodes, key=lambda each: each.id):
        if is_parameter(node) or node.op in SHAPES:
            cones[node.name] = 1
        elif node.inputs and node.op not in HEAVY and node.op not in ENDS:
            size = 1
            for tensor in node.inputs:
                size += cones.get(tensor.node.name, CONE)
                if size > CONE:
                    break
            else:
                cones[node.name] = size
    return set(cones)


def hosts(items: Items, order: Sequence[int], serving: Sequence[bool]) -> list[int]:
    """The item that each item belongs to: itself, or the one that it serves.

    An item joins only one before all others that follow it, so joining makes no cycle.

    Args:
        order: the items in topological order.
        serving: true for items of serving nodes alone.
    """
    host = list(range(len(items)))
    place = [0] * len(items)
    for position, item in enumerate(order):
        place[item] = position
    waiting: list[list[int]] = [[] for _ in host]
    for item, sources in enumerate(items.awaited):
        for source in sources:
            waiting[source].append(item)
    for item in reversed(order):
        served = {host[target] for target in items.outputs[item]}
        plumbing = len(items.members[item]) == 1 and items.members[item][0].op in PLUMBING and len(items.inputs[item]) == 1
        if not served or not (serving[item] or (plumbing and len(served) == 1)):
            continue
        first = min(served, key=place.__getitem__)
        near = len(served) == 1 or max(place[target] for target in served) - place[first] <= NEAR
        if (
            near
            and items.backward[item] == items.backward[first]
            and all(place[host[target]] > place[first] for target in waiting[item] if host[target] != first)
        ):
            host[item] = first
    for item in order:  # initialisers end at the variable that they serve
        if host[item] == item and serving[item] and not items.outputs[item]:
            ends_at = {host[source] for source in items.before(item)} - {item}
            if len(ends_at) == 1:
                host[item] = ends_at.pop()
    return [_last(host, item) for item in range(len(items))]


def _last(host: list[int], item: int) -> int:
    while host[item] != item:
        item = host[item]
    return item
