"""The marks of a difference in a page's data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from widgets.render.page_data.types import DifferenceRecord

if TYPE_CHECKING:
    from graphcore.difference import Marks


def difference_record(marks: Marks, number: Mapping[str, int]) -> DifferenceRecord:
    """The marks, with nodes by number."""
    return DifferenceRecord(
        nodes={number[name]: (mark.kind, mark.text) for name, mark in marks.nodes.items() if name in number},
        new_inputs=sorted((number[name], slot, number[producer] if producer else -1) for name, slot, producer in marks.new_inputs),
        old_edges=[(number[edge.producer], edge.output, number[edge.consumer], edge.slot) for edge in marks.old_edges],
        scopes=marks.scopes,
        summary=marks.summary,
    )
