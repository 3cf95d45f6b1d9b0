"""A scene as one self-contained SVG file: no script, no link, no external style.

Shapes and words show the kinds without colour.
"""

from __future__ import annotations

import math
from html import escape
from typing import Final

from widgets.render.geometry import Geometry, Point, Rect, Route
from widgets.render.hulls import HULL_GAP, hull_of
from widgets.render.layers import straight_route
from widgets.render.layout import lay_out
from widgets.render.looks import FontName, box_look, edge_font, edge_text, font_width, group_text
from widgets.render.shapes import arrow_path, detail_path, outline_path
from widgets.render.text_width import one_line, text_width
from widgets.scene.types import Colocation, Scene, SceneEdge, SceneGroup, SceneNode

MARGIN: Final = 16.0
_BADGES: Final = {"new": "+", "removed": "−", "changed": "~", "error": "!", "stale": "…"}
# Without a background: boxes and labels have one of their own, and everything else is legible on light and on dark pages. The first fonts are those of `text_width`; text in other fonts is
# stretched or compressed to that width.
_STYLE: Final = """
text{font-family:Helvetica,Arial,"Liberation Sans","Helvetica Neue",Inter,"Segoe UI",system-ui,-apple-system,sans-serif;text-anchor:middle;fill:#1b2430}
.title{font-size:12px;font-weight:600}.name{font-size:11px;fill:#566171}
.detail,.label{font-size:10px;fill:#566171}.group{font-size:11px;font-weight:600;text-anchor:start;fill:#757c86}
.box{fill:#fff;stroke:#aab6c5;stroke-width:1.2}.line{fill:none;stroke:#7f8c9d;stroke-width:1.2}.head{fill:#7f8c9d}
.mark{fill:none;stroke:#aab6c5}.frame{fill:#6b7f99;fill-opacity:.06;stroke:#c3ccd7}
.variable .box{fill:#e6f4f0;stroke:#3f9281}.variable .mark{stroke:#3f9281}.variable .title{fill:#0d5044}
.constant .box{fill:#f1f3f6;stroke:#a5afbd}.constant .mark{stroke:#a5afbd}
.placeholder .box,.return .box{fill:#e8f1fd;stroke:#4d88d8}.placeholder .title,.return .title{fill:#174a8c}
.controlbox .box{fill:#f7f2e6;stroke:#a98e57}.controlbox .title{fill:#5b4617}
.scope .box{fill:#eef2f7;stroke:#8295ad;stroke-width:1.4}.scope .mark{stroke:#8295ad}
.function .box{fill:#fdf2e4;stroke:#c98736}.function .mark{stroke:#c98736}.function .title{fill:#6d430c}
.gradient .box{fill:#f7effd;stroke:#8d44c9;stroke-width:1.4;stroke-dasharray:5 2.5}.gradient .mark{stroke:#8d44c9}
.gradient .title{fill:#5f2394}.gradient .group{fill:#9c64cf}.gradient .frame{fill:#8d44c9;stroke:#8d44c9;stroke-opacity:.45;stroke-dasharray:5 2.5}
.body .frame{stroke:#c98736}.body .group{fill:#a8702c}.gradient.body .frame{stroke:#8d44c9}.gradient.body .group{fill:#9c64cf}
.gradient .line{stroke:#8d44c9}.gradient .head{fill:#8d44c9}
.stub .box{fill:#f8f9fb;stroke:#7f8c9d;stroke-width:1;stroke-dasharray:2 3}
.control .line{stroke-dasharray:2 3}.reference .line{stroke-width:3.6}.core{fill:none;stroke:#f8f9fb;stroke-width:1.4}
.new .box{stroke:#18794e;stroke-width:2}.changed .box{stroke:#8a5a00;stroke-width:2}
.removed .box{stroke:#c32222;stroke-width:1.6;stroke-dasharray:4 3;fill-opacity:.45}.removed .badge{fill:#c32222}
.new .line{stroke:#18794e;stroke-width:2}.new .head{fill:#18794e}.removed .line{stroke:#c32222;stroke-dasharray:4 3}.removed .head{fill:#c32222}
.error .box{fill:#fdeeee;stroke:#c32222;stroke-width:2}.error .line{stroke:#c32222;stroke-width:2}.error .head{fill:#c32222}
.error .label{fill:#8d1414}.error .title{fill:#8d1414}
.clash1 .line,.clash2 .line{stroke:#c32222;stroke-width:2.4}.clash2 .line{stroke-dasharray:7 3}.clash1 .head,.clash2 .head{fill:#c32222}
.clash .box{stroke:#c32222}.note{fill:#8d1414;font-weight:600}.unknown{fill:#b4540a;font-weight:700}
.badge{fill:#18794e;stroke:#f8f9fb;stroke-width:1.5}.changed .badge{fill:#8a5a00}.error .badge{fill:#c32222}.stale .badge{fill:#5b6878}
.sign{font-size:11px;font-weight:700;fill:#fff}.paper{fill:#f8f9fb}
.hull path{stroke-linejoin:round;stroke-linecap:round}.hull .edge{fill:none;stroke:#7f8c9d}.hull .inside{fill:#eef2f7;stroke:#eef2f7}
.hull rect{fill:#eef2f7;stroke:#7f8c9d}.hull text{font-size:10px}
"""
# The colors of dark views. An image takes on the color scheme of its place in the page.
_DARK_STYLE: Final = """
@media (prefers-color-scheme:dark){
text{fill:#e6eaf0}.name,.detail,.label{fill:#a3aebd}
.box{fill:#222831;stroke:#5a6675}.line{stroke:#8592a3}.head{fill:#8592a3}.mark{stroke:#5a6675}.frame{fill:#96aac8;stroke:#4a525e}
.variable .box{fill:#16312c;stroke:#4fb09c}.variable .mark{stroke:#4fb09c}.variable .title{fill:#a5e3d5}
.constant .box{fill:#23282f;stroke:#687485}.constant .mark{stroke:#687485}
.placeholder .box,.return .box{fill:#1a2c45;stroke:#6ca3ec}.placeholder .title,.return .title{fill:#b6d4fc}
.controlbox .box{fill:#322b1a;stroke:#b99d61}.controlbox .title{fill:#ead8ac}
.scope .box{fill:#252c36;stroke:#7c8ea5}.scope .mark{stroke:#7c8ea5}
.function .box{fill:#352817;stroke:#d39a52}.function .mark{stroke:#d39a52}.function .title{fill:#f3d1a4}
.gradient .box{fill:#2b1f3a;stroke:#bf8bf0}.gradient .mark{stroke:#bf8bf0}.gradient .title{fill:#dcc0fa}
.gradient .group{fill:#bf8bf0}.gradient .frame{fill:#bf8bf0;stroke:#bf8bf0}.body .frame{stroke:#d39a52}.body .group{fill:#d39a52}
.gradient.body .frame{stroke:#bf8bf0}.gradient.body .group{fill:#bf8bf0}.gradient .line{stroke:#bf8bf0}.gradient .head{fill:#bf8bf0}
.stub .box{fill:#1b1f25;stroke:#8592a3}.core{stroke:#15181d}
.removed .box,.removed .line{stroke:#ff7b7b}.removed .head,.removed .badge{fill:#ff7b7b}.new .line{stroke:#63cf9a}.new .head{fill:#63cf9a}
.new .box{stroke:#63cf9a}.changed .box{stroke:#e6b450}
.error .box{fill:#3a1c1f;stroke:#ff7b7b}.error .line{stroke:#ff7b7b}.error .head{fill:#ff7b7b}.error .label,.error .title{fill:#ffb4b4}
.clash1 .line,.clash2 .line,.clash .box{stroke:#ff7b7b}.clash1 .head,.clash2 .head{fill:#ff7b7b}.note{fill:#ffb4b4}.unknown{fill:#f0a35e}
.badge{fill:#63cf9a;stroke:#15181d}.changed .badge{fill:#e6b450}.error .badge{fill:#ff7b7b}.stale .badge{fill:#a3aebd}.sign{fill:#14171b}.paper{fill:#15181d}
.hull .edge{stroke:#8592a3}.hull .inside{fill:#252c36;stroke:#252c36}.hull rect{fill:#252c36;stroke:#8592a3}
}
"""


