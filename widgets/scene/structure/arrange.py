"""The arrangement of one scope: joined cycles, folded helpers, and groups of the rest."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from widgets.scene.structure.alike import main_ops
from widgets.scene.structure.decompose import evaluation_order
from widgets.scene.structure.evidence import telling_layers
from widgets.scene.structure.items import Items, joined, loops, make_items
from widgets.scene.structure.naming import is_foreign, kind_name
from widgets.scene.structure.serving import hosts, is_end, serving_nodes
from widgets.scene.structure.summary import PARTS, Bunch, summarise

if TYPE_CHECKING:
    from graphcore.graph import Node

MANY_MODULES: Final = 3
"""A repeat of so many modules of another framework is shown as one also if nothing is beside it."""
FEW_PARTS: Final = 40
"""A scope with more parts than this is shown as groups of them."""


@dataclass(slots=True)
class Unit:
    """One part, or the parts of a cycle, with the parts that serve them, such as parameters. Parts are known by position.

    Attributes:
        label: the name of a cycle, "" for one part.
    """

    parts: list[int]
    helpers: list[int] = field(default_factory=list)
    label: str = ""


@dataclass(slots=True)
class Arrangement:
    """Units in the order of the dataflow, and groups of them. A group of one unit is that unit."""

    units: list[Unit]
    bunches: list[Bunch]


def arrange(members: list[list[Node]], backward: list[bool]) -> Arrangement:
    """Arrange the parts of a scope.

    Args:
        members: the nodes of each part, the main one first.
        backward: true for parts of the backward pass.
    """
    items = make_items(members, backward)
    items, contents = joined(items, loops(items))
    serving = serving_nodes([node for nodes in items.members for node in nodes])
    serves = [all(node.name in serving for node in nodes) for nodes in items.members]
    apart = items
    order = evaluation_order(items)
    host = hosts(items, order, serves)
    joins = [(host[source], host[item]) for item in range(len(items)) for source in items.before(item)]
    linked = {item for source, target in joins if source != target for item in (source, target)}
    ends = [is_end(nodes[0]) for nodes in items.members]
    alone = [item for item in range(len(items)) if host[item] == item and item not in linked]
    many = 2 * sum(ends[item] for item in alone) > sum(host[item] == item for item in range(len(items)))
    idle = [item for item in alone if serves[item] or (ends[item] and many)]
    helpers: dict[int, list[int]] = {}
    for item, target in enumerate(host):
        if target != item:
            helpers.setdefault(target, []).append(item)
    left_out = set(idle) if len(idle) > 1 else set()
    kept = [[item, *helpers.get(item, ())] for item in range(len(items)) if host[item] == item and item not in left_out]
    items, groups = joined(items, [group for group in kept if len(group) > 1], keep=[item for group in kept for item in group])
    units = [
        Unit(contents[first], [part for item in rest for part in contents[item]], _cycle_name(members, contents[first], serving))
        for first, *rest in groups
    ]
    few = len(units) <= FEW_PARTS
    bunches = []
    if items is not apart:
        order = evaluation_order(items)
    for bunch in summarise(items, order, serving, most=FEW_PARTS if few else PARTS):
        if bunch.instances and len(bunch.items) == len(units) and not (len(bunch.instances) >= MANY_MODULES and is_foreign(members[0][0])):
            bunches.extend(bunch.instances)
        elif len(bunch.items) == 1 or (few and not bunch.instances) or (len(bunch.items) == len(units) and not bunch.instances):
            bunches.extend(Bunch([item]) for item in bunch.items)
        else:
            bunches.append(bunch)
    bunches = _with_shared(bunches, items, serving)
    if left_out:
        kind = "inputs" if all(ends[item] for item in idle) else "inputs and constants" if any(ends[item] for item in idle) else "constants"
        bunches.append(Bunch(list(range(len(units), len(units) + len(idle))), f"{len(idle)} unused {kind}", is_plain=True))
        units.extend(Unit(contents[item], [part for helper in helpers.get(item, ()) for part in contents[helper]]) for item in idle)
    return Arrangement(units, bunches)


def _cycle_name(members: list[list[Node]], parts: Sequence[int], serving: Collection[str]) -> str:
    """The name of the parts of a cycle, "" for one part."""
    if len(parts) < 2:
        return ""
    nodes = [node for part in parts for node in members[part]]
    return kind_name(main_ops(nodes, serving), telling_layers(nodes, serving)) or f"cycle of {len(parts)}"


def _with_shared(bunches: Sequence[Bunch], items: Items, serving: Collection[str]) -> list[Bunch]:
    """The bunches, with parameters that serve one repeat alone inside it."""
    place = {item: bunch for bunch in bunches if bunch.instances for item in bunch.items}
    kept = []
    for bunch in bunches:
        item = bunch.items[0]
        users = {id(place.get(target)) for target in items.outputs[item]}
        if len(bunch.items) == 1 and len(users) == 1 and all(node.name in serving for node in items.members[item]):
            user = place.get(items.outputs[item][0])
            if user is not None:
                user.shared.append(item)
                continue
        kept.append(bunch)
    return kept
