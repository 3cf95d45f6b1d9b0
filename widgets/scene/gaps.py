"""Gradients that are None in a mirrored picture: a box, and the edges that end in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import msgspec

from graphcore.api.gradients.missing_gradients import missing_gradients
from widgets.scene.origins import origins_of

if TYPE_CHECKING:
    from graphcore.graph import Graph

MOST_LINES: Final = 3
"""The most reasons in one box, and the most edges into it."""


class GapCut(msgspec.Struct, frozen=True):
    """A place where a gradient stops.

    `last` is the last gradient node on the way, `node` the responsible node; "" if there is none.
    """

    last: str
    node: str
    reason: str


class Gap(msgspec.Struct, frozen=True):
    """A node whose gradient is None."""

    node: str
    cuts: list[GapCut]


_known: WeakKeyDictionary[Graph, tuple[int, list[Gap]]] = WeakKeyDictionary()


def gaps_of(graph: Graph) -> list[Gap]:
    """The nodes whose gradient is None, with the places where gradients stop."""
    cached = _known.get(graph)
    if cached is None or cached[0] != graph.version:
        cached = _known[graph] = graph.version, _find(graph)
    return cached[1]


def _find(graph: Graph) -> list[Gap]:
    gradients = missing_gradients(graph)
    if not gradients:
        return []
    gradient_of: dict[str, str] = {}
    for name, origin in origins_of(graph).items():
        gradient_of.setdefault(origin, name)
    gaps: dict[str, dict[GapCut, None]] = {}
    for missing in gradients:
        cuts = gaps.setdefault(missing.x.name, {})
        for cut in missing.cuts[:MOST_LINES]:
            after = cut.path[cut.path.index(cut.node) + 1 :] if cut.node in cut.path else ()
            last = next((gradient_of[name] for name in after if name in gradient_of), "")
            cuts[GapCut(last, cut.node, f"'{cut.node}' {cut.reason}" if cut.node else cut.reason)] = None
    return [Gap(name, list(cuts)) for name, cuts in gaps.items()]
