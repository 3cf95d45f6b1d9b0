"""Places in still pictures, read from their SVG."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import NamedTuple

from widgets.render.stills import Size, pictures
from widgets.scene import Scene

SVG = "{http://www.w3.org/2000/svg}"
_STEP = re.compile(r"([MLHVChvaz])([^MLHVChvaz]*)")


class Rect(NamedTuple):
    """A rectangle, by its upper left corner."""

    x: float
    y: float
    width: float
    height: float

    def meets(self, other: Rect) -> bool:
        """True iff the rectangles overlap."""
        return (
            self.x < other.x + other.width
            and other.x < self.x + self.width
            and self.y < other.y + other.height
            and other.y < self.y + self.height
        )


class Line(NamedTuple):
    """A line: the ids of its ends, its tip, and the rectangle of its label."""

    source: str
    target: str
    tip: tuple[float, float]
    label: Rect | None


class Places(NamedTuple):
    """The places of a picture: of boxes and frames by id, and of lines."""

    size: Size
    boxes: dict[str, Rect]
    frames: dict[str, Rect]
    lines: list[Line]


def places_of(scene: Scene, *, page: Size | None = None) -> Places:
    """The places in the picture of a scene, which shows boxes in the scene's order."""
    return places_in(pictures([scene], page=page)[0], scene)


def places_in(svg: str, scene: Scene) -> Places:
    """The places in the SVG text of a scene."""
    root = ET.fromstring(svg)
    boxes, frames, lines = [], {}, []
    for part in root.findall(f"./{SVG}g/{SVG}g"):
        shape = {child.get("class", "").split()[0]: child for child in part if child.get("class")}
        title = part.findtext(f"{SVG}title") or ""
        if "box" in shape:
            boxes.append(_moved(part, *_extent(shape["box"].attrib["d"])))
        elif "frame" in shape:
            frames[title] = _moved(part, float(shape["frame"].attrib["width"]), float(shape["frame"].attrib["height"]))
        elif "line" in shape:
            source, _, target = title.partition("\n")[0].partition(" → ")
            x, y = shape["line"].attrib["d"].rpartition("L")[2].split(",")
            paper = shape.get("paper")
            label = None if paper is None else Rect(*(float(paper.attrib[name]) for name in ("x", "y", "width", "height")))
            lines.append(Line(source, target, (float(x), float(y)), label))
    named = dict(zip((node.id for node in scene.nodes), boxes, strict=True))
    return Places(Size(float(root.attrib["width"]), float(root.attrib["height"])), named, frames, lines)


def _moved(part: ET.Element, width: float, height: float) -> Rect:
    x, y = re.findall(r"[-\d.]+", part.attrib["transform"])
    return Rect(float(x), float(y), width, height)


def _extent(path: str) -> tuple[float, float]:
    """Width and height of a box's outline, which begins at the left or the upper edge."""
    x = y = 0.0
    xs, ys = [], []
    for kind, text in _STEP.findall(path):
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", text)]
        match kind:
            case "M" | "L":
                x, y = numbers
            case "H":
                (x,) = numbers
            case "V":
                (y,) = numbers
            case "h":
                x += numbers[0]
            case "v":
                y += numbers[0]
            case "a":
                x, y = x + numbers[-2], y + numbers[-1]
                if numbers[-1] == 0 and numbers[-2] < 0:  # the lower edge of a cylinder
                    ys.append(y + numbers[1])
        xs.append(x)
        ys.append(y)
    return max(xs), max(ys)
