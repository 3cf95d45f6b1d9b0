"""The outline of each kind of box, as SVG path data: the same shapes as in the viewer."""

from __future__ import annotations

import math

from widgets.render.geometry import Point
from widgets.render.looks import STACK
from widgets.scene.types import NodeKind


def outline_path(kind: NodeKind, w: float, h: float, *, repeat: bool = False) -> str:
    """The outline of a box of width `w` and height `h`; a repeat has two cards behind it."""
    match kind:
        case "variable":
            return f"M0,5a{w / 2:g},5 0 0 1 {w:g},0v{h - 10:g}a{w / 2:g},5 0 0 1 {-w:g},0z"
        case "constant":
            return f"M3,0H{w - 8:g}L{w:g},8V{h - 3:g}a3,3 0 0 1 -3,3H3a3,3 0 0 1 -3,-3V3a3,3 0 0 1 3,-3z"
        case "placeholder":
            return f"M11,0H{w:g}L{w - 11:g},{h:g}H0z"
        case "return":
            return f"M0,0H{w:g}L{w - 11:g},{h:g}H11z"
        case "control":
            return f"M10,0H{w - 10:g}L{w:g},{h / 2:g}L{w - 10:g},{h:g}H10L0,{h / 2:g}z"
        case "stub":
            return _rounded(0, w, h, h / 2)
        case "scope":
            cards = 2 if repeat else 1
            return _rounded(STACK * cards, w, h - STACK * cards, 6)
        case _:
            return _rounded(0, w, h, 6)


def detail_path(kind: NodeKind, w: float, h: float, *, repeat: bool = False) -> str:
    """Further lines of a shape: a cylinder's lid, a folded corner, the cards behind a scope, bars."""
    match kind:
        case "variable":
            return f"M0,5a{w / 2:g},5 0 0 0 {w:g},0"
        case "constant":
            return f"M{w - 8:g},0V8H{w:g}"
        case "scope":
            return _card(w, 5, STACK) + _card(w, 10, 0) if repeat else _card(w, 5, 0)
        case "function":
            return f"M6,0V{h:g}M{w - 6:g},0V{h:g}"
        case _:
            return ""


def _card(w: float, inset: float, top: float) -> str:
    """The upper edge of a card behind a box."""
    return f"M{inset:g},{top + 3:g}V{top + 1.5:g}a1.5,1.5 0 0 1 1.5,-1.5H{w - inset - 1.5:g}a1.5,1.5 0 0 1 1.5,1.5V{top + 3:g}"


def arrow_path(base: Point, tip: Point) -> str:
    """An arrowhead that points from `base` to `tip`."""
    dx, dy = tip.x - base.x, tip.y - base.y
    length = math.hypot(dx, dy) or 1.0
    ux, uy = dx / length, dy / length
    back = Point(tip.x - 6.5 * ux, tip.y - 6.5 * uy)
    left, right = (Point(back.x - side * uy, back.y + side * ux) for side in (3.2, -3.2))
    return f"M{tip.x:.1f},{tip.y:.1f}L{left.x:.1f},{left.y:.1f}L{right.x:.1f},{right.y:.1f}z"


def _rounded(y: float, w: float, h: float, r: float) -> str:
    wide, high = f"{w - 2 * r:g}", f"{h - 2 * r:g}"
    corner = f"a{r:g},{r:g} 0 0 1 "
    return f"M{r:g},{y:g}h{wide}{corner}{r:g},{r:g}v{high}{corner}{-r:g},{r:g}h-{wide}{corner}{-r:g},{-r:g}v-{high}{corner}{r:g},{-r:g}z"
