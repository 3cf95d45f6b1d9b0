"""Differences in pictures: the parts of a scope that have not changed are shown together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from widgets.scene.tree.folds import Group, nodes_of

if TYPE_CHECKING:
    from graphcore.difference import Marks
    from widgets.scene.tree.scopes import Part

FEWEST: Final = 3
"""Fewer unchanged parts than this are shown as they are."""
MOST_NEAR: Final = 16
"""The unchanged parts beside changed ones that are shown: those with most edges to them."""
_DEPTH: Final = 60
"""The depths of these groups: deeper than those of groups by dataflow, so that their keys differ."""
_LABEL: Final = "unchanged"


def unchanged_together(path: str, parts: list[Part], marks: Marks) -> list[Part]:
    """The parts, with those that are not different and far from differences in groups.

    Parts before, between, behind and beside the differences are in groups of their own, so that no group is in a cycle.
    """
    touched = {place for place, part in enumerate(parts) if any(marks.is_touched(node.name) for node in nodes_of([part]))}
    if not touched or len(parts) - len(touched) < FEWEST:
        return parts
    after, before = _edges(parts, marks)
    near = _near(touched, after, before)
    reached, reaching = _reach(touched, after), _reach(touched, before)
    kinds: dict[tuple[bool, bool], list[int]] = {}
    for place in range(len(parts)):
        if place not in touched and place not in near:
            kinds.setdefault((place in reached, place in reaching), []).append(place)
    group_of: dict[int, Part] = {}
    for number, places in enumerate(kinds.values()):
        if len(places) >= FEWEST:
            group = Group.of(path, _DEPTH + 4 * path.count("/") + number, _LABEL, [parts[place] for place in places], plain=False)
            group_of.update(dict.fromkeys(places, group))
    return list(dict.fromkeys(group_of.get(place, part) for place, part in enumerate(parts)))


def _edges(parts: Sequence[Part], marks: Marks) -> tuple[dict[int, Counter[int]], dict[int, Counter[int]]]:
    """The edges between parts, from and to each, old ones included."""
    place_of = {node.name: place for place, part in enumerate(parts) for node in nodes_of([part])}
    after: dict[int, Counter[int]] = {}
    before: dict[int, Counter[int]] = {}

    def join(source: int | None, target: int | None) -> None:
        if source is not None and target is not None and source != target:
            after.setdefault(source, Counter())[target] += 1
            before.setdefault(target, Counter())[source] += 1

    for place, part in enumerate(parts):
        for node in nodes_of([part]):
            for tensor in node.inputs:
                join(place_of.get(tensor.node.name), place)
            for producer in node.control_inputs:
                join(place_of.get(producer.name), place)
    for edge in marks.old_edges:
        join(place_of.get(edge.producer), place_of.get(edge.consumer))
    return after, before


def _near(touched: set[int], after: Mapping[int, Counter[int]], before: Mapping[int, Counter[int]]) -> set[int]:
    links: Counter[int] = Counter()
    for place in sorted(touched):
        links.update(after.get(place, Counter()) + before.get(place, Counter()))
    return {place for place, _ in Counter({place: count for place, count in links.items() if place not in touched}).most_common(MOST_NEAR)}


def _reach(start: set[int], steps: Mapping[int, Counter[int]]) -> set[int]:
    seen = set(start)
    stack = list(start)
    while stack:
        for place in steps.get(stack.pop(), ()):
            if place not in seen:
                seen.add(place)
                stack.append(place)
    return seen
