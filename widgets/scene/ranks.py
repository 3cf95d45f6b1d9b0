"""Estimates of the layer of each box, to find the edges that would cross the whole picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def estimate_ranks(boxes: Sequence[str], arrows: Iterable[tuple[str, str]], loose: Iterable[tuple[str, str]] = ()) -> dict[str, int]:
    """The layer of each box: 0 at the top; every arrow outside of cycles points to a deeper layer.

    As in the layout engine, a box is moved down to its consumers if that makes its arrows shorter in sum.

    Args:
        arrows: the edges that pull boxes together, from above to below.
        loose: edges that do not pull; a box with such inputs only is placed below their sources.
    """
    after: dict[str, list[str]] = {box: [] for box in boxes}
    for source, target in arrows:
        if source != target:
            after[source].append(target)
    order = _topological(boxes, after)
    place = {box: number for number, box in enumerate(order)}
    below = {box: [target for target in after[box] if place[target] > place[box]] for box in boxes}
    pull = {box: len(targets) for box, targets in below.items()}
    ranks = dict.fromkeys(boxes, 0)
    bound = {box for box, targets in below.items() if targets}
    for box in order:
        for target in below[box]:
            ranks[target] = max(ranks[target], ranks[box] + 1)
            pull[target] -= 1
            bound.add(target)
    for box in reversed(order):
        if below[box] and pull[box] >= 0:
            ranks[box] = min([ranks[target] for target in below[box]]) - 1
    for source, target in loose:
        if target not in bound:
            ranks[target] = max(ranks[target], ranks[source] + 1)
    return ranks


def _topological(boxes: Sequence[str], after: dict[str, list[str]]) -> list[str]:
    """Reverse post-order of a depth-first walk: topological except for the arrows that close cycles."""
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