def to_svg(scene: Scene, geometry: Geometry | None = None, *, adapts: bool = False, lens: str = "") -> str:
    """The picture of a scene as SVG text.

    Args:
        geometry: the layout; computed if None.
        adapts: use dark colors in dark pages.
        lens: the lens; "devices" draws hulls around nodes that must be on one device.
    """
    places = geometry or lay_out(scene)
    notes = [places.note] if places.note else []
    width, height = places.width + 2 * MARGIN, places.height + 2 * MARGIN + 14 * len(notes)
    width = max(width, max((text_width(note, 10) + 2 * MARGIN for note in notes), default=0.0), 2 * MARGIN + 40)
    style = _STYLE + (_DARK_STYLE if adapts else "")
    hulls = [drawn for group in scene.colocations if lens == "devices" and (drawn := _hull(group, places))]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{_text(scene.title)}</title><desc>{_text(scene.summary)}</desc><style>{style}</style>",
        f'<g transform="translate({MARGIN:g},{MARGIN:g})">',
        *[shape for shape, _ in hulls],
        *_frames(scene, places),
        *_lines(scene, places),
        *[name for _, name in hulls],
        *[_box(node, places.nodes[node.id]) for node in scene.nodes if node.id in places.nodes],
        "</g>",
    ]
    parts.extend(
        f'<text class="label" x="{width / 2:.0f}" y="{height - MARGIN + 6 - 14 * number:.0f}">{_text(note)}</text>'
        for number, note in enumerate(notes)
    )
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _hull(group: Colocation, places: Geometry) -> tuple[str, str] | None:
    """A hull and its name. Two strokes make its outline: a wide one and, over it, a narrower one."""
    hull = hull_of(group, places.nodes)
    if hull is None:
        return None
    rings = "".join([f"M{_n(x)},{_n(y)}h{_n(width)}v{_n(height)}h{_n(-width)}z" for x, y, width, height in hull.rects])
    joints = "".join([f"M{_p(start)}L{_p(end)}" for start, end in hull.lines])
    title = f"<title>{_text(chr(10).join([group.text, *group.reasons]))}</title>"
    paths = [
        f'<path class="{name}" d="{path}" stroke-width="{width + more:g}"/>'
        for name, more in (("edge", 2.4), ("inside", 0))
        for path, width in ((joints, HULL_GAP), (rings, 2 * HULL_GAP))
    ]
    shape = f'<g class="hull">{title}{"".join(paths)}</g>'
    x, y, width, height = hull.name
    name = (
        f'<g class="hull">{title}<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="7"/>'
        f'<text x="{_n(x + width / 2)}" y="{_n(y + 10.5)}"{_as_wide(hull.text, "label")}>{_text(hull.text)}</text></g>'
    )
    return shape, name


