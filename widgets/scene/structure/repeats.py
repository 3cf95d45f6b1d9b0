"""Repeats in a sequence: the same pattern several times in a row, and near-alike neighbours."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from widgets.scene.structure.alike import OTHER, difference, near
from widgets.scene.structure.decompose import Span
from widgets.scene.structure.items import Dims
from widgets.scene.structure.naming import layer_of

LONGEST: Final = 256
"""The longest pattern, in elements."""
LEAST: Final = 4
"""Fewer ops than this in all instances together are not worth a box of their own."""
FEW_LONG: Final = 1000
"""A stretch of at least so many elements is not looked at again for multiples of its period."""
SAME_KERNELS: Final = 5 / 6
"""Instances with at least this share of equal kernels may pass on another width."""
SEED: Final = 3
"""An element of this many ops may be near-alike to its neighbours by itself."""


class Kernel(NamedTuple):
    """A product or convolution.

    `is_pointwise` and `width`, the size of its last dimension, are None if they are unknown.
    """

    op: str
    is_pointwise: bool | None = None
    strides: tuple[int, ...] = ()
    width: int | None = None
    is_padded: bool = True


class Element(NamedTuple):
    """One element of a sequence.

    Attributes:
        symbol: the number of its structure.
        ops: its ops.
        shape: the shape that it passes on.
        kernels: its products and convolutions.
    """

    symbol: int
    ops: Counter[str]
    shape: Dims
    kernels: tuple[Kernel, ...] = ()


class Run(NamedTuple):
    """Instances in a row, each an interval of the sequence. A single one is much like the instances of a run beside it.

    The first may as well begin at any place of `spare`, or at its end.
    """

    instances: list[Span]
    spare: Span = Span(0, 0)

    @property
    def span(self) -> Span:
        """The interval of all instances."""
        return Span(self.instances[0].start, self.instances[-1].stop)


@dataclass(frozen=True)
class _Sequence:
    """A sequence that equals others of the same elements."""

    elements: Sequence[Element] = field(compare=False)
    key: tuple[object, ...]


def find_runs(sequence: Sequence[Element]) -> list[Run]:
    """The repeats in a sequence, in order, without overlap, and single ones much like those beside them."""
    key = tuple([(each.symbol, frozenset(each.ops.items()), each.shape, each.kernels) for each in sequence])
    return list(_find_runs(_Sequence(sequence, key)))


@lru_cache(maxsize=64)  # a large model has many scopes of one structure
def _find_runs(source: _Sequence) -> tuple[Run, ...]:
    sequence = source.elements
    taken = [False] * len(sequence)
    clear, weak = _candidates(sequence)
    exact = _chosen(sequence, clear, taken)
    found: list[Run] = []
    for place, run in enumerate(exact):
        exact[place] = _best_shift(sequence, run, [other.span for other in exact if other is not run])
    for most in (OTHER / 4, OTHER):  # what is most alike first
        for place, run in enumerate(exact):
            exact[place] = _extended(sequence, run, [other.span for other in exact if other is not run], most)
    found = exact[:]
    for run in exact:
        taken[run.span.start : run.span.stop] = [True] * run.span.size
    for run in _seeds(sequence, taken):
        others = [other.span for other in found]
        if not any(_overlap(run.span, other) for other in others):
            longer = _extended(sequence, run, others, OTHER)
            if len(longer.instances) > 1:
                found.append(longer)
    found = _worthwhile(sequence, found)
    for run in found[:]:
        for step in (-1, 1):
            model, edge = run.instances[-1], run.span.stop if step > 0 else run.span.start
            while (single := _single(sequence, model, edge, [each.span for each in found], step)) is not None:
                found.append(Run([single]))
                edge = single.stop if step > 0 else single.start
    for run in found:
        taken[run.span.start : run.span.stop] = [True] * run.span.size
    return tuple(sorted([*found, *_worthwhile(sequence, _chosen(sequence, weak, taken))], key=lambda run: run.span))


def _worthwhile(sequence: Sequence[Element], runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if sum(sequence[place].ops.total() for place in range(*run.span)) >= LEAST]


def _best_shift(sequence: Sequence[Element], run: Run, others: Sequence[Span]) -> Run:
    """The same pattern from the element on with which it has most instances, near-alike ones included."""
    choices = [each for each in _shifted(run) if each is run or not any(_overlap(each.span, other) for other in others)]
    return max(choices, key=lambda each: _quality(sequence, _extended(sequence, each, others, OTHER))) if len(choices) > 1 else run


def _quality(sequence: Sequence[Element], run: Run) -> tuple[int, bool, float, bool]:
    """A rank: instances, true for separable convolutions, likeness, true for a telling first element."""
    layers = [layer_of(kernel.op) for kernel in _kernels(sequence, run.instances[0])]
    first = sequence[run.instances[0].start]
    model = ops_of(sequence, run.instances[len(run.instances) // 2])
    likeness = -sum(difference(model, ops_of(sequence, each)) for each in run.instances)
    begins = bool(first.kernels) or first.ops.total() >= SEED
    return len(run.instances), layers == ["depthwise convolution", "convolution"], round(likeness, 3), begins


def _shifted(run: Run) -> list[Run]:
    """The run, and the same pattern from other elements of its stretch on; the first is preferred."""
    period = run.instances[0].size
    shifts = [run.spare.start - run.span.start + step for step in range(run.spare.size + 1)] if 0 < run.spare.size < LONGEST else []
    moved = [Run([Span(each.start + shift, each.stop + shift) for each in run.instances], run.spare) for shift in shifts if shift]
    return [run, *moved] if period > 1 else [run]


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
    numbers: dict[Dims, int] = {}
    numbered = np.array([numbers.setdefault(element.shape, len(numbers)) for element in sequence], dtype=np.int64)
    known = [0, *accumulate(element.shape is not None for element in sequence)]
    weights = [0, *accumulate(element.ops.total() for element in sequence)]
    large = [0, *accumulate(element.ops.total() >= SEED for element in sequence)]
    clear: list[_Candidate] = []
    weak: list[_Candidate] = []
    long: list[tuple[int, int, int]] = []
    for period in range(1, min(LONGEST, len(sequence) // 2) + 1):
        equal: npt.NDArray[np.bool_] = symbols[period:] == symbols[:-period]
        if not equal.any():
            continue
        others: list[int] = np.flatnonzero(numbered[period:] != numbered[:-period]).tolist()
        for start, length in _stretches(equal, period):
            if any(period % short == 0 and begin <= start and start + length + period <= end for begin, end, short in long):
                continue  # the same pattern several times over
            if length >= FEW_LONG:
                long.append((start, start + length + period, period))
            for most in (0, 1):
                for first, many in _same_shapes(sequence, others, known, Span(start, start + length), period, most):
                    count = many // period + 1
                    if many < period or (count == 2 and weights[first + period] - weights[first] < 2):
                        continue
                    rank = period if most else -count * period
                    if count > 2 or large[first + period] > large[first]:
                        clear.append((bool(most), rank, period, first, many + period))
                    elif not most or _is_pair(sequence, first, period):
                        weak.append((bool(most), rank, period, first, many + period))
    return sorted(clear), sorted(weak)


def _chosen(sequence: Sequence[Element], candidates: Sequence[_Candidate], taken: list[bool]) -> list[Run]:
    """The runs of the best candidates that do not overlap others; marks them in `taken`."""
    runs: list[Run] = []
    for _, _, period, start, length in candidates:
        stop = start + length
        if any(taken[start:stop]):
            continue
        first = _phase(sequence, start, period, length % period)
        spare = Span(start, start + length % period)
        run = Run([Span(place, place + period) for place in range(first, first + length - length % period, period)], spare)
        taken[run.span.start : run.span.stop] = [True] * run.span.size
        runs.append(run)
    return runs


def _stretches(equal: npt.NDArray[np.bool_], least: int) -> list[tuple[int, int]]:
    """Start and length of each stretch of at least so many true values."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], equal.astype(np.int8), [0]))))
    starts, stops = edges[::2], edges[1::2]
    return [(int(start), int(stop - start)) for start, stop in zip(starts, stops, strict=True) if stop - start >= least]


