"""Widening of frames for edge labels, which the layout engine ignores for frames.

The viewer has the same rule (`js/src/scene/frames.ts`): it lays out without a kernel, and this module without a page. A file of test
cases, made by `tests/support/tools/frame_cases.py`, keeps both equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from widgets.render.geometry import Geometry, Point, Rect, Route, group_ancestors, group_parents
from widgets.render.looks import edge_label_size
from widgets.scene.types import Scene

GAP: Final = 4.0
"""Pixels between a frame and a label in it, and between a frame and boxes outside."""
INNER_GAP: Final = 8.0
"""Pixels between a frame and a frame in it that has become wider."""


def label_widths(scene: Scene) -> dict[str, float]:
    """The widths of edge labels, in pixels."""
    sizes = {edge.id: edge_label_size(edge) for edge in scene.edges}
    return {key: size.width for key, size in sizes.items() if size is not None}


def hold_labels(scene: Scene, places: Geometry, widths: Mapping[str, float] | None = None) -> Geometry:
    """Widen frames for the labels of edges inside, as far as there is space.

    A label without space beside the frame moves into it. Vertically there is nothing to do: a label lies between the rows of its edge's
    ends.

    Args:
        widths: the widths of labels by edges; measured if None.
    """
    widths = label_widths(scene) if widths is None else widths
    parents = group_parents(scene.groups)
    path = {key: (key, *group_ancestors(key, parents)) for key in places.groups}
    home = {node.id: path.get(node.group, ()) for node in scene.nodes}
    lines: dict[str, list[tuple[str, float]]] = {}
    for edge in scene.edges:
        width, route = widths.get(edge.id), places.edges.get(edge.id)
        common = next((key for key in home.get(edge.source, ()) if key in home.get(edge.target, ())), None)
        if width is not None and route and route.label and common is not None:
            lines.setdefault(common, []).append((edge.id, width))

    groups, edges = dict(places.groups), dict(places.edges)
    for frame in sorted(path, key=lambda key: -len(path[key])):  # a frame is handled after the frames in it
        spans = [_span(edges[key], width) for key, width in lines.get(frame, ())]
        spans += [_wider(groups[key], places.groups[key]) for key in groups if parents[key] == frame]
        if not spans:
            continue
        others = [places.nodes[key] for key, around in home.items() if frame not in around and key in places.nodes]
        others += [rect for key, rect in groups.items() if frame not in path[key] and key not in path[frame]]
        groups[frame] = _stretched(groups[frame], spans, others, places.width)
        for key, width in lines.get(frame, ()):
            edges[key] = _moved_in(edges[key], width, groups[frame])
    return msgspec.structs.replace(places, groups=groups, edges=edges)


def _span(route: Route, width: float) -> tuple[float, float]:
    """The left and right end of a label with its gaps."""
    assert route.label is not None
    return route.label.x - width / 2 - GAP, route.label.x + width / 2 + GAP


def _wider(now: Rect, before: Rect) -> tuple[float, float]:
    """The space of a frame in its parent: wider than before only on the sides that have grown."""
    right, right_before = now.x + now.width, before.x + before.width
    return now.x - INNER_GAP * (now.x < before.x), right + INNER_GAP * (right > right_before)


def _stretched(rect: Rect, spans: list[tuple[float, float]], others: list[Rect], width: float) -> Rect:
    beside = [other for other in others if other.y < rect.y + rect.height and rect.y < other.y + other.height]
    right = rect.x + rect.width
    first = max([0.0, *(other.x + other.width + GAP for other in beside if other.x + other.width <= rect.x)])
    last = min([width, *(other.x - GAP for other in beside if other.x >= right)])
    left = min(rect.x, max(first, min([start for start, _ in spans], default=rect.x)))
    right = max(right, min(last, max([end for _, end in spans], default=right)))
    return rect._replace(x=left, width=right - left)


def _moved_in(route: Route, width: float, frame: Rect) -> Route:
    assert route.label is not None
    slack = max(0.0, (frame.width - width) / 2 - 1)
    middle = frame.x + frame.width / 2
    x = min(max(route.label.x, middle - slack), middle + slack)
    return route._replace(label=Point(x, route.label.y))
