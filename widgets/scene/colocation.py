"""Colocation groups of the last placement: nodes that must be on one device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphcore.placement.placer import last_placement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphcore.graph import Graph
    from graphcore.placement.placement import NodesTogether

MAX_REASONS: Final = 8


def groups_of(graph: Graph) -> Iterator[NodesTogether]:
    """The colocation groups of the last placement of a graph, as far as their nodes are still in it."""
    placement = last_placement(graph)
    for group in placement.groups if placement is not None else ():
        nodes = tuple([node for node in group.nodes if graph.find(node.name) is node])
        if len(nodes) > 1:
            yield group._replace(nodes=nodes)


def reasons_of(group: NodesTogether) -> list[str]:
    """The first constraints that join a group, and the number of the others."""
    more = len(group.reasons) - MAX_REASONS
    return [*group.reasons[:MAX_REASONS], *([f"and {more:,} more"] if more > 0 else [])]
