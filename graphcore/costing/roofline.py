"""Rooflines: the bounds of the nodes of a graph on devices, by memory or by arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphcore.costing.roofline_svg import roofline_svg, time_text
from graphcore.costing.roofs import Roof, RooflinePoint
from graphcore.errors import InvalidArgumentError
from graphcore.support.shown import html_text

_MOST_LISTED = 20


@dataclass(frozen=True, slots=True)
class Roofline:
    """Nodes or scopes below the roofs of devices. It displays itself as a picture with a table.

    Attributes:
        roofs: the devices.
        points: the nodes or scopes that compute, those with the longest time on the first device first.
        moving: the seconds by device that nodes without operations take to move bytes.
    """

    roofs: tuple[Roof, ...]
    points: tuple[RooflinePoint, ...]
    moving: tuple[float, ...]

    def seconds(self, device: str = "") -> float:
        """The least time of all, one after the other, in seconds: on a device, by default the first.

        Raises:
            InvalidArgumentError: there is no such device.
        """
        place = next((place for place, roof in enumerate(self.roofs) if device in {"", roof.name}), None)
        if place is None:
            raise InvalidArgumentError(f"Required {' or '.join([roof.name for roof in self.roofs])}, got {device!r}")
        return sum(point.seconds[place] for point in self.points) + self.moving[place]

    @property
    def svg(self) -> str:
        """The picture."""
        return roofline_svg(self.roofs, self.points)

    def save(self, path: str | Path) -> Path:
        """Write the picture to an SVG file.

        Raises:
            OSError: it cannot be written.
        """
        target = Path(path)
        target.write_text(self.svg, encoding="utf-8")
        return target

    def __str__(self) -> str:
        lines = [f"{roof.name}: bound by memory below {roof.ridge:.3g} operations for each byte" for roof in self.roofs]
        lines += ["  ".join(row) for row in self._rows()]
        more = len(self.points) - _MOST_LISTED
        return "\n".join([*lines, *([f"and {more:,} more"] if more > 0 else [])])

    def _rows(self) -> list[tuple[str, str]]:
        return [(point.name, self._words(point)) for point in self.points[:_MOST_LISTED]]

    def _words(self, point: RooflinePoint) -> str:
        parts = [
            f"{'' if len(self.roofs) == 1 else f'{roof.name} '}at least {time_text(seconds)} ({point.bound(roof)})"
            for roof, seconds in zip(self.roofs, point.seconds, strict=True)
        ]
        measured = [] if point.measured is None else [f"measured {time_text(point.measured)}"]
        return ", ".join([f"{point.intensity:.3g} for each byte", *parts, *measured])

    def _repr_html_(self) -> str:
        rows = "".join(
            [
                f"<tr><td style='text-align:left'>{html_text(name)}</td><td style='text-align:left'>{html_text(words)}</td></tr>"
                for name, words in self._rows()
            ]
        )
        picture = f"<div style='overflow-x:auto'>{self.svg}</div>"
        return f"{picture}<details><summary>The {min(len(self.points), _MOST_LISTED)} longest</summary><table>{rows}</table></details>"


def roofline_of(
    work: Mapping[str, tuple[float, float]], devices: Mapping[str, tuple[float, float]], measured: Mapping[str, float]
) -> Roofline:
    """The roofline of nodes by their operations and bytes; see `Costs.roofline`.

    Raises:
        InvalidArgumentError: there are no devices, a number is not positive, or a measured time is of no node.
    """
    roofs = tuple([_roof(name, numbers) for name, numbers in devices.items()])
    if not roofs:
        raise InvalidArgumentError(
            "Required devices with their operations and bytes in a second, as in {'laptop': (200e9, 50e9)}, got none"
        )
    for name, seconds in measured.items():
        if name not in work:
            raise InvalidArgumentError(f"Required times of nodes or scopes of the graph, got one of {name!r}")
        if not 0 < seconds < math.inf:
            raise InvalidArgumentError(f"Required a positive time of {name!r} in seconds, got {seconds!r}")
    points = [
        RooflinePoint(name, operations, moved, tuple([roof.seconds(operations, moved) for roof in roofs]), measured.get(name))
        for name, (operations, moved) in work.items()
        if operations > 0 and moved > 0
    ]
    points.sort(key=lambda point: (-(point.measured or point.seconds[0]), point.name))
    rest = [moved for operations, moved in work.values() if not operations]
    return Roofline(roofs, tuple(points), tuple([sum(rest) / roof.bandwidth for roof in roofs]))


def _roof(name: str, numbers: object) -> Roof:
    pair = list(numbers) if isinstance(numbers, Sequence) else []
    if len(pair) != 2 or not all(isinstance(number, int | float) and 0 < number < math.inf for number in pair):
        raise InvalidArgumentError(f"Required (operations, bytes) in a second of {name!r}, two positive numbers, got {numbers!r}")
    return Roof(name, float(pair[0]), float(pair[1]))