def _frames(scene: Scene, places: Geometry) -> list[str]:
    """The largest first, so that inner frames are on top."""
    drawn = [(group, places.groups[group.id]) for group in scene.groups if group.id in places.groups]
    drawn.sort(key=lambda item: -item[1].width * item[1].height)
    return [_frame(group, rect) for group, rect in drawn]


def _frame(group: SceneGroup, rect: Rect) -> str:
    size = f'width="{_n(rect.width)}" height="{_n(rect.height)}"'
    return (
        f'<g class="{group.role}{" body" if group.kind == "function" else ""}" transform="translate({_n(rect.x)},{_n(rect.y)})"><title>{_text(group.id)}</title>'
        f'<rect class="frame" {size} rx="10"/><text class="group" x="12" y="18"{_as_wide(group_text(group), "group")}>{_text(group_text(group))}</text></g>'
    )


def _lines(scene: Scene, places: Geometry) -> list[str]:
    """Lines with errors come last, on top of others."""
    lines = []
    for edge in sorted(scene.edges, key=lambda item: bool(item.error)):
        if edge.source not in places.nodes or edge.target not in places.nodes:
            continue
        route = places.edges.get(edge.id) or straight_route(places.nodes[edge.source], places.nodes[edge.target])
        lines.append(_line(edge, route))
    return lines


