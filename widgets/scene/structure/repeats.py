"""Repeats in a sequence: the same pattern several times in a row, and near-alike neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from widgets.scene.structure.alike import difference, near
from widgets.scene.structure.decompose import Span
from widgets.scene.structure.items import Dims

LONGEST: Final = 256
"""The longest pattern, in elements."""
LEAST: Final = 4
"""Fewer ops than this in all instances together are not worth a box of their own."""
FEW_LONG: Final = 1000
"""A stretch of at least so many elements is not looked at again for multiples of its period."""
SEED: Final = 3
"""An element of this many ops may be near-alike to its neighbours by itself."""


class Element(NamedTuple):
    """One element of a sequence: its structure's number, its ops, and the shape that it passes on."""

    symbol: int
    ops: Counter[str]
    shape: Dims


class Run(NamedTuple):
    """Instances in a row, each an interval of the sequence."""

    instances: list[Span]

    @property
    def span(self) -> Span:
        """The interval of all instances."""
        return Span(self.instances[0].start, self.instances[-1].stop)


def find_runs(sequence: Sequence[Element]) -> list[Run]:
    """The repeats in a sequence, in order, without overlap. A run has at least two instances."""
    taken = [False] * len(sequence)
    clear, weak = _candidates(sequence)
    exact = _chosen(sequence, clear, taken)
    found: list[Run] = []
    for run in sorted([*exact, *_seeds(sequence, taken)], key=lambda each: (len(each.instances) == 1, -each.span.size)):
        if not any(_overlap(run.span, other.span) for other in found):
            longer = _extended(sequence, run, [other.span for other in (*found, *exact) if other is not run])
            if len(longer.instances) > 1:
                found.append(longer)
    for run in found:
        taken[run.span.start : run.span.stop] = [True] * run.span.size
    found.extend(_chosen(sequence, weak, taken))
    found.sort(key=lambda run: run.span)
    return [run for run in found if sum(sequence[place].ops.total() for place in range(*run.span)) >= LEAST]


def passed_on(sequence: Sequence[Element], span: Span) -> Dims:
    """The shape that an interval passes on."""
    return sequence[span.stop - 1].shape


def ops_of(sequence: Sequence[Element], span: Span) -> Counter[str]:
    """The ops of an interval."""
    total: Counter[str] = Counter()
    for place in range(*span):
        total += sequence[place].ops
    return total


_Candidate = tuple[bool, int, int, int, int]
"""Rank (shapes differ, then period or coverage), period, start and length of a stretch of equal patterns."""