def _same_shapes(
    sequence: Sequence[Element], others: Sequence[int], known: Sequence[int], stretch: Span, period: int, most: int
) -> list[tuple[int, int]]:
    """Start and length of the parts of a stretch where shapes are similar to those a period later.

    Unknown shapes do not count as long as each period has an equal shape beside them.

    Args:
        most: the most dimensions that may differ.
        others: the places with another shape than a period later, in order.
        known: the number of elements before each place whose shape has a known rank.
    """
    parts: list[tuple[int, int]] = []
    first = since = stretch.start
    before = first - 1
    for place in others[bisect_left(others, stretch.start) : bisect_left(others, stretch.stop)]:
        if known[place] > known[before + 1]:
            since = place  # there are equal shapes before this place
        before = place
        ours, theirs = sequence[place].shape, sequence[place + period].shape
        counts = place - since + 1 >= period or not (_is_unknown(ours) and _is_unknown(theirs))
        if counts and not _similar(ours, theirs, most):
            parts.append((first, place - first))
            first = since = place + 1
    parts.append((first, stretch.stop - first))
    return [part for part in parts if part[1] > 0]


def _similar(ours: Dims, theirs: Dims, most: int) -> bool:
    if ours is None or theirs is None or _is_unknown(ours) != _is_unknown(theirs):
        return True
    differing = [place for place, (a, b) in enumerate(zip(ours, theirs, strict=False)) if None not in (a, b) and a != b]
    sizes = len(differing) + (_is_unknown(ours) and differing[:1] == [0])  # an area is the height and the width
    return len(ours) == len(theirs) and sizes <= most


