"""Alignment of the computing nodes of two states of different ops."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from graphcore.attrs import Array
from graphcore.difference.flow import Flow
from graphcore.difference.kinds import MOVING, WEIGHTY, likeness_of_sizes, sizes_of

MOST_CELLS: Final = 9_000_000
"""The pairs that are weighed for an alignment; longer sequences are aligned by equal kinds and sizes."""
_Facts = tuple[str, tuple[int, ...] | None, tuple[tuple[int, ...], ...]]
"""Kind, sizes and those of the first weight of a node."""
_BASE: Final = {True: 6.0, False: 2.0}
_BASE_OF_MOVING: Final = 0.5


class Aligner:
    """Pairs nodes of the same kind along the flow of data.

    Attributes:
        pairs: the name in the later state of each matched node.
        back: the inverse.
    """

    def __init__(self, a: Flow, b: Flow, pairs: dict[str, str]) -> None:
        self.a, self.b = a, b
        self.pairs = pairs
        self.back = {new: old for old, new in pairs.items()}
        self._places_a = {name: place for place, name in enumerate(a.order)}
        self._places_b = {name: place for place, name in enumerate(b.order)}
        self._weights: dict[tuple[int, str], list[tuple[int, ...]]] = {}

    def run(self) -> None:
        """Match: layers with weights first, then their neighbours, and what is between them in its order."""
        self._align_gaps(lambda kind: kind in WEIGHTY)
        self._follow_neighbours()
        self._align_gaps(lambda _: True)
        self._follow_neighbours()

    def pair(self, old: str, new: str) -> None:
        """Match two nodes."""
        self.pairs[old] = new
        self.back[new] = old

    # ---- along the order ------------------------------------------------------------------------------------------------

    def _align_gaps(self, takes: Callable[[str], bool]) -> None:
        for olds, news in self._gaps():
            left = [name for name in olds if name not in self.pairs and name not in self.a.passing and takes(self.a.kind(name))]
            right = [name for name in news if name not in self.back and name not in self.b.passing and takes(self.b.kind(name))]
            if left and right:
                for old, new in self._aligned(left, right):
                    self.pair(old, new)

    def _gaps(self) -> Iterator[tuple[list[str], list[str]]]:
        """The sequences between nodes matched in the same order."""
        matched = [
            (self._places_a[old], self._places_b[new]) for old, new in self.pairs.items() if old in self._places_a and new in self._places_b
        ]
        fixed = [(-1, -1), *_rising(sorted(matched)), (len(self.a.order), len(self.b.order))]
        for (first_a, first_b), (last_a, last_b) in pairwise(fixed):
            yield self.a.order[first_a + 1 : last_a], self.b.order[first_b + 1 : last_b]

    def _aligned(self, olds: Sequence[str], news: Sequence[str]) -> Iterator[tuple[str, str]]:
        if len(olds) * len(news) > MOST_CELLS:
            keys_a = [(self.a.kind(name), _unordered(self.a, name)) for name in olds]
            keys_b = [(self.b.kind(name), _unordered(self.b, name)) for name in news]
            for block in SequenceMatcher(None, keys_a, keys_b, autojunk=False).get_matching_blocks():
                yield from zip(olds[block.a : block.a + block.size], news[block.b : block.b + block.size], strict=True)
            return
        best = np.zeros((len(olds) + 1, len(news) + 1), np.float32)
        scores = np.empty((len(olds), len(news)), np.float32)
        for place, likenesses in enumerate(self._likenesses(olds, news)):
            scores[place] = likenesses
            row, above = scores[place], best[place]
            np.maximum.accumulate(np.maximum(above[1:], np.where(row > 0, above[:-1] + row, 0.0)), out=best[place + 1, 1:])
        i, j = len(olds), len(news)
        steps = []
        while i and j:
            score = scores[i - 1, j - 1]
            if score > 0 and best[i, j] == best[i - 1, j - 1] + score:
                steps.append((olds[i - 1], news[j - 1]))
                i, j = i - 1, j - 1
            elif best[i, j] == best[i - 1, j]:
                i -= 1
            else:
                j -= 1
        yield from reversed(steps)

    def _likenesses(self, olds: Sequence[str], news: Sequence[str]) -> Iterator[Array]:
        """For each earlier node the evidence that it is each of the later ones, as `likeness` has it.

        Nodes of equal kind and sizes are weighed once; the paths are compared part by part.
        """
        firsts, seconds = _classes(self._facts(0, self.a, olds)), _classes(self._facts(1, self.b, news))
        table = np.array([[self._likeness_of_facts(first, second) for second in seconds.facts] for first in firsts.facts])
        paths = _Paths(olds, news)
        for place, number in enumerate(firsts.numbers):
            row = table[number][seconds.numbers]
            yield np.where(np.isnan(row), 0.0, np.maximum(row + 2 * paths.common(place), 0.0))

    def _facts(self, side: int, flow: Flow, names: Sequence[str]) -> list[_Facts]:
        return [self._facts_of(side, flow, name) for name in names]

    def _facts_of(self, side: int, flow: Flow, name: str) -> _Facts:
        kind = flow.kind(name)
        weights = self._weight_sizes(side, flow, name)[:1] if kind in WEIGHTY else []
        return kind, sizes_of(flow.state.nodes[name]), tuple(weights)

    def likeness(self, old: str, new: str) -> float:
        """The evidence that two nodes are one; 0 for nodes of different kinds."""
        score = self._likeness_of_facts(self._facts_of(0, self.a, old), self._facts_of(1, self.b, new))
        return 0.0 if math.isnan(score) else max(score + 2 * _common_path(old, new), 0.0)

    @staticmethod
    def _likeness_of_facts(first: _Facts, second: _Facts) -> float:
        """The evidence without that of names, NaN for different kinds."""
        kind = first[0]
        if kind != second[0]:
            return math.nan
        score = (_BASE_OF_MOVING if kind in MOVING else _BASE[kind in WEIGHTY]) + likeness_of_sizes(first[1], second[1])
        if kind in WEIGHTY:
            score += 2.0 if first[2] == second[2] else -1.5
        return score

    def _weight_sizes(self, side: int, flow: Flow, name: str) -> list[tuple[int, ...]]:
        sizes = self._weights.get((side, name))
        if sizes is None:
            sizes = self._weights[side, name] = flow.weight_sizes(name)
        return sizes

    # ---- from neighbour to neighbour -----------------------------------------------------------------------------------

    def _follow_neighbours(self) -> None:
        waiting = deque(self.pairs.items())
        while waiting:
            old, new = waiting.popleft()
            for olds, news in (
                (self.a.main_consumers.get(old, []), self.b.main_consumers.get(new, [])),
                (self.a.main_producers(old), self.b.main_producers(new)),
            ):
                left = [name for name in olds if name not in self.pairs and self.a.is_live(name)]
                right = [name for name in news if name not in self.back and self.b.is_live(name)]
                candidates = [(self.likeness(x, y), x, y) for x in left[:16] for y in right[:16]]
                for score, x, y in sorted(candidates, key=lambda item: -item[0]):
                    if score > _BASE_OF_MOVING and x not in self.pairs and y not in self.back:
                        self.pair(x, y)
                        waiting.append((x, y))


class _Classes(NamedTuple):
    """The different facts of some nodes, and for each node the number of its own."""

    facts: list[_Facts]
    numbers: Array


def _classes(facts: Sequence[_Facts]) -> _Classes:
    numbers: dict[_Facts, int] = {}
    places = [numbers.setdefault(fact, len(numbers)) for fact in facts]
    return _Classes(list(numbers), np.array(places))


class _Paths:
    """The paths of two sequences of nodes, compared as `_common_path` does, with their parts as numbers."""

    def __init__(self, olds: Sequence[str], news: Sequence[str]) -> None:
        numbers: dict[str, int] = {}
        self._olds, self._news = [
            [[numbers.setdefault(part, len(numbers)) for part in name.split("/")] for name in names] for names in (olds, news)
        ]
        self._lengths = np.array([len(parts) for parts in self._news])
        depth = max(map(len, self._news))
        self._columns = np.array([parts + [-1] * (depth - len(parts)) for parts in self._news]).T

    def common(self, place: int) -> Array:
        """For each later node the part of its path that agrees with that of an earlier one."""
        parts = self._olds[place]
        same, all_so_far = np.zeros(len(self._news)), np.ones(len(self._news), bool)
        for part, column in zip(parts, self._columns, strict=False):
            all_so_far &= column == part
            if not all_so_far.any():
                break
            same += all_so_far
        shares: Array = same / np.maximum(self._lengths, len(parts))
        return shares


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of some pairs, sorted by their first numbers, in which the second ones rise too."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, (_, value) in enumerate(pairs):
        place = bisect_left(tails, value)
        before.append(ends[place - 1] if place else -1)
        if place == len(tails):
            tails.append(value)
            ends.append(number)
        else:
            tails[place], ends[place] = value, number
    chain = []
    at = ends[-1] if ends else -1
    while at >= 0:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]


def _common_path(old: str, new: str) -> float:
    """The part of two names that agrees, from the outermost scope on."""
    first, second = old.split("/"), new.split("/")
    same = 0
    while same < min(len(first), len(second)) and first[same] == second[same]:
        same += 1
    return same / max(len(first), len(second))


def _unordered(flow: Flow, name: str) -> tuple[int, ...] | None:
    sizes = sizes_of(flow.state.nodes[name])
    return None if sizes is None else tuple(sorted(sizes))