def _candidates(sequence: Sequence[Element]) -> tuple[list[_Candidate], list[_Candidate]]:
    """Stretches of equal patterns, the best first: clear ones, and short chains that occur just twice.

    Patterns that pass on the same shapes go first, by the elements that they cover; then others, the shortest pattern first.
    """
    symbols = np.array([element.symbol for element in sequence], dtype=np.int64)
    shapes = [element.shape for element in sequence]
    weights = [0, *accumulate(element.ops.total() for element in sequence)]
    large = [0, *accumulate(element.ops.total() >= SEED for element in sequence)]
    clear: list[_Candidate] = []
    weak: list[_Candidate] = []
    long: list[tuple[int, int, int]] = []
    for period in range(1, min(LONGEST, len(sequence) // 2) + 1):
        equal: npt.NDArray[np.bool_] = symbols[period:] == symbols[:-period]
        for start, length in _stretches(equal, period):
            if any(period % short == 0 and begin <= start and start + length + period <= end for begin, end, short in long):
                continue  # the same pattern several times over
            if length >= FEW_LONG:
                long.append((start, start + length + period, period))
            for most in (0, 1):
                for first, many in _same_shapes(shapes, start, length, period, most):
                    count = many // period + 1
                    if many < period or (count == 2 and weights[first + period] - weights[first] < 2):
                        continue
                    rank = period if most else -count * period
                    if count > 2 or large[first + period] > large[first]:
                        clear.append((bool(most), rank, period, first, many + period))
                    elif not most:
                        weak.append((False, rank, period, first, many + period))
    return sorted(clear), sorted(weak)


def _chosen(sequence: Sequence[Element], candidates: Sequence[_Candidate], taken: list[bool]) -> list[Run]:
    """The runs of the best candidates that do not overlap others; marks them in `taken`."""
    runs: list[Run] = []
    for _, _, period, start, length in candidates:
        stop = start + length
        if any(taken[start:stop]):
            continue
        first = _phase(sequence, start, period, length % period)
        run = Run([Span(place, place + period) for place in range(first, stop - period + 1, period)])
        taken[run.span.start : run.span.stop] = [True] * run.span.size
        runs.append(run)
    return runs


def _stretches(equal: npt.NDArray[np.bool_], least: int) -> list[tuple[int, int]]:
    """Start and length of each stretch of at least so many true values."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], equal.astype(np.int8), [0]))))
    starts, stops = edges[::2], edges[1::2]
    return [(int(start), int(stop - start)) for start, stop in zip(starts, stops, strict=True) if stop - start >= least]


def _same_shapes(shapes: Sequence[Dims], start: int, length: int, period: int, most: int) -> list[tuple[int, int]]:
    """The parts of a stretch where shapes differ in at most `most` dimensions from those a period before."""
    parts: list[tuple[int, int]] = []
    first = start
    for place in range(start, start + length):
        if not _similar(shapes[place], shapes[place + period], most):
            parts.append((first, place - first))
            first = place + 1
    parts.append((first, start + length - first))
    return [part for part in parts if part[1] > 0]


def _similar(ours: Dims, theirs: Dims, most: int) -> bool:
    if ours is None or theirs is None:
        return True
    return len(ours) == len(theirs) and sum(a != b for a, b in zip(ours, theirs, strict=True)) <= most


def _phase(sequence: Sequence[Element], start: int, period: int, spare: int) -> int:
    """The start of the first instance: of the possible ones that with the largest element."""
    return max(range(start, start + spare + 1), key=lambda place: (sequence[place].ops.total(), -place)) if period > 1 else start


def _seeds(sequence: Sequence[Element], taken: Sequence[bool]) -> list[Run]:
    """Large elements that are in no run, with the small ones after them."""
    seeds: list[Run] = []
    for place, element in enumerate(sequence):
        if taken[place] or element.ops.total() < SEED:
            continue
        stop = place + 1
        while stop < len(sequence) and stop < place + 3 and not taken[stop] and sequence[stop].ops.total() < SEED:
            stop += 1
        seeds.extend(Run([Span(place, end)]) for end in range(place + 1, stop + 1))
    return seeds


def _extended(sequence: Sequence[Element], run: Run, others: Sequence[Span]) -> Run:
    """The run with near-alike neighbours before and after it, as long as they pass on the same shape."""
    instances = list(run.instances)
    model = ops_of(sequence, instances[0])
    shape = passed_on(sequence, instances[0])
    lower = max((span.stop for span in others if span.stop <= instances[0].start), default=0)
    upper = min((span.start for span in others if span.start >= instances[-1].stop), default=len(sequence))
    while (window := _best(sequence, model, shape, instances[0].start, lower, -1)) is not None:
        instances.insert(0, window)
    while (window := _best(sequence, model, shape, instances[-1].stop, upper, 1)) is not None:
        instances.append(window)
    return Run(instances)


def _best(sequence: Sequence[Element], model: Counter[str], shape: Dims, edge: int, limit: int, step: int) -> Span | None:
    """The window beside `edge` that is most like the model; None if none is near-alike."""
    total: Counter[str] = Counter()
    found: tuple[float, Span] | None = None
    place = edge - (step < 0)
    while (place >= limit if step < 0 else place < limit) and total.total() <= 1.25 * model.total():
        total += sequence[place].ops
        span = Span(place, edge) if step < 0 else Span(edge, place + 1)
        share = difference(model, total)
        if near(model, total) and passed_on(sequence, span) == shape and (found is None or share < found[0]):
            found = share, span
        place += step
    return None if found is None else found[1]


def _overlap(ours: Span, theirs: Span) -> bool:
    return ours.start < theirs.stop and theirs.start < ours.stop
