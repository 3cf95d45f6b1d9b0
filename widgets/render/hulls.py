"""Hulls around the boxes of colocation groups: rings around the boxes, joined behind everything else.

The viewer has the same rule (`js/src/scene/hulls.ts`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from widgets.render.geometry import Point, Rect
from widgets.render.looks import font_width
from widgets.render.text_width import ellipsize
from widgets.scene.types import Colocation

HULL_GAP: Final = 7
"""The pixels between a box and the ring around it."""
_LEAST_NAME: Final = 60


class Hull(NamedTuple):
    """A hull: its boxes, the lines that join them, and its name with the rectangle for it."""

    rects: list[Rect]
    lines: list[tuple[Point, Point]]
    text: str
    name: Rect


def hull_of(group: Colocation, places: Mapping[str, Rect]) -> Hull | None:
    """The hull of a group; None unless two of its boxes are in the picture.

    Its name is at the lowest box, where few lines leave.
    """
    rects = [places[key] for key in group.nodes if key in places]
    if len(rects) < 2:
        return None
    lowest = max(rects, key=lambda rect: rect.y + rect.height)
    text = ellipsize(group.text, 10, max(_LEAST_NAME, lowest.width + 2 * HULL_GAP - 10))
    name = Rect(lowest.x - HULL_GAP, lowest.y + lowest.height + 1, font_width(text, "label") + 10, 14)
    return Hull(rects, _lines(rects), text, name)


def _lines(rects: Sequence[Rect]) -> list[tuple[Point, Point]]:
    """The shortest tree of lines between the middles of boxes."""
    first, *rest = [Point(rect.x + rect.width / 2, rect.y + rect.height / 2) for rect in rects]
    found = []
    nearest = dict.fromkeys(rest, first)
    while nearest:
        point = min(nearest, key=lambda other: _far(other, nearest[other]))
        found.append((nearest.pop(point), point))
        nearest = {other: min(known, point, key=lambda end: _far(other, end)) for other, known in nearest.items()}
    return found


def _far(a: Point, b: Point) -> float:
    return (a.x - b.x) ** 2 + (a.y - b.y) ** 2
