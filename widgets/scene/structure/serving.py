"""Serving: parameters, constants and plumbing belong to the one item that they serve."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from graphcore.plumbing import NO_OP
from widgets.scene.structure.items import Items

if TYPE_CHECKING:
    from graphcore.graph import Node

CONE: Final = 24
"""A value computed from constants and variables is a parameter up to this many nodes; beyond, it is computation."""
NEAR: Final = 24
"""A parameter of several items is kept with the first if they are at most so many items apart."""
_GRADIENTS: Final = re.compile(r"(.*/)?gradients(_\d+)?(/|$)")
"""The scopes that gradients have in files, which say nothing else of them."""
PARAMETRIC: Final = frozenset({"product", "convolution", "depthwise convolution", "transposed convolution"})
"""Layers that have parameters."""


def is_heavy(node: Node) -> bool:
    """True for a product or a convolution, which may have parameters but is none."""
    return node.registration.traits.layer in PARAMETRIC


def is_end(node: Node) -> bool:
    """True for an input or a result of a graph or function."""
    return node.registration.traits.role in {"placeholder", "return"}


def is_variable(node: Node) -> bool:
    """True for a variable or a handle of one."""
    return node.registration.traits.role == "variable"


def is_plumbing(node: Node) -> bool:
    """True for a node that passes its inputs on as they are."""
    traits = node.registration.traits
    return traits.memory == "alias" and traits.role == "op"


def is_parameter(node: Node) -> bool:
    """True for a source of values that do not depend on what is fed."""
    traits = node.registration.traits
    return traits.role in {"constant", "variable"} or (is_end(node) and bool(node.outputs) and node.outputs[0].dtype.text == "resource")


def serving_nodes(nodes: Sequence[Node]) -> set[str]:
    """The names of constants, variables, shapes, and of everything computed from few of these alone."""
    cones: dict[str, int] = {}
    for node in sorted(nodes, key=lambda each: each.id):
        if is_parameter(node) or node.registration.traits.needs_only_shapes:
            cones[node.name] = 1
        elif node.inputs and not is_heavy(node) and not is_end(node):
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

    An item joins only one before all others that follow it, so joining makes no cycle. A variable that several scopes of the forward pass use,
    such as towers, belongs to none of them.

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
    variable = _of_variables(items, order, serving)
    for item in reversed(order):
        if variable[item] and len({host[target] for target in items.outputs[item] if _is_forward_scope(items, target)}) > 1:
            continue
        main = items.members[item][0]
        single = len(items.members[item]) == 1
        ends = single and main.op == NO_OP
        served = {host[target] for target in (waiting[item] if ends else items.outputs[item])}
        plumbing = ends or (single and is_plumbing(main) and len(items.inputs[item]) == 1)
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
    _fold_ends(items, order, serving, host)
    return [_last(host, item) for item in range(len(items))]


def _of_variables(items: Items, order: Sequence[int], serving: Sequence[bool]) -> list[bool]:
    """True for each serving item that has a variable, or takes its value from such an item."""
    found = [False] * len(items)
    for item in order:
        own = any(is_variable(node) for node in items.members[item])
        found[item] = serving[item] and (own or any(found[source] for source in items.inputs[item]))
    return found


def _is_forward_scope(items: Items, item: int) -> bool:
    """True for a scope of the forward pass that others take values from.

    Initializers, savers and training steps end in themselves.
    """
    nodes = items.members[item]
    is_gradient = items.backward[item] or _GRADIENTS.match(nodes[0].name.rpartition("/")[0] or nodes[0].name) is not None
    return len(nodes) > 1 and bool(items.outputs[item]) and not is_gradient and not any(is_variable(node) for node in nodes)


def _fold_ends(items: Items, order: Sequence[int], serving: Sequence[bool], host: list[int]) -> None:
    """Let items without consumers belong to their input.

    These are initialisers and unused shapes with a single input, and plumbing that waits for nothing later than its input.
    """
    served: dict[int, list[int]] = {}
    for item, target in enumerate(host):
        served.setdefault(target, []).append(item)
    place = {item: position for position, item in enumerate(order)}
    awaited = {source for sources in items.awaited for source in sources}
    for item in order:
        if host[item] != item or items.outputs[item]:
            continue
        before = {_last(host, source) for each in _inside(served, item) for source in items.before(each)} - {item}
        if serving[item]:
            if len(before) == 1:
                host[item] = before.pop()
        elif before and is_plumbing(items.members[item][0]) and len(items.inputs[item]) == 1 and item not in awaited:
            source = _last(host, items.inputs[item][0])
            if source == max(before, key=place.__getitem__) and items.backward[source] == items.backward[item]:
                host[item] = source


def _inside(served: Mapping[int, Sequence[int]], item: int) -> list[int]:
    """An item and everything that belongs to it, at any depth."""
    inside = [item]
    for each in inside:
        inside.extend(other for other in served.get(each, ()) if other != each)
    return inside


def _last(host: list[int], item: int) -> int:
    while host[item] != item:
        item = host[item]
    return item
