"""Texts and sizes of boxes before layout, the same as in the viewer."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from widgets.render.text_width import ellipsize, text_width
from widgets.scene.types import NodeKind, SceneEdge, SceneGroup, SceneNode

FontName = Literal["title", "name", "detail", "label", "group", "note"]
FONT_SIZES: Final[dict[FontName, float]] = {"title": 12, "name": 11, "detail": 10, "label": 10, "group": 11, "note": 10}
BOLD: Final = frozenset({"title", "group", "note"})
STACK: Final = 3
"""Pixels by which each card behind a box shows."""
_TEXT_LIMIT: Final = 168
_GROUP_LIMIT: Final = 320
"""The limit in pixels for boxes of several nodes: enough for the kind of a block, its shape and its count."""
_LINE_HEIGHT: Final[dict[FontName, float]] = {"title": 15, "name": 13.5, "detail": 12.5, "label": 13, "group": 16, "note": 12.5}
_INSETS: Final[dict[NodeKind, tuple[int, int, int]]] = {
    "op": (12, 6, 6),
    "constant": (12, 6, 6),
    "variable": (13, 12, 7),
    "placeholder": (20, 6, 6),
    "return": (20, 6, 6),
    "control": (17, 6, 6),
    "scope": (14, 8, 8),
    "function": (18, 8, 8),
    "stub": (12, 4, 4),
}


class Line(NamedTuple):
    """One line of text; `y` is its baseline below the top of the box."""

    text: str
    font: FontName
    y: float


class Look(NamedTuple):
    """Size and text of one box, in pixels."""

    width: float
    height: float
    lines: list[Line]


class Size(NamedTuple):
    """Width and height in pixels."""

    width: float
    height: float


def box_texts(node: SceneNode) -> list[tuple[str, FontName]]:
    """The lines of a box: kind, name, and one detail. The kind is in words, not only in shape and colour."""
    if node.kind == "stub":
        return [(f"{'✕' if node.state == 'error' else '↗'} {node.label or node.stands_for or node.id}", "name")]
    texts = _own_texts(node)
    if node.clash:
        texts.append((f"✕ {node.clash}", "note"))
    return texts


def _own_texts(node: SceneNode) -> list[tuple[str, FontName]]:
    if node.kind == "scope" or (node.kind == "function" and not node.op):
        title = (node.label or node.id) + (f" ×{node.repeat}" if node.repeat else "")
        kind = "repeat" if node.repeat else node.kind
        count = f"{kind} · {node.count:,} {'node' if node.count == 1 else 'nodes'}"
        return [
            (f"∇ {title}" if node.role == "gradient" else title, "title"),
            (count, "name"),
            *_details(node),
        ]
    title = node.op or node.label or node.id
    texts: list[tuple[str, FontName]] = [(f"∇ {title}" if node.role == "gradient" else title, "title")]
    if node.label and node.label != title:
        texts.append((node.label, "name"))
    if node.detail:
        texts.append((node.detail, "detail"))
    return texts


def _details(node: SceneNode) -> list[tuple[str, FontName]]:
    """The differences between the instances of a repeat, a line each."""
    return [(line, "detail") for line in node.detail.split("; ") if line]


def font_width(text: str, font: FontName) -> float:
    """The width of one line in pixels."""
    return text_width(text, FONT_SIZES[font], bold=font in BOLD)


def box_look(node: SceneNode) -> Look:
    """Text and size of one box."""
    side, top, bottom = _INSETS[node.kind]
    top += STACK if node.repeat else 0
    lines = []
    y = float(top)
    widest = 0.0
    limit = _GROUP_LIMIT if node.kind == "scope" else _TEXT_LIMIT
    for raw, font in box_texts(node):
        bold = font in BOLD
        text = ellipsize(raw, FONT_SIZES[font], limit, bold=bold, middle=font in {"name", "title"})
        lines.append(Line(text, font, y + _LINE_HEIGHT[font] * 0.76))
        widest = max(widest, font_width(text, font))
        y += _LINE_HEIGHT[font]
    return Look(max(round(widest + 2 * side), 48), round(y + bottom), lines)


def edge_font(edge: SceneEdge) -> FontName:
    """The font of an edge label: names of unknown sizes are bold."""
    return "note" if any(len(dim.text) > 1 and not dim.text.isdecimal() for dim in edge.dims) else "label"


def edge_text(edge: SceneEdge) -> str:
    """The text of an edge label."""
    font = edge_font(edge)
    count = f"{edge.count} × " if edge.count > 1 else ""
    label = f"{count}{edge.label}" if edge.label else f"{edge.count} tensors" if edge.count > 1 else ""
    return ellipsize(f"✕ {label}" if edge.error else label, FONT_SIZES[font], 150, bold=font in BOLD)


def edge_label_size(edge: SceneEdge) -> Size | None:
    """The size of an edge label, None if there is none."""
    text = edge_text(edge)
    return Size(round(font_width(text, edge_font(edge))) + 8, 13) if text else None


def group_text(group: SceneGroup) -> str:
    """The header of a frame."""
    mark = "ƒ " if group.kind == "function" else "∇ " if group.role == "gradient" else ""
    return ellipsize(mark + (group.label or group.id), FONT_SIZES["group"], 220, bold=True, middle=True)


def group_label_size(group: SceneGroup) -> Size:
    """The size of the header of a frame."""
    return Size(round(font_width(group_text(group), "group")) + 34, 16)
