"""The marks of a difference in a page's data."""

from __future__ import annotations

from collections.abc import Mapping

from graphcore.difference.marks import shown_difference
from graphcore.graph import Graph
from widgets.render.page_data.types import DifferenceRecord


def difference_record(graph: Graph, number: Mapping[str, int]) -> DifferenceRecord | None:
    """The marks of the difference that a graph shows, with nodes by number; None for any other graph."""
    marks = shown_difference.of(graph)
    if marks is None:
        return None
    return DifferenceRecord(
        nodes={number[name]: (mark.kind, mark.text) for name, mark in marks.nodes.items() if name in number},
        new_inputs=sorted((number[name], slot, number[producer] if producer else -1) for name, slot, producer in marks.new_inputs),
        old_edges=[(number[edge.producer], edge.output, number[edge.consumer], edge.slot) for edge in marks.old_edges],
        scopes=marks.scopes,
        summary=marks.summary,
    )
