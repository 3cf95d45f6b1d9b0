"""Decomposition: an order in which every region is an interval, and the cuts between regions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from widgets.scene.structure.items import Items

FEW: Final = 40
"""A region of at most this many items is left whole."""
BROADCAST: Final = 4
"""An item with more consumers than this, some of them far, is left out if a region does not come apart otherwise."""


class Span(NamedTuple):
    """The items at positions `start` to `stop` - 1 of the order."""

    start: int
    stop: int

    @property
    def size(self) -> int:
        """The number of items."""
        return self.stop - self.start


def evaluation_order(items: Items) -> list[int]:
    """A topological order in which each item follows its inputs as closely as possible. The items must be acyclic.

    The longest branch comes first, then the order of the slots counts: an encoder precedes the decoder that uses it in every layer.
    The backward pass and what depends on it come after all else.
    """
    stages = _stages(items)
    before = _longest_first(items)
    order: list[int] = []
    seen = [False] * len(items)
    for stage in sorted(set(stages)):
        ends = [
            item for item in range(len(items)) if stages[item] == stage and all(stages[target] > stage for target in items.outputs[item])
        ]
        for end in sorted(ends, key=lambda item: not items.inputs[item]):  # what only waits comes last
            _emit(before, end, order, seen)
        for item in range(len(items)):
            if stages[item] == stage:
                _emit(before, item, order, seen)
    return order


def _longest_first(items: Items) -> list[list[int]]:
    """The predecessors of each item, those at the end of the longest way first."""
    before = [items.before(item) for item in range(len(items))]
    order: list[int] = []
    seen = [False] * len(items)
    for item in range(len(items)):
        _emit(before, item, order, seen)
    depths = [0] * len(items)
    for item in order:
        depths[item] = 1 + max([depths[source] for source in before[item]], default=0)
    return [sources if len(sources) < 2 else sorted(sources, key=lambda each: -depths[each]) for sources in before]


def _stages(items: Items) -> list[int]:
    """Even for the forward pass, odd for the backward pass; never less than what comes before."""
    stages = [0] * len(items)
    if not any(items.backward):
        return stages
    order: list[int] = []
    seen = [False] * len(items)
    before = [items.before(item) for item in range(len(items))]
    for item in range(len(items)):
        _emit(before, item, order, seen)
    for item in order:
        stage = max((stages[source] for source in items.before(item)), default=0)
        stages[item] = stage + (stage % 2 == 0) if items.backward[item] else stage + stage % 2
    return stages


def _emit(before: Sequence[Sequence[int]], start: int, order: list[int], seen: list[bool]) -> None:
    """Append an item and everything before it to the order: depth first, inputs before the item."""
    if seen[start]:
        return
    seen[start] = True
    stack = [(start, iter(before[start]))]
    while stack:
        item, sources = stack[-1]
        for source in sources:
            if not seen[source]:
                seen[source] = True
                stack.append((source, iter(before[source])))
                break
        else:
            order.append(item)
            stack.pop()


class Order:
    """Items in their order, with the positions of inputs and consumers. `weak` sources do not count in the analysis."""

    def __init__(self, items: Items, order: Sequence[int], weak: Sequence[bool]) -> None:
        place = [0] * len(order)
        for position, item in enumerate(order):
            place[item] = position
        self.items = items
        self.order = order
        self.inputs = [[place[source] for source in items.inputs[item] if not weak[source]] for item in order]
        self.outputs: list[list[int]] = [[] for _ in order]
        for position, sources in enumerate(self.inputs):
            for source in sources:
                self.outputs[source].append(position)


def elements(order: Order, span: Span, *, fine: bool = False, most: int = 1) -> list[Span]:
    """The elements of an interval in series: single items, and regions with one entry and one exit.

    An interval that does not come apart is analysed again without its longest edges, then cut where the fewest tensors cross.

    Args:
        fine: cut the parts that come apart without long edges again, each by itself.
        most: the most items whose tensors cross a cut: 2 for cells that use the results of the two cells before them.
    """
    found = _cut(order, span, span.size, most)
    if max(part.size for part in found) <= max(FEW, span.size // 2) or span.size <= FEW:
        return _apart(order, found, span.size, fine=fine, most=most)
    reach = span.size
    best: list[Span] | None = None
    while reach > FEW // 5:
        reach //= 2
        shorter = _cut(order, span, reach)
        largest = max(part.size for part in shorter)
        if largest <= FEW // 3:
            return [inner for part in shorter for inner in elements_within(order, part)] if fine else shorter
        if best is None and largest <= max(FEW, span.size // 4):
            best = shorter
    if best is not None:
        return _apart(order, best, span.size, fine=fine, most=most)
    return _narrowest(order, span)


def elements_within(order: Order, span: Span) -> list[Span]:
    """The elements of an interval by itself, without what comes into it from before."""
    return _cut(order, span, span.size)


def _apart(order: Order, parts: list[Span], whole: int, *, fine: bool, most: int) -> list[Span]:
    """The parts, those of more than a few items taken apart again if they are much of the whole."""
    result: list[Span] = []
    for part in parts:
        if part.size > FEW and part.size < whole and 5 * part.size > whole:
            result.extend(elements(order, part, fine=fine, most=most))
        else:
            result.append(part)
    return result


def _cut(order: Order, span: Span, reach: int, most: int = 1) -> list[Span]:
    """Cut after each position where the tensors of at most `most` items cross. Edges longer than `reach` do not count."""
    return _cut_below(span, _widths(order, span, reach), most)


def _narrowest(order: Order, span: Span) -> list[Span]:
    """Cut where the fewest items' tensors cross, but nowhere if that is everywhere."""
    widths = _widths(order, span, span.size // 2)
    inner = sorted(widths[:-1])
    if not inner:
        return [span]
    for limit in dict.fromkeys((inner[0], inner[len(inner) // 16], inner[len(inner) // 8])):
        found = _cut_below(span, widths, limit)
        if max(part.size for part in found) <= max(FEW, span.size // 4):
            return found
    return [span]


def _widths(order: Order, span: Span, reach: int) -> list[int]:
    """The number of items whose tensors cross the gap after each position."""
    change = [0] * (span.size + 1)
    for position in range(span.start, span.stop):
        targets = order.outputs[position]
        last = position
        if len(targets) > BROADCAST and reach < span.size and min(targets[-1], span.stop) - position > reach:
            targets = targets[:0]
        for target in targets:
            if last < target < span.stop and target - position <= reach:
                last = target
        change[position - span.start] += 1
        change[last - span.start] -= 1
    return list(accumulate(change[:-1]))


def _cut_below(span: Span, widths: list[int], limit: int) -> list[Span]:
    stops = [span.start + index + 1 for index, width in enumerate(widths[:-1]) if width <= limit]
    starts = [span.start, *stops]
    return [Span(start, stop) for start, stop in zip(starts, [*stops, span.stop], strict=True)]
