"""Gradients that are None in a mirrored picture: a box, and the edges that end in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import msgspec

from graphcore.api.gradients.missing_gradients import missing_gradients
from widgets.scene.boxes import Visible
from widgets.scene.mirror import BACKWARD
from widgets.scene.origins import MIRROR, origins_of
from widgets.scene.types import SceneEdge, SceneNode
from widgets.scene.words import last_part

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
    known = _known.get(graph)
    if known is None or known[0] != graph.version:
        known = _known[graph] = graph.version, _find(graph)
    return known[1]


def _find(graph: Graph) -> list[Gap]:
    found = missing_gradients(graph)
    if not found:
        return []
    gradient_of: dict[str, str] = {}
    for name, origin in origins_of(graph).items():
        gradient_of.setdefault(origin, name)
    gaps: dict[str, dict[GapCut, None]] = {}
    for missing in found:
        cuts = gaps.setdefault(missing.x.name, {})
        for cut in missing.cuts[:MOST_LINES]:
            after = cut.path[cut.path.index(cut.node) + 1 :] if cut.node in cut.path else ()
            last = next((gradient_of[name] for name in after if name in gradient_of), "")
            cuts[GapCut(last, cut.node, f"'{cut.node}' {cut.reason}" if cut.node else cut.reason)] = None
    return [Gap(name, list(cuts)) for name, cuts in gaps.items()]


def gap_boxes(visible: Visible, gaps: list[Gap]) -> tuple[list[SceneNode], list[SceneEdge]]:
    """The boxes of gaps, one beside each forward box with any, and the edges that lead to them."""
    boxes = {box.id: box for box in visible.boxes}
    frames = {frame.id for frame in visible.frames}
    inside: dict[str, list[Gap]] = {}
    for gap in gaps:
        inside.setdefault(visible.place_of_name(gap.node), []).append(gap)
    nodes: list[SceneNode] = []
    edges: list[SceneEdge] = []
    for place, found in inside.items():
        if place not in boxes:
            continue
        cuts = list(dict.fromkeys([cut for gap in found for cut in gap.cuts]))
        names = ", ".join([last_part(gap.node) for gap in found[:MOST_LINES]]) + (", …" if len(found) > MOST_LINES else "")
        box_id = f"gap:{place}"
        mirrored = next((frame for frame in (MIRROR + (boxes[place].group or "/"), BACKWARD) if frame in frames), "")
        nodes.append(
            SceneNode(
                id=box_id,
                label=f"no gradient of {names}",
                kind="stub",
                group=mirrored,
                role="gradient",
                state="error",
                error="\n".join([cut.reason for cut in cuts[:MOST_LINES]]),
                count=0,
                mirrors=place,
                stands_for=next((cut.node for cut in cuts if cut.node), place),
            )
        )
        sources: dict[str, list[GapCut]] = {}
        for cut in cuts:
            source = visible.place_of_name(cut.last)
            if source in boxes:
                sources.setdefault(source, []).append(cut)
        edges.extend(
            SceneEdge(
                id=f"{source}->{box_id}",
                source=source,
                target=box_id,
                label=f"stopped at {last_part(cut_here[0].node)}" if cut_here[0].node else "None",
                error="\n".join([cut.reason for cut in cut_here[:MOST_LINES]]),
                reversed=True,
                role="gradient",
            )
            for source, cut_here in list(sources.items())[:MOST_LINES]
        )
    return nodes, edges