def _line(edge: SceneEdge, route: Route) -> str:
    first, *rest = route.points
    path = f"M{_p(first)}" + "".join(f"C{_p(a)} {_p(b)} {_p(c)}" for a, b, c in zip(rest[::3], rest[1::3], rest[2::3], strict=True))
    clash = f" clash{min(edge.clash, 2)}" if edge.clash else ""
    state = "" if edge.state == "normal" else f" {edge.state}"
    classes = f"{edge.kind} {edge.role}{state}{' error' if edge.error else ''}{clash}"
    tooltip = "\n".join(filter(None, [f"{edge.source} → {edge.target}", edge.label, edge.error]))
    parts = [f'<g class="{classes}"><title>{_text(tooltip)}</title><path class="line" d="{path}L{_p(route.tip)}"/>']
    if edge.kind == "reference":
        parts.append(f'<path class="core" d="{path}"/>')
    base = next((point for point in reversed(route.points) if point != route.tip), first)
    parts.append(f'<path class="head" d="{arrow_path(base, route.tip)}"/>')
    text = edge_text(edge)
    if route.label is not None and text:
        font = edge_font(edge)
        width = font_width(text, font) + 6
        x, y = route.label
        parts.append(f'<rect class="paper" x="{_n(x - width / 2)}" y="{_n(y - 7)}" width="{_n(width)}" height="14" rx="3"/>')
        parts.append(f'<text class="label" x="{_n(x)}" y="{_n(y + 3.5)}"{_as_wide(text, font)}>{_label(edge, text)}</text>')
    return "".join(parts) + "</g>"


def _box(node: SceneNode, rect: Rect) -> str:
    look = box_look(node)
    kind = "controlbox" if node.kind == "control" else node.kind
    state = ("" if node.state == "normal" else f" {node.state}") + (" clash" if node.clash else "")
    tooltip = "\n".join(filter(None, [node.stands_for or node.id, node.op, node.detail, node.error]))
    parts = [
        f'<g class="{kind} {node.role}{state}" transform="translate({_n(rect.x)},{_n(rect.y)})"><title>{_text(tooltip)}</title>',
        f'<path class="box" d="{outline_path(node.kind, look.width, look.height, repeat=bool(node.repeat))}"/>',
    ]
    mark = detail_path(node.kind, look.width, look.height, repeat=bool(node.repeat))
    if mark:
        parts.append(f'<path class="mark" d="{mark}"/>')
    parts.extend(
        f'<text class="{"detail note" if line.font == "note" else line.font}" x="{_n(look.width / 2)}" y="{_n(line.y)}"'
        f"{_as_wide(line.text, line.font)}>{_text(line.text)}</text>"
        for line in look.lines
    )
    sign = _BADGES.get(node.state)
    if sign:
        x = look.width - 3
        parts.append(f'<circle class="badge" cx="{_n(x)}" r="7"/><text class="sign" x="{_n(x)}" y="3.6">{sign}</text>')
    return "".join(parts) + "</g>"


def _as_wide(text: str, font: FontName) -> str:
    """Fit the text to its measured width in any font."""
    return f' textLength="{_n(font_width(text, font))}" lengthAdjust="spacingAndGlyphs"' if text else ""


def _label(edge: SceneEdge, text: str) -> str:
    """An edge label; sizes unknown before run time stand out."""
    head, bracket, _ = text.rpartition("[")
    if edge.dims and bracket and text.endswith("]"):
        return _text(head + bracket) + ",".join([_size(dim.text) for dim in edge.dims]) + "]"
    return _text(text.removesuffix("?")) + _size("?") if text.endswith(" ?") else _text(text)


def _size(text: str) -> str:
    return text if text.isdecimal() else f'<tspan class="unknown">{_text(text)}</tspan>'


def _text(text: str) -> str:
    """Text content: escaped, without the control characters that XML forbids."""
    lines = (one_line(line) for line in text.splitlines())
    return escape("\n".join(lines), quote=False)


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0") if math.isfinite(value) else "0"


def _p(point: Point) -> str:
    return f"{_n(point.x)},{_n(point.y)}"
