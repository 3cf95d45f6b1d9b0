"""Line charts over steps as small self-contained SVG pictures."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from graphcore.support.shown import html_text

Points = Sequence[tuple[int, float]]

WIDTH: Final = 560
HEIGHT: Final = 190
_LEFT: Final = 56
_RIGHT: Final = 96
_TOP: Final = 12
_BOTTOM: Final = 26
_MOST_POINTS: Final = 400
_TICKS: Final = 4
_LABEL_GAP: Final = 14

# Colours that differ in lightness too, each with a dash pattern, so that colour is never the only sign.
_LIGHT: Final = ("#1f5fbf", "#b3541e", "#2d7a46", "#7b3fa0", "#5c5c5c")
_DARK: Final = ("#8ab8ff", "#f2a36e", "#7fd6a0", "#cf9df2", "#b8b8b8")
_DASHES: Final = ("", "6 3", "2 3", "8 3 2 3", "1 3")


def _colors(colors: Sequence[str]) -> str:
    return "".join([f".c{number}{{--c:{color}}}" for number, color in enumerate(colors)])


# An image takes on the color scheme of its place in the page.
_STYLE: Final = (
    f".paper{{fill:#fff}}.grid{{stroke:#e2e2e2}}text{{fill:#444}}{_colors(_LIGHT)}"
    f"@media (prefers-color-scheme:dark){{.paper{{fill:#15181d}}.grid{{stroke:#3a424d}}text{{fill:#b8c1cc}}{_colors(_DARK)}}}"
    ".line{fill:none;stroke:var(--c);stroke-width:1.6;stroke-linejoin:round}.dot,.name{fill:var(--c)}"
)


def curve_svg(series: Mapping[str, Points], steps: int) -> str:
    """A line chart of `series` (name -> (step, value) pairs) over `steps` steps, labelled at line ends.

    Values that are not finite leave a gap.
    """
    ticks = _ticks(*_range(series))
    low, high = ticks[0], ticks[-1]
    size = f'width="{WIDTH}" height="{HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {size} font-family="system-ui, sans-serif" font-size="11">',
        f"<style>{_STYLE}</style>",
        f'<rect {size} rx="4" class="paper"/>',
    ]
    for value in ticks:
        y = _y(value, low, high)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}" class="grid"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_number(value, ticks[1] - low)}</text>')
    for step, anchor in ((0, "start"), (steps, "end")):
        parts.append(f'<text x="{_x(step, steps):.1f}" y="{HEIGHT - 9}" text-anchor="{anchor}">{"step " if step else ""}{step}</text>')
    ends: list[float] = []
    for index, (name, points) in enumerate(series.items()):
        places = [None if not math.isfinite(value) else (_x(step, steps), _y(value, low, high)) for step, value in thinned(points)]
        parts += _line(name, places, index % len(_DASHES), ends)
    parts.append("</svg>")
    return "".join(parts)


def _line(name: str, places: Sequence[tuple[float, float] | None], style: int, ends: list[float]) -> list[str]:
    path = ""
    previous: tuple[float, float] | None = None
    last: tuple[float, float] | None = None
    for place in places:
        if place is not None:
            path += f"{'M' if previous is None else 'L'}{place[0]:.1f} {place[1]:.1f}"
            last = place
        previous = place
    if last is None:
        return []
    y = _free_place(last[1], ends)
    return [
        f'<path d="{path}" class="line c{style}" stroke-dasharray="{_DASHES[style]}"/>',
        f'<circle cx="{last[0]:.1f}" cy="{last[1]:.1f}" r="2.5" class="dot c{style}"/>',
        f'<text x="{last[0] + 7:.1f}" y="{y + 4:.1f}" class="name c{style}">{html_text(name)}</text>',
    ]


def _free_place(y: float, ends: list[float]) -> float:
    """A position for a label that overlaps no other label."""
    for other in sorted(ends):
        if abs(y - other) < _LABEL_GAP:
            y = other + _LABEL_GAP
    ends.append(y)
    return y


def thinned(points: Points) -> Points:
    """At most a few hundred of `points`, including the last one."""
    stride = math.ceil(len(points) / _MOST_POINTS)
    if stride <= 1:
        return points
    return [*points[:-1:stride], points[-1]]


def _range(series: Mapping[str, Points]) -> tuple[float, float]:
    values = [value for points in series.values() for _, value in points if math.isfinite(value)]
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    if low > 0 and low < 0.5 * high:
        low = 0.0
    if high > low:
        return low, high
    margin = abs(high) * 0.1 or 1.0
    return low - margin, high + margin


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers at equal distances, 1, 2 or 5 times a power of ten, that enclose `low` and `high`."""
    rough = (high - low) / _TICKS
    if not sys.float_info.min <= rough < math.inf:
        return [low, high]
    power = 10.0 ** math.floor(math.log10(rough))
    distance = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.floor(low / distance + 1e-9), math.ceil(high / distance - 1e-9)
    ticks = [number * distance for number in range(first, last + 1)]
    return ticks if len(set(ticks)) == len(ticks) > 1 and math.isfinite(ticks[0]) and math.isfinite(ticks[-1]) else [low, high]


def _x(step: int, steps: int) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * min(step / max(steps, 1), 1.0)


def _y(value: float, low: float, high: float) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * (value - low) / (high - low)


def _number(value: float, distance: float) -> str:
    """A tick's number, with the digits that distinguish it from others at this distance."""
    if not 0 < distance < math.inf or abs(value) < distance / 2:
        return f"{value:.3g}"
    digits = math.floor(math.log10(abs(value))) - math.floor(math.log10(distance) + 1e-9) + 1
    return f"{value:.{min(max(digits, 4), 17)}g}"