def _is_pair(sequence: Sequence[Element], first: int, period: int) -> bool:
    """True iff shapes are unknown, and the convolutions of two periods have the same strides and padding."""
    halves = [_kernels(sequence, Span(start, start + period)) for start in (first, first + period)]
    ours, theirs = [[(kernel.strides, kernel.is_padded) for kernel in half] for half in halves]
    return ours == theirs and any(_is_unknown(element.shape) for element in sequence[first : first + period])


def _is_unknown(shape: Dims) -> bool:
    return bool(shape) and any(size is not None and size < 0 for size in shape or ())


def _phase(sequence: Sequence[Element], start: int, period: int, spare: int) -> int:
    """The start of the first instance: the place with the largest element, or else with a kernel."""
    places = range(start, start + spare + 1)
    return max(places, key=lambda place: (sequence[place].ops.total(), len(sequence[place].kernels), -place)) if period > 1 else start


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


class _Model(NamedTuple):
    """Ops and kernels of an instance to compare others with, and the shapes that all instances pass on."""

    ops: Counter[str]
    kernels: Sequence[Kernel]
    shapes: Sequence[Dims]


def _extended(sequence: Sequence[Element], run: Run, others: Sequence[Span], most: float) -> Run:
    """The run with near-alike neighbours before and after it, as long as they pass on such a shape.

    Args:
        most: the greatest share of other ops.
    """
    instances = list(run.instances)
    first = instances[0]
    model = _Model(ops_of(sequence, first), _kernels(sequence, first), [passed_on(sequence, each) for each in instances])
    lower = max((span.stop for span in others if span.stop <= first.start), default=0)
    upper = min((span.start for span in others if span.start >= instances[-1].stop), default=len(sequence))
    while (window := _best(sequence, model, instances[0].start, lower, -1, most)) is not None:
        instances.insert(0, window)
    while (window := _best(sequence, model, instances[-1].stop, upper, 1, most)) is not None:
        instances.append(window)
    return Run(instances, run.spare)


