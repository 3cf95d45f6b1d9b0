"""Search for nodes by a part of the name, the op, or the cell."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Final

from widgets.messages import SearchHit, SearchMessage
from widgets.scene.lenses import cell_label
from widgets.scene.state import SceneState
from widgets.scene.visible import visible_boxes

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node

MAX_HITS: Final = 50


def find(graph: Graph, query: str, *, limit: int = MAX_HITS, inner: Iterable[Node] = ()) -> SearchMessage:
    """The nodes with `query` in name, op or cell, case-insensitive; the best matches of names first.

    Args:
        limit: the most hits to return; `total` counts all.
        inner: further nodes to search, those of open function calls.
    """
    wanted = query.strip().lower()
    if not wanted:
        return SearchMessage(query=query, hits=[], total=0)
    found = [(rank, node) for node in chain(graph.nodes, inner) if (rank := _rank(node, wanted)) is not None]
    found.sort(key=lambda item: (item[0], len(item[1].name), item[1].id))
    hits = [SearchHit(node=node.name, name=node.name, op=node.op) for _, node in found[:limit]]
    return SearchMessage(query=query, hits=hits, total=len(found))


def hidden_nodes(graph: Graph, state: SceneState) -> dict[str, dict[str, list[str]]]:
    """The names of nodes without a box in a picture, by the id of their containing box, and by op."""
    visible = visible_boxes(graph, state)
    found: dict[str, dict[str, list[str]]] = {}
    for node in graph.nodes:
        place = visible.place_of(node)
        if place and place != node.name:
            found.setdefault(place, {}).setdefault(node.op, []).append(node.name)
    return found


def _rank(node: Node, wanted: str) -> int | None:
    name = node.name.lower()
    if wanted in name:
        last = name.rpartition("/")[2]
        return 0 if wanted in {name, last} else 1 if last.startswith(wanted) else 2
    if wanted in node.op.lower():
        return 3
    return 4 if wanted in cell_label(node).lower() else None
