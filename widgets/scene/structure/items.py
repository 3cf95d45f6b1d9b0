"""Items: the parts of one scope as a graph of whole numbers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from graphcore.plumbing import ENTER, EXIT
from graphcore.support.safe_import import import_whole

if TYPE_CHECKING:
    import networkx as nx

    from graphcore.graph import Node

Dims: TypeAlias = "tuple[int | None, ...] | None"
"""The sizes of a tensor, None for each unknown size and for an unknown rank."""


@dataclass(slots=True)
class Items:
    """A graph of items. The lists are parallel; items are known by position.

    Attributes:
        members: the nodes of each item, the main one first.
        backward: true for items of the backward pass.
        inputs: the items whose tensors an item takes, in the order of the slots, without itself.
        awaited: the items that an item waits for by control edges.
        outputs: the items that take tensors of an item.
    """

    members: list[list[Node]]
    backward: list[bool]
    inputs: list[list[int]] = field(default_factory=list)
    awaited: list[list[int]] = field(default_factory=list)
    outputs: list[list[int]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.members)

    def before(self, item: int) -> list[int]:
        """Everything that comes before an item: by data or by control."""
        return [*self.inputs[item], *self.awaited[item]] if self.awaited[item] else self.inputs[item]


def make_items(members: list[list[Node]], backward: list[bool]) -> Items:
    """Items of these nodes, with the edges between them; edges from elsewhere are left out."""
    owner = {node.name: item for item, nodes in enumerate(members) for node in nodes}
    items = Items(members, backward)
    for item, nodes in enumerate(members):
        data: dict[int, None] = {}
        control: dict[int, None] = {}
        for node in nodes:
            for tensor in node.inputs:
                source = owner.get(tensor.node.name)
                if source is not None and source != item:
                    data[source] = None
            for producer in node.control_inputs:
                source = owner.get(producer.name)
                if source is not None and source != item:
                    control[source] = None
        items.inputs.append(list(data))
        items.awaited.append([source for source in control if source not in data])
    items.outputs = _turned(items.inputs)
    return items


def cycles(items: Items) -> list[list[int]]:
    """The strongly connected clumps of more than one item, each in the order of its items."""
    if _is_acyclic(items):
        return []
    networkx = import_whole("networkx")
    graph: nx.DiGraph[int] = networkx.DiGraph()
    graph.add_edges_from((source, item) for item in range(len(items)) for source in items.before(item))
    return sorted(sorted(clump) for clump in networkx.strongly_connected_components(graph) if len(clump) > 1)


def loops(items: Items) -> list[list[int]]:
    """The cycles, each with the single nodes that lead values into it or out of it and do nothing else."""
    found = cycles(items)
    clump_of = {item: clump for clump in found for item in clump}
    ends: list[tuple[list[int], int]] = []
    for item in range(len(items)) if found else ():
        op = items.members[item][0].op if len(items.members[item]) == 1 else ""
        beside = items.outputs[item] if op in ENTER else items.before(item) if op in EXIT else []
        clump = clump_of.get(beside[0]) if beside else None
        if clump is not None and all(clump_of.get(each) is clump for each in beside):
            ends.append((clump, item))
    for clump, item in ends:
        clump.append(item)
    return sorted(sorted(clump) for clump in found)


def joined(items: Items, groups: Sequence[Sequence[int]], keep: Collection[int] | None = None) -> tuple[Items, list[list[int]]]:
    """The items with each group as one item at the place of its first; and the old items in each new one.

    Args:
        keep: the items that stay; all by default.
    """
    if not groups and (keep is None or len(keep) == len(items)):
        return items, [[item] for item in range(len(items))]
    group_of = {item: group for group in groups for item in group}
    left = range(len(items)) if keep is None else sorted(keep)
    contents = [list(group_of.get(item, (item,))) for item in left if item not in group_of or group_of[item][0] == item]
    members = [[node for item in content for node in items.members[item]] for content in contents]
    return make_items(members, [all(items.backward[item] for item in content) for content in contents]), contents


def _turned(inputs: list[list[int]]) -> list[list[int]]:
    outputs: list[list[int]] = [[] for _ in inputs]
    for item, sources in enumerate(inputs):
        for source in sources:
            outputs[source].append(item)
    return outputs


def _is_acyclic(items: Items) -> bool:
    """True iff the items have a topological order."""
    waiting = [len(items.before(item)) for item in range(len(items))]
    after: list[list[int]] = [[] for _ in waiting]
    for item in range(len(items)):
        for source in items.before(item):
            after[source].append(item)
    ready = [item for item, count in enumerate(waiting) if not count]
    done = 0
    while ready:
        item = ready.pop()
        done += 1
        for target in after[item]:
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return done == len(waiting)
