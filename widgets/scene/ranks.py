"""Which layer each box will stand in, roughly: enough to know which lines would run across the whole picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def estimate_ranks(boxes: Sequence[str], arrows: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Layer of each box: 0 at the top, every arrow that closes no cycle points to a deeper layer.

    Boxes without incoming arrows stand right above the first box that needs them, as the layout engine puts them.
    """
    after: dict[str, list[str]] = {box: [] for box in boxes}
    for source, target in arrows:
        if source != target:
            after[source].append(target)
    order = _topological(boxes, after)
    place = {box: number for number, box in enumerate(order)}
    ranks = dict.fromkeys(boxes, 0)
    has_input = set()
    for box in order:
        for target in after[box]:
            if place[target] > place[box]:
                has_input.add(target)
                ranks[target] = max(ranks[target], ranks[box] + 1)
    for box in reversed(order):
        below = [ranks[target] for target in after[box] if place[target] > place[box]]
        if below and box not in has_input:
            ranks[box] = min(below) - 1
    return ranks


def _topological(boxes: Sequence[str], after: dict[str, list[str]]) -> list[str]:
    """Reverse post-order of a depth-first walk: topological but for the arrows that close cycles."""
    done: list[str] = []
    seen: set[str] = set()
    for start in boxes:
        if start in seen:
            continue
        seen.add(start)
        stack = [(start, iter(after[start]))]
        while stack:
            box, targets = stack[-1]
            target = next((item for item in targets if item not in seen), None)
            if target is None:
                done.append(box)
                stack.pop()
                continue
            seen.add(target)
            stack.append((target, iter(after[target])))
    done.reverse()
    return done
