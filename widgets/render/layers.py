"""A simple layered layout for use without the engine: ranks, straight lines, no crossing reduction."""

from __future__ import annotations

from typing import Final

from widgets.render.geometry import Geometry, Point, Rect, Route, group_ancestors, group_parents
from widgets.render.looks import Look, box_look, edge_label_size
from widgets.scene.ranks import estimate_ranks
from widgets.scene.types import Scene, SceneNode

GAP_X: Final = 18.0
GAP_Y: Final = 44.0
MARGIN: Final = 12.0
HEADER: Final = 22.0


def layered_geometry(scene: Scene, *, note: str) -> Geometry:
    """Rows by rank; open scopes are columns side by side, so that frames never overlap."""
    looks = {node.id: box_look(node) for node in scene.nodes}
    parents = group_parents(scene.groups)
    inside: dict[str, list[str]] = {"": [], **{group.id: [] for group in scene.groups}}
    for group in scene.groups:
        inside[parents[group.id]].append(group.id)
    known = set(looks)
    arrows = [(edge.target, edge.source) if edge.reversed else (edge.source, edge.target) for edge in scene.edges]
    ranks = estimate_ranks([*looks], [(a, b) for a, b in arrows if a in known and b in known])
    placer = _Placer(looks, inside, ranks, _members(scene.nodes, parents))
    deepest = max((len(group_ancestors(group.id, parents)) + 1 for group in scene.groups), default=0)
    rows = placer.row_tops(MARGIN + HEADER * deepest)
    width, height = placer.column("", 0.0, rows)
    nodes = placer.nodes
    edges = {
        edge.id: _straight(nodes[edge.source], nodes[edge.target], labelled=edge_label_size(edge) is not None)
        for edge in scene.edges
        if edge.source in nodes and edge.target in nodes
    }
    return Geometry(width, height, nodes, placer.frames, edges, "layers", note)


def straight_route(source: Rect, target: Rect) -> Route:
    """A straight line between the nearer edges of two boxes."""
    return _straight(source, target, labelled=False)


def _members(nodes: list[SceneNode], parents: dict[str, str]) -> dict[str, list[str]]:
    members: dict[str, list[str]] = {}
    for node in nodes:
        members.setdefault(node.group if node.group in parents else "", []).append(node.id)
    return members


class _Placer:
    def __init__(self, looks: dict[str, Look], inside: dict[str, list[str]], ranks: dict[str, int], members: dict[str, list[str]]) -> None:
        self.looks = looks
        self.inside = inside
        self.ranks = ranks
        self.members = members
        self.nodes: dict[str, Rect] = {}
        self.frames: dict[str, Rect] = {}
        lowest = min(ranks.values(), default=0)
        for key in ranks:
            ranks[key] -= lowest

    def row_tops(self, top: float) -> list[float]:
        """The top of each row, the first at `top`.

        A row is as high as its highest box, plus space for frames and labels.
        """
        heights: dict[int, float] = {}
        for key, rank in self.ranks.items():
            heights[rank] = max(heights.get(rank, 0.0), self.looks[key].height)
        tops = [top]
        for rank in range(max(heights, default=-1) + 1):
            tops.append(tops[-1] + heights.get(rank, 0.0) + GAP_Y)
        return tops

    def column(self, group: str, left: float, rows: list[float]) -> tuple[float, float]:
        """Place a group's own boxes and its inner groups from `left` on. Returns its right edge and its bottom."""
        used: dict[int, float] = {}
        bottom = 0.0
        for key in self.members.get(group, ()):
            look, rank = self.looks[key], self.ranks[key]
            x = used.get(rank, left + MARGIN)
            self.nodes[key] = Rect(x, rows[rank], look.width, look.height)
            used[rank] = x + look.width + GAP_X
            bottom = max(bottom, rows[rank] + look.height + MARGIN)
        for inner in self.inside[group]:
            ranks = self._ranks_inside(inner)
            if not ranks:
                continue
            span = range(min(ranks), max(ranks) + 1)
            start = max((used.get(rank, left + MARGIN) for rank in span), default=left + MARGIN)
            edge, low = self.column(inner, start, rows)
            top = min([rows[span[0]], *(self.frames[key].y for key in self.inside[inner] if key in self.frames)]) - HEADER
            self.frames[inner] = Rect(start, top, edge - start, low - top)
            used.update(dict.fromkeys(span, edge + GAP_X))
            bottom = max(bottom, low + MARGIN)
        return max(used.values(), default=left + MARGIN), bottom

    def _ranks_inside(self, group: str) -> list[int]:
        own = [self.ranks[key] for key in self.members.get(group, ())]
        return own + [rank for inner in self.inside[group] for rank in self._ranks_inside(inner)]


def _straight(source: Rect, target: Rect, *, labelled: bool) -> Route:
    down = source.y <= target.y
    start = Point(source.x + source.width / 2, source.y + source.height if down else source.y)
    end = Point(target.x + target.width / 2, target.y if down else target.y + target.height)
    third = Point((2 * start.x + end.x) / 3, (2 * start.y + end.y) / 3)
    later = Point((start.x + 2 * end.x) / 3, (start.y + 2 * end.y) / 3)
    label = Point((start.x + end.x) / 2, (start.y + end.y) / 2) if labelled else None
    return Route([start, third, later, end], end, label)
