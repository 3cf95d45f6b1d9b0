"""The reasons for the device of a node, for the inspector."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from graphcore.errors import GraphError
from graphcore.placement import explain_placement
from graphcore.placement.explanation import RULES, PlacementExplanation
from graphcore.placement.placer import last_placer
from widgets.inspection import WhyStep
from widgets.scene.shapes.why import MAX_NODES

if TYPE_CHECKING:
    from graphcore.graph import Node

MAX_ROWS: Final = 12
"""Rows of each kind; the others are counted."""


def placement_of(node: Node) -> list[WhyStep]:
    """The steps that led to the device of a node.

    Empty before the first placement of the graph, and for graphs that are too large.
    """
    if last_placer.of(node.graph) is None or len(node.graph) > MAX_NODES:
        return []
    try:
        return list(_steps(explain_placement(node)))
    except GraphError as error:
        return [WhyStep(text=str(error))]


def _steps(explained: PlacementExplanation) -> Iterator[WhyStep]:
    def step(text: str, name: str = "") -> WhyStep:
        return WhyStep(text=text, name=name, depth=1 if name else 0)

    yield step(f"on {explained.assigned}" if explained.assigned else "no device")
    yield step(f"requested: {explained.requested or 'nothing'}")
    if explained.rule:
        yield step(RULES[explained.rule])
    yield from [step(note) for note in explained.notes]
    removed = [
        step(f"not on {entry.device}: {'; '.join([entry.why, *entry.chain])}", entry.removed_by)
        for entry in explained.candidates
        if entry.why
    ]
    yield from _first(removed, "devices")
    links = [
        (second if first == explained.node else first, why) for first, second, why in explained.links if explained.node in (first, second)
    ]
    yield from _first([step(f"on one device because of {why}", other) for other, why in links], "nodes of its group")
    yield from _first([step(f"copies {copy}") for copy in explained.copies], "copies")
    if explained.conflict:
        yield step("These nodes cannot be placed together; without any one of them the others can:")
        yield from [step(f"{entry.device} {entry.where}".strip() or entry.op, entry.name) for entry in explained.conflict]


def _first(rows: list[WhyStep], kind: str) -> list[WhyStep]:
    if len(rows) <= MAX_ROWS:
        return rows
    return [*rows[:MAX_ROWS], WhyStep(text=f"and {len(rows) - MAX_ROWS} more {kind}")]