def _single(sequence: Sequence[Element], model: Span, edge: int, others: Sequence[Span], step: int) -> Span | None:
    """The window beside `edge` that is a stage of one block like the model; None if there is none.

    It is near-alike, but passes on another shape, or has only the later kernels of the model.
    """
    kernels, ops = _kernels(sequence, model), ops_of(sequence, model)
    found: tuple[int, float, Span] | None = None
    total: Counter[str] = Counter()
    place = edge - (step < 0)
    while 0 <= place < len(sequence) and total.total() <= 1.25 * ops.total():
        span = Span(place, edge) if step < 0 else Span(edge, place + 1)
        if any(_overlap(span, other) for other in others):
            break
        total += sequence[place].ops
        rank = -len(_kernels(sequence, span)), difference(ops, total)
        begins = sequence[span.start].kernels or sequence[span.start].ops.total() > 1
        if begins and _continues(kernels, ops, _kernels(sequence, span), total) and (found is None or rank < found[:2]):
            found = *rank, span
        place += step
    return None if found is None else found[2]


def _continues(kernels: Sequence[Kernel], ops: Counter[str], ours: Sequence[Kernel], total: Counter[str]) -> bool:
    """True iff these are all kernels with near-alike ops, or at least the later half with few others."""
    if len(ours) < max(2, len(kernels) / 2) or len(ours) > len(kernels):
        return False
    theirs = kernels[len(kernels) - len(ours) :]
    if any(a[:2] != b[:2] for a, b in zip(ours, theirs, strict=True)):
        return False
    if len(ours) == len(kernels):
        return ours[0].strides == theirs[0].strides and near(ops, total)
    return (total - ops).total() <= OTHER * total.total()


def _kernels(sequence: Sequence[Element], span: Span) -> list[Kernel]:
    return [kernel for place in range(*span) for kernel in sequence[place].kernels]


def _best(sequence: Sequence[Element], model: _Model, edge: int, limit: int, step: int, most: float) -> Span | None:
    """The window beside `edge` that is most like the model; None if none is near-alike."""
    total: Counter[str] = Counter()
    found: tuple[float, Span] | None = None
    place = edge - (step < 0)
    while (place >= limit if step < 0 else place < limit) and total.total() <= 1.25 * model.ops.total():
        total += sequence[place].ops
        span = Span(place, edge) if step < 0 else Span(edge, place + 1)
        share = difference(model.ops, total)
        if share <= most + 1e-9 and (found is None or share < found[0]) and _joins(sequence, model, span):
            found = share, span
        place += step
    return None if found is None else found[1]


def _joins(sequence: Sequence[Element], model: _Model, span: Span) -> bool:
    """True iff an interval has all kernels of the model, and passes on such a shape.

    With nearly the same kernels it may pass on another width.
    """
    kernels = _kernels(sequence, span)
    if Counter(each.op for each in model.kernels) - Counter(each.op for each in kernels):
        return False
    shape = passed_on(sequence, span)
    first = model.shapes[0]
    if shape is None or None in model.shapes or any(len(each or ()) != len(shape) for each in model.shapes):
        return shape == first
    last = len(shape) - 1
    fixed = [place for place in range(len(shape)) if len({(each or ())[place] for each in model.shapes}) == 1]
    differing = [place for place in fixed if shape[place] != (first or ())[place]]
    if not differing:
        return last in fixed or _same_kernels(kernels, model.kernels)
    return differing == [last] and all((each.width or 0) > 0 for each in kernels) and _same_kernels(kernels, model.kernels)


def _same_kernels(ours: Sequence[Kernel], theirs: Sequence[Kernel]) -> bool:
    """True iff nearly all kernels have the same strides, and the same width if it is known."""
    common = Counter(map(_key, ours)) & Counter(map(_key, theirs))
    return common.total() >= SAME_KERNELS * max(len(ours), len(theirs))


def _key(kernel: Kernel) -> tuple[str, tuple[int, ...], int | None]:
    return kernel.op, kernel.strides, kernel.width if (kernel.width or 0) > 0 else None


def _overlap(ours: Span, theirs: Span) -> bool:
    return ours.start < theirs.stop and theirs.start < ours.stop
