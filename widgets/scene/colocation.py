"""Colocation groups of the last placement: nodes that must be on one device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphcore.placement.last_placer import last_placement
from widgets.scene.tree import Group
from widgets.scene.types import Colocation
from widgets.scene.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphcore.graph import Graph, Node
    from graphcore.placement.placement import NodesTogether
    from widgets.scene.boxes import Box, Visible

MAX_NAMES: Final = 4
"""Boxes that are named; the others are counted."""
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


def colocations_of(graph: Graph, visible: Visible) -> tuple[list[Colocation], dict[str, str]]:
    """The groups to enclose by a hull, and the words for each box with nodes of groups.

    A group is enclosed if several boxes each show a node of it. Boxes of several nodes, such as closed scopes, count theirs.
    """
    found: list[Colocation] = []
    texts: dict[str, str] = {}
    inside: dict[str, list[tuple[int, bool]]] = {}
    for group in groups_of(graph):
        members: dict[str, list[Node]] = {}
        boxes: dict[str, Box] = {}
        for node in group.nodes:
            box = visible.box_of.get(node.name)
            if box is not None:
                boxes[box.id] = box
                members.setdefault(box.id, []).append(node)
        shown = [key for key, nodes in members.items() if boxes[key].main in nodes]
        for key in members.keys() - set(shown):
            inside.setdefault(key, []).append((len(members[key]), len(members) > 1))
        if not shown:
            continue
        text = _text([_words(boxes[key], nodes) for key, nodes in members.items()])
        texts.update(dict.fromkeys(shown, text))
        if len(shown) > 1:
            found.append(Colocation(nodes=shown, text=text, reasons=reasons_of(group)))
    for key, counts in inside.items():
        texts.setdefault(key, _count_text(counts))
    return found, texts


def _words(box: Box, nodes: Sequence[Node]) -> str:
    """The nodes of a group in one box."""
    if len(nodes) == 1:
        return nodes[0].name
    closed = box.part.label if isinstance(box.part, Group) else box.id.removesuffix("/")
    return f"{closed if box.main is None else box.main.name} ({len(nodes):,} nodes)"


def _text(names: Sequence[str]) -> str:
    """Names without the scope that all are in: `together: W, W/read`."""
    scope, *others = [name[: name.rfind("/") + 1] for name in names]
    while not all(other.startswith(scope) for other in others):
        scope = scope[: scope.rfind("/", 0, -1) + 1]
    shown = [name.removeprefix(scope) for name in names[:MAX_NAMES]]
    more = len(names) - len(shown)
    return f"together: {', '.join(shown)}" + (f" and {more:,} more" if more else "")


def _count_text(counts: Sequence[tuple[int, bool]]) -> str:
    """The groups in a closed box: `together: 5 nodes in 2 groups, 1 with nodes elsewhere`."""
    elsewhere = sum([outside for _, outside in counts])
    text = f"together: {counted(sum([count for count, _ in counts]), 'node')} in {counted(len(counts), 'group')}"
    return text + (f", {elsewhere:,} with nodes elsewhere" if elsewhere else "")
