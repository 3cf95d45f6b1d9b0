"""Alignment of the computing nodes of two states of different ops."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final

from graphcore.difference.flow import Flow
from graphcore.difference.kinds import MOVING, WEIGHTY, likeness_of_shapes, sizes_of

MOST_CELLS: Final = 400_000
"""The pairs that are weighed for an alignment; longer sequences are aligned by equal kinds and sizes."""
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
        """Match: layers with weights first, then what is between them, then neighbours whose order differs."""
        self._align_gaps(lambda kind: kind in WEIGHTY)
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
        best = [[0.0] * (len(news) + 1)]
        weighed: list[list[float]] = []
        for old in olds:
            above, row, scores = best[-1], [0.0], [self.likeness(old, new) for new in news]
            for place, score in enumerate(scores):
                diagonal = above[place] + score if score > 0 else 0.0
                row.append(max(diagonal, above[place + 1], row[place]))
            best.append(row)
            weighed.append(scores)
        i, j = len(olds), len(news)
        steps = []
        while i and j:
            score = weighed[i - 1][j - 1]
            if score > 0 and best[i][j] == best[i - 1][j - 1] + score:
                steps.append((olds[i - 1], news[j - 1]))
                i, j = i - 1, j - 1
            elif best[i][j] == best[i - 1][j]:
                i -= 1
            else:
                j -= 1
        yield from reversed(steps)

    def likeness(self, old: str, new: str) -> float:
        """The evidence that two nodes are one; 0 for nodes of different kinds."""
        kind = self.a.kind(old)
        if kind != self.b.kind(new):
            return 0.0
        base = _BASE_OF_MOVING if kind in MOVING else _BASE[kind in WEIGHTY]
        score = base + likeness_of_shapes(self.a.state.nodes[old], self.b.state.nodes[new]) + 2 * _common_path(old, new)
        if kind in WEIGHTY:
            first, second = self._weight_sizes(0, self.a, old), self._weight_sizes(1, self.b, new)
            score += 2.0 if first[:1] == second[:1] else -1.5
        return max(score, 0.0)

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
