"""A bound on what the arrays of a run of the dataflow engine hold where its graph has loops.

Whatever is alive waits in a slot of an iteration under way, or is on its way there: so every slot counts, as often as iterations of its
frame may be under way at once, with the largest array that what it holds may be a view of.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from graphcore.errors import UnimplementedError
from graphcore.graph.control_flow import ENTER, EXIT, MERGE, NEXT_ITERATION, SWITCH
from graphcore.graph.node import Tensor
from graphcore.runtime.dataflow_table import ENTERING, ENTERING_CONSTANT, NEXT, FrameTable, Item, Table
from graphcore.runtime.memory import VIEWS
from graphcore.runtime.peak_memory import ELSEWHERE, RECEIVING, PeakMemory, Sizes, peak_of_dataflow

_HANDING_ON: Final = SWITCH | MERGE | ENTER | EXIT | NEXT_ITERATION | {"Identity", "LoopCond"}


def peak_of_table(table: Table, sizes: Sizes) -> PeakMemory:
    """The peak of a run of the dataflow engine; where there are loops, a bound."""
    first = next((node for node in table.nodes if node.op in ENTER), None)
    if first is None:
        return peak_of_dataflow(table, sizes)
    receiving = next((node for node in table.nodes if node.op in RECEIVING), None)
    if receiving is not None:
        return PeakMemory(None, reason=f"'{receiving.name}' (op {receiving.op}) receives a value, which may come at any time")
    try:
        bound = _bound_of_loops(table, sizes)
    except UnimplementedError as error:
        return PeakMemory(None, reason=error.message)
    return PeakMemory(bound, True, f"'{first.name}' (op {first.op}) begins a loop: as many iterations count as may be under way at once")


def _bound_of_loops(table: Table, sizes: Sizes) -> int:
    """The bound in bytes.

    Raises:
        UnimplementedError: a shape is known only when it runs, or a node puts values by.
    """
    owned = _Owned(table.fed, sizes)
    times = _times(table)
    total = sum([owned.size(tensor) for tensor in table.fetches])
    under_way = 0
    for item in table.items:
        if item.context is None:
            total += sum([owned.size(tensor) for tensor in item.node.inputs])
            continue
        held = [owned.size(tensor) for tensor in item.node.inputs]
        count = times[item.frame] * (1 + (item.kind == NEXT))  # what would begin an iteration too many is put by
        total += count * (max(held, default=0) if item.node.op in MERGE else sum(held))
        if item.kind == ENTERING_CONSTANT:
            total += times[item.child] * sum(held)
        given = sum([owned.size(tensor) for tensor in item.node.outputs])
        under_way = max(under_way, given, sizes.within(item.node).bytes or 0)
    return total + 3 * under_way  # what a node gives while it runs, and what the one before it gave


def _times(table: Table) -> dict[FrameTable, int]:
    """How many iterations of each frame may be under way at once, in all that are around it."""
    times = {table.outermost: 1}
    left = [item for item in table.items if item.kind in (ENTERING, ENTERING_CONSTANT)]
    while left:
        known = [item for item in left if item.frame in times]
        times.update([(item.child, times[item.frame] * max(1, item.child.parallel)) for item in known])
        left = _without(left, known)
    return times


def _without(items: Iterable[Item], gone: list[Item]) -> list[Item]:
    found = set(gone)
    return [item for item in items if item not in found]


class _Owned:
    """How large the array may be that a value is, or is a view of."""

    def __init__(self, fed: Iterable[Tensor], sizes: Sizes) -> None:
        self.fed = set(fed)
        self.sizes = sizes

    def size(self, tensor: Tensor) -> int:
        """The largest, in bytes; what was fed, constants and variables do not count."""
        pending, seen, most = [tensor], {tensor}, 0
        while pending:
            found = pending.pop()
            node = found.node
            if found in self.fed or node.op in ELSEWHERE or found.dtype.is_ref:
                continue
            hands_on = node.op in _HANDING_ON
            if not hands_on:
                most = max(most, self.sizes.of(found))
            if hands_on or node.op in VIEWS:
                sources = [source for source in (node.inputs if node.op in MERGE else node.inputs[:1]) if source not in seen]
                seen.update(sources)
                pending += sources
        return most
