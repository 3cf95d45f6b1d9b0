"""A bound on what the arrays of a run of the dataflow engine hold where its graph has loops.

Whatever is alive waits in a slot of an iteration under way, or is on its way there: so every slot counts, as often as iterations of its
frame may hold something there at once, with the largest array that what it holds may be a view of.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable
from typing import Final

from graphcore.errors import UnimplementedError
from graphcore.graph.control_flow import ENTER, EXIT, MERGE, NEXT_ITERATION, SWITCH
from graphcore.graph.model.node import Tensor
from graphcore.runtime.core.memory import VIEWS
from graphcore.runtime.dataflow.fusing import is_branch
from graphcore.runtime.dataflow.table import (
    ENTERING,
    ENTERING_CONSTANT,
    EXITING,
    MERGING,
    NEXT,
    TRIGGER,
    FrameTable,
    Item,
    Table,
)
from graphcore.runtime.plan.peak_memory import ELSEWHERE, RECEIVING, PeakMemory, Sizes, peak_of_dataflow

_HANDING_ON: Final = SWITCH | MERGE | ENTER | EXIT | NEXT_ITERATION | {"Identity", "LoopCond"}
_MOST_ITEMS: Final = 300
"""In a frame of more, every slot counts as often as there may be iterations: to look closer would take too long."""


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
    instances = _instances(table)
    turns = _Turns(table)
    total = sum([owned.size(tensor) for tensor in table.fetches])
    under_way = 0
    for item in table.items:
        if item.context is None:
            total += sum([owned.size(tensor) for tensor in item.node.inputs])
            continue
        frames, most = instances[item.frame], item.frame.parallel
        held = [owned.size(tensor) for tensor in item.node.inputs]
        if item.kind == MERGING:
            total += frames * int(min(most, turns.of_merge(item))) * max(held, default=0)
        else:
            total += sum([frames * int(min(most, turns.of_input(item, i))) * size for i, size in enumerate(held) if size])
        if item.kind == NEXT:
            total += frames * sum(held)  # what would begin an iteration too many is put by
        if item.kind == ENTERING_CONSTANT:
            total += instances[item.child] * sum(held)
        given = sum([owned.size(tensor) for tensor in item.node.outputs])
        under_way = max(under_way, given, sizes.within(item.node).bytes or 0)
    return total + 3 * under_way  # what a node gives while it runs, and what the one before it gave


def _instances(table: Table) -> dict[FrameTable, int]:
    """How often each frame may be open at once, in all iterations that are around it."""
    instances = {table.outermost: 1}
    left = [item for item in table.items if item.kind in (ENTERING, ENTERING_CONSTANT)]
    while left:
        known = [item for item in left if item.frame in instances]
        instances.update([(item.child, instances[item.frame] * item.frame.parallel) for item in known])
        left = _without(left, known)
    return instances


class _Turns:
    """In how many iterations of its frame an input of an item may wait at once.

    If who gives it waits in some later iteration for the item in this one, none from there on gives anything before the item has run.
    """

    def __init__(self, table: Table) -> None:
        self.givers: dict[tuple[Item, int], tuple[Item, int]] = {}
        self.merged: dict[Item, list[Item]] = {}
        self.early: set[Item] = set()
        self._after: dict[Item, dict[Item, int]] = {}
        sizes = Counter([item.frame for item in table.items])
        self.is_large = {frame: count > _MOST_ITEMS for frame, count in sizes.items()}
        for giver in table.items:
            for port, item, slot, _ in giver.data_edges:
                self.givers[item, slot - item.base] = giver, port
            for _, merge, _ in giver.merge_edges:
                self.merged.setdefault(merge, []).append(giver)
        for merge, givers in self.merged.items():
            kinds = {giver.kind for giver in givers}
            if ENTERING_CONSTANT in kinds or (ENTERING in kinds and kinds != {ENTERING, NEXT}):
                self.early.add(merge)  # it may run in the first iteration, or in all, before what else it takes is there
            self.merged[merge] = [giver for giver in givers if giver.kind != ENTERING]

    def of_input(self, item: Item, number: int) -> float:
        """How many iterations may hold input `number` of an item that is no Merge."""
        if self.is_large[item.frame] or (item, number) not in self.givers:
            return math.inf
        giver, port = self.givers[item, number]
        if giver.kind == ENTERING_CONSTANT:
            return 0  # the frame holds it
        if giver.kind == ENTERING:
            return 1
        turns = self.after(item).get(giver, math.inf)
        if not is_branch(giver):
            return turns
        # Where a Switch gives this it does not give the other, and what waits for that does not run at all.
        other = [taker for number, taker, *_ in giver.data_edges if number != port]
        return min(turns, self._reached(other).get(giver, math.inf))

    def of_merge(self, merge: Item) -> float:
        """How many iterations may hold what a Merge takes."""
        if self.is_large[merge.frame] or merge in self.early:
            return math.inf
        after = self.after(merge)
        return max([after.get(giver, math.inf) + (giver.kind == NEXT) for giver in self.merged.get(merge, ())], default=1)

    def after(self, item: Item) -> dict[Item, int]:
        """What waits for `item`, in the same iteration (0) or so many later."""
        found = self._after.get(item)
        if found is None:
            found = self._after[item] = self._reached([item])
        return found

    def _reached(self, first: Iterable[Item]) -> dict[Item, int]:
        """What is reached from `first` along what it waits for, with the least number of iterations between."""
        after: dict[Item, int] = {}
        left = {merge: len(givers) for merge, givers in self.merged.items()}
        pending = [(0, item.index, item) for item in first if item.kind != TRIGGER]
        heapq.heapify(pending)
        while pending:
            turns, _, item = heapq.heappop(pending)
            if item in after:
                continue
            after[item] = turns
            if item.kind in (ENTERING, ENTERING_CONSTANT, EXITING):
                continue
            takers = [*[taker for _, taker, *_ in item.data_edges], *item.control_edges]
            for _, merge, _ in item.merge_edges:
                left[merge] -= 1  # it takes any that comes: only what all of them wait for is before it
                if not left[merge] and merge not in self.early:
                    takers.append(merge)
            # One more iteration for all is enough where a Merge takes this from the iteration before and something else from its own.
            turns += item.kind == NEXT or any(merge in takers and self._is_turned(merge) for _, merge, _ in item.merge_edges)
            for taker in takers:
                if taker.kind != TRIGGER:
                    heapq.heappush(pending, (turns, taker.index, taker))
        return after

    def _is_turned(self, merge: Item) -> bool:
        return any(giver.kind == NEXT for giver in self.merged[merge])


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
