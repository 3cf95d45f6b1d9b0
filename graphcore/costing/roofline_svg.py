"""Rooflines as small self-contained SVG pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from graphcore.costing.roofs import Roof, RooflinePoint
from graphcore.support.shown import html_text

WIDTH: Final = 720
HEIGHT: Final = 400
_LEFT: Final = 66
_RIGHT: Final = 150
_TOP: Final = 16
_BOTTOM: Final = 44
_MOST_POINTS: Final = 2_000
_FONT: Final = 11
_LEAST_FONT: Final = 9
"""The least size of text in a narrow place, in pixels, where the picture is scrolled."""
_LEAST: Final = 3.0
_LARGEST: Final = 11.0
_REST: Final = "others"
_PREFIXES: Final = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))

# Scopes differ in the shape of their points too, roofs in their dashes, so that colour is never the only sign.
_LIGHT: Final = ("#1f5fbf", "#b3541e", "#2d7a46", "#7b3fa0", "#5c5c5c")
_DARK: Final = ("#8ab8ff", "#f2a36e", "#7fd6a0", "#cf9df2", "#b8b8b8")
_DASHES: Final = ("", "7 3", "2 3", "8 3 2 3", "1 3")
_SHAPES: Final = (
    "M-1 0A1 1 0 1 0 1 0A1 1 0 1 0-1 0Z",
    "M-.9-.9H.9V.9H-.9Z",
    "M0-1.1L1.1.9H-1.1Z",
    "M0-1.2L1.2 0L0 1.2L-1.2 0Z",
    "M-1.1-.9H1.1L0 1.1Z",
)


def _colors(colors: Sequence[str]) -> str:
    return "".join([f".gl-roofline .c{number}{{--c:{color}}}" for number, color in enumerate(colors)])


# In JupyterLab its theme decides, elsewhere the color scheme of the page.
_PLAIN: Final = ".gl-roofline{--paper:#fff;--grid:#e2e2e2;--text:#444}" + _colors(_LIGHT)
_NIGHT: Final = ".gl-roofline{--paper:#15181d;--grid:#3a424d;--text:#b8c1cc}" + _colors(_DARK)
_LAB: Final = "[data-jp-theme-light={0}] "


def _within(prefix: str, rules: str) -> str:
    return "".join([f"{prefix}{rule}}}" for rule in rules.split("}") if rule])


_STYLE: Final = (
    f".gl-roofline{{min-width:{WIDTH * _LEAST_FONT // _FONT + 1}px;max-width:100%;height:auto}}"
    f"{_PLAIN}@media (prefers-color-scheme:dark){{{_NIGHT}}}{_within(_LAB.format('true'), _PLAIN)}{_within(_LAB.format('false'), _NIGHT)}"
    ".gl-roofline .paper{fill:var(--paper)}.gl-roofline .grid{stroke:var(--grid)}.gl-roofline text{fill:var(--text)}"
    ".gl-roofline .roof{fill:none;stroke:var(--text);stroke-width:1.6}"
    ".gl-roofline .point{fill:var(--c);fill-opacity:.55;stroke:var(--c);vector-effect:non-scaling-stroke}"
    ".gl-roofline .point:hover{fill-opacity:1;stroke-width:3}"
)


def roofline_svg(roofs: Sequence[Roof], points: Sequence[RooflinePoint]) -> str:
    """The roofs of devices over operations for each byte, with a point for each node.

    Both axes are logarithmic. The size of a point is the share of the time.

    Args:
        roofs: the devices.
        points: the nodes, those that matter most first.
    """
    shown = points[:_MOST_POINTS]
    scale = _Scale(roofs, shown)
    size = f'width="{WIDTH}" height="{HEIGHT}"'
    font = f'font-family="system-ui, sans-serif" font-size="{_FONT}"'
    words = f"Roofline of {len(points):,} points on {', '.join([roof.name for roof in roofs])}"
    label = f'role="img" aria-label="{html_text(words)}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="gl-roofline" viewBox="0 0 {WIDTH} {HEIGHT}" {size} {font} {label}>',
        f"<style>{_STYLE}</style>",
        f'<rect {size} rx="4" class="paper"/>',
        *scale.grid(),
    ]
    for number, roof in enumerate(roofs):
        parts += scale.roof(roof, number % len(_DASHES))
    scopes = _scopes(shown)
    longest = max([point.measured or point.seconds[0] for point in shown], default=1.0)
    for point in reversed(shown):
        parts.append(_point(point, roofs, scale, scopes.get(_scope(point.name), len(_SHAPES) - 1), longest))
    return "".join([*parts, *_legend(scopes, shown), "</svg>"])


class _Scale:
    """The places of numbers in the picture."""

    def __init__(self, roofs: Sequence[Roof], points: Sequence[RooflinePoint]) -> None:
        across = [*[roof.ridge for roof in roofs], *[point.intensity for point in points]]
        up = [*[roof.peak for roof in roofs], *[point.rate for point in points]]
        self.left, self.right = math.floor(math.log10(min(across)) - 0.3), math.ceil(math.log10(max(across)) + 0.3)
        self.low, self.high = math.floor(math.log10(min(up)) - 0.1), math.ceil(math.log10(max(up)) + 0.1)

    def x(self, intensity: float) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * (math.log10(intensity) - self.left) / (self.right - self.left)

    def y(self, rate: float) -> float:
        return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * (math.log10(rate) - self.low) / (self.high - self.low)

    def grid(self) -> list[str]:
        """The lines and numbers of powers of ten."""
        end, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
        parts = []
        for power in range(self.left, self.right + 1):
            x = self.x(10.0**power)
            parts.append(f'<path d="M{x:.1f} {_TOP}V{bottom}" class="grid"/>')
            parts.append(f'<text x="{x:.1f}" y="{bottom + 15}" text-anchor="middle">{_number(10.0**power)}</text>')
        for power in range(self.low, self.high + 1):
            y = self.y(10.0**power)
            parts.append(f'<path d="M{_LEFT} {y:.1f}H{end}" class="grid"/>')
            parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_number(10.0**power)}</text>')
        middle = (_TOP + bottom) / 2
        parts.append(f'<text x="{(_LEFT + end) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">operations for each byte moved</text>')
        parts.append(f'<text transform="translate(14 {middle:.0f})rotate(-90)" text-anchor="middle">operations in a second</text>')
        return parts

    def roof(self, roof: Roof, dash: int) -> list[str]:
        """The roof of a device, with its name at the right end."""
        start = max(10.0**self.left, 10.0**self.low / roof.bandwidth)
        ridge, end = self.x(roof.ridge), WIDTH - _RIGHT
        line = f"M{self.x(start):.1f} {self.y(start * roof.bandwidth):.1f}L{ridge:.1f} {self.y(roof.peak):.1f}H{end}"
        words = f"{roof.name}: {_number(roof.peak)} operations and {_number(roof.bandwidth)} bytes in a second"
        return [
            f'<path d="{line}" class="roof" stroke-dasharray="{_DASHES[dash]}"><title>{html_text(words)}</title></path>',
            f'<text x="{end - 4}" y="{self.y(roof.peak) - 5:.1f}" text-anchor="end">{html_text(_cut(roof.name))}</text>',
        ]


def _point(point: RooflinePoint, roofs: Sequence[Roof], scale: _Scale, style: int, longest: float) -> str:
    share = (point.measured or point.seconds[0]) / longest
    radius = _LEAST + (_LARGEST - _LEAST) * math.sqrt(share)
    words = [f"{point.name}: {point.intensity:.3g} operations for each byte"]
    words += [
        f"{roof.name}: bound by {point.bound(roof)}, at least {time_text(took)}" for roof, took in zip(roofs, point.seconds, strict=True)
    ]
    words += [] if point.measured is None else [f"measured {time_text(point.measured)}"]
    place = f"translate({scale.x(point.intensity):.1f} {scale.y(point.rate):.1f})scale({radius:.1f})"
    return f'<path d="{_SHAPES[style]}" transform="{place}" class="point c{style}"><title>{html_text(chr(10).join(words))}</title></path>'


def _scopes(points: Sequence[RooflinePoint]) -> dict[str, int]:
    """The scopes that have a colour of their own, those with the longest times."""
    times: dict[str, float] = {}
    for point in points:
        scope = _scope(point.name)
        times[scope] = times.get(scope, 0.0) + (point.measured or point.seconds[0])
    ranked = sorted(times, key=lambda scope: (-times[scope], scope))
    several = len(ranked) > len(_SHAPES)
    return {scope: number for number, scope in enumerate(ranked[: len(_SHAPES) - 1 if several else len(_SHAPES)])}


def _scope(name: str) -> str:
    return name.partition("/")[0]


def _legend(scopes: dict[str, int], points: Sequence[RooflinePoint]) -> list[str]:
    rows = list(scopes.items())
    if any(_scope(point.name) not in scopes for point in points):
        rows.append((_REST, len(_SHAPES) - 1))
    parts = []
    for place, (name, style) in enumerate(rows):
        y, x = _TOP + 12 + 19 * place, WIDTH - _RIGHT + 20
        parts.append(f'<path d="{_SHAPES[style]}" transform="translate({x} {y - 4})scale(5)" class="point c{style}"/>')
        parts.append(f'<text x="{x + 12}" y="{y}">{html_text(_cut(name))}</text>')
    return parts


def _cut(name: str) -> str:
    return name if len(name) <= 18 else f"{name[:17]}…"


def _number(value: float) -> str:
    for size, prefix in _PREFIXES:
        if value >= size:
            return f"{value / size:g} {prefix}"
    return f"{value:g}"


def time_text(seconds: float) -> str:
    """A time in words: `2.62 µs`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
