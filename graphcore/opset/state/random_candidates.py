"""Classes drawn for losses that compare the true classes with a sample of all."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.kernels import float_attr, invalid, unimplemented
from graphcore.opset.numerics.philox import node_generator, words

_ATTRS: Final = "num_true:int >= 1, num_sampled:int >= 1, unique:bool, range_max:int >= 1, seed:int = 0, seed2:int = 0"
_RESULTS: Final = "(sampled_candidates:int64, true_expected_count:float, sampled_expected_count:float)"
_RESERVED: Final = 512
"""The blocks that a run reserves for each class, as TensorFlow does."""
_EXAMPLE: Final = Example(
    [np.array([[1], [4]], np.int64)], {"num_true": 1, "num_sampled": 3, "unique": True, "range_max": 7, "seed": 1, "seed2": 2}
)
_TOO_FEW: Final = Example(
    [np.array([[1]], np.int64)], {"num_true": 1, "num_sampled": 8, "unique": True, "range_max": 7, "seed": 1, "seed2": 2}
)


def _shape(c: InferenceContext) -> None:
    true_classes = c.with_rank(c.input(0), 2)
    c.with_value(c.dim(true_classes, 1), c.int_attr("num_true"))
    c.set_output(0, c.vector(c.int_attr("num_sampled")))
    c.set_output(1, c.matrix(c.dim(true_classes, 0), c.int_attr("num_true")))
    c.set_output(2, c.vector(c.int_attr("num_sampled")))


class _Sampler:
    """The traits, shapes and examples of all samplers."""

    draws = True
    stateful = True
    gradient = NO_GRADIENT
    shape = _shape
    examples = (_EXAMPLE,)
    failures = (_TOO_FEW,)


def _number(k: KernelContext, name: str) -> int:
    return int(str(k.attr(name)))


def _sampler(k: KernelContext, draw: Callable[[Any, Any], Any], probability: Callable[[Any], Any]) -> Kernel:
    """The kernel of a distribution.

    Args:
        k: the context.
        draw: makes classes of pairs of 32-bit numbers.
        probability: the probability of each class.
    """
    generator, xp = node_generator(k), k.xp
    count, most, columns = (_number(k, name) for name in ("num_sampled", "range_max", "num_true"))
    unique = k.attr("unique") is True

    def sample(true_classes: Any) -> Any:
        if unique and count > most:
            raise invalid(k, f"Sampler's range is too small: required {count} different classes of {most}")
        if true_classes.ndim != 2 or true_classes.shape[1] != columns:
            raise invalid(k, f"true_classes must be a matrix of {columns} columns, got shape {list(true_classes.shape)}")
        drawn, tries = drawn_classes(generator.reserve(count * _RESERVED))
        return drawn, expected(true_classes, tries), expected(drawn, tries)

    def drawn_classes(first: int) -> tuple[Any, int]:
        """The classes, and the number of draws until there were enough different ones."""
        tried = 4 * count if unique else count
        while True:
            pairs = words(xp, generator, first, 2 * tried).reshape(-1, 2)
            drawn = draw(pairs[:, 0], pairs[:, 1])
            if not unique:
                return drawn, count
            places = xp.sort(xp.unique(drawn, return_index=True)[1])
            if len(places) >= count:
                return drawn[places[:count]], int(places[count - 1]) + 1
            tried *= 2

    def expected(classes: Any, tries: int) -> Any:
        chance = probability(classes.astype(np.float64))
        often = chance * count if tries == count else -xp.expm1(tries * xp.log1p(-chance))
        return often.astype(np.float32)

    return sample


def _uniform(high: Any, low: Any) -> Any:
    """Uniform doubles in [0, 1) of pairs of 32-bit numbers."""
    fraction = ((high & np.uint64(0xFFFFF)) << np.uint64(32)) | low
    return (fraction | np.uint64(1023 << 52)).view(np.float64) - 1.0


@op
class LogUniformCandidateSampler(_Sampler):
    """Classes drawn with a probability that falls with their number: words sorted by frequency.

    true_classes: [batch, num_true]
    sampled_candidates: [num_sampled]
    true_expected_count: the number of times that each true class is expected, [batch, num_true]
    sampled_expected_count: the number of times that each sampled class is expected, [num_sampled]
    num_true: the number of true classes of an example.
    num_sampled: the number of classes to draw.
    unique: draw each class once at most.
    range_max: the number of classes.
    seed: with seed2 not both 0, every session gives the same classes.
    seed2: the second half of the seed.
    """

    signature = f"LogUniformCandidateSampler[{_ATTRS}](true_classes:int64) -> {_RESULTS}"

    def kernel(k: KernelContext) -> Kernel:
        xp = k.xp
        most = _number(k, "range_max")
        whole = math.log1p(most)

        def draw(high: Any, low: Any) -> Any:
            return (xp.exp(_uniform(high, low) * whole).astype(np.int64) - 1) % most

        return _sampler(k, draw, lambda classes: xp.log((classes + 2.0) / (classes + 1.0)) / whole)


@op
class UniformCandidateSampler(_Sampler):
    """Classes drawn with the same probability.

    true_classes: [batch, num_true]
    sampled_candidates: [num_sampled]
    true_expected_count: the number of times that each true class is expected, [batch, num_true]
    sampled_expected_count: the number of times that each sampled class is expected, [num_sampled]
    num_true: the number of true classes of an example.
    num_sampled: the number of classes to draw.
    unique: draw each class once at most.
    range_max: the number of classes.
    seed: with seed2 not both 0, every session gives the same classes.
    seed2: the second half of the seed.
    """

    signature = f"UniformCandidateSampler[{_ATTRS}](true_classes:int64) -> {_RESULTS}"

    def kernel(k: KernelContext) -> Kernel:
        most = _number(k, "range_max")

        def draw(low: Any, high: Any) -> Any:
            return ((low | (high << np.uint64(32))) % np.uint64(most)).astype(np.int64)

        return _sampler(k, draw, lambda classes: classes * 0.0 + 1.0 / most)


_UNIGRAMS: Final = "vocab_file:string = '', distortion:float = 1.0, num_reserved_ids:int = 0, num_shards:int >= 1 = 1, shard:int >= 0 = 0, unigrams:list(float) = []"


@op
class FixedUnigramCandidateSampler(_Sampler):
    """Classes drawn by given weights.

    true_classes: [batch, num_true]
    sampled_candidates: [num_sampled]
    true_expected_count: the number of times that each true class is expected, [batch, num_true]
    sampled_expected_count: the number of times that each sampled class is expected, [num_sampled]
    num_true: the number of true classes of an example.
    num_sampled: the number of classes to draw.
    unique: draw each class once at most.
    range_max: the number of classes.
    vocab_file: a file with a class in each line, its weight behind the last comma; unigrams are taken instead where they are given.
    distortion: the power of the weights that is taken.
    num_reserved_ids: the number of classes before the first one with a weight; they are not drawn.
    num_shards: the number of parts in which the classes are drawn.
    shard: the number of this part.
    unigrams: the weights.
    seed: with seed2 not both 0, every session gives the same classes.
    seed2: the second half of the seed.
    """

    signature = (
        f"FixedUnigramCandidateSampler[num_true:int >= 1, num_sampled:int >= 1, unique:bool, range_max:int >= 1, {_UNIGRAMS}, seed:int = 0, "
        f"seed2:int = 0](true_classes:int64) -> {_RESULTS}"
    )
    examples = (
        Example(
            [np.array([[1], [4]], np.int64)],
            {"num_true": 1, "num_sampled": 3, "unique": False, "range_max": 5, "unigrams": [1.0, 2.0, 3.0, 4.0, 5.0], "distortion": 0.75},
        ),
    )
    failures = (
        Example(
            [np.array([[1]], np.int64)],
            {"num_true": 1, "num_sampled": 8, "unique": True, "range_max": 5, "unigrams": [1.0, 2.0, 3.0, 4.0, 5.0]},
        ),
    )

    def kernel(k: KernelContext) -> Kernel:
        xp, weights = k.xp, _weights(k)
        ends = xp.asarray(np.cumsum(weights))
        total = float(ends[-1])
        chances = xp.asarray(weights / total)

        def draw(high: Any, low: Any) -> Any:
            return xp.minimum(xp.searchsorted(ends, _uniform(high, low) * total, "right"), len(weights) - 1).astype(np.int64)

        return _sampler(k, draw, lambda classes: chances[xp.clip(classes.astype(np.int64), 0, len(weights) - 1)])


def _weights(k: KernelContext) -> Any:
    """The weight of each class in this part, to the power of the distortion."""
    unigrams, most, reserved = k.attr("unigrams"), _number(k, "range_max"), _number(k, "num_reserved_ids")
    assert isinstance(unigrams, tuple)
    if not unigrams:
        raise unimplemented(k, "a file of weights is not read here: give them as unigrams")
    weights = np.concatenate([np.zeros(reserved), np.array(unigrams, np.float64) ** float_attr(k, "distortion")])
    if len(weights) != most:
        raise invalid(k, f"required range_max = {most} weights, the reserved ids included, got {len(weights)}")
    of_others = np.arange(most) % _number(k, "num_shards") != _number(k, "shard")
    return np.where(of_others, 0.0, weights)


@op
class ComputeAccidentalHits:
    """The true classes among sampled candidates, with weights that remove them from a sampled softmax.

    true_classes: [batch, num_true]
    sampled_candidates: [n]
    indices: [m], rows of true_classes
    ids: [m], places in sampled_candidates
    weights: [m], the lowest numbers
    num_true: the number of true classes of an example.
    seed: ignored.
    seed2: ignored.
    """

    signature = (
        "ComputeAccidentalHits[num_true:int, seed:int = 0, seed2:int = 0](true_classes:int64, sampled_candidates:int64) -> "
        "(indices:int32, ids:int64, weights:float)"
    )
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (Example([np.array([[1, 2], [3, 1]]), np.array([3, 5, 1, 1])], {"num_true": 2, "seed": 1}),)
    failures = (
        """
        classes = Const[dtype=int64, value=Tensor<type: int64 shape: [1,3] values: 1 2 4>]()
        sampled = Const[dtype=int64, value=Tensor<type: int64 shape: [2] values: 3 5>]()
        hidden = PlaceholderWithDefault[dtype=int64, shape=<unknown>](classes)
        it = ComputeAccidentalHits[num_true=2](hidden, sampled)
        """,
    )

    def shape(c: InferenceContext) -> None:
        c.with_rank(c.input(1), 1)
        c.with_value(c.dim(c.with_rank(c.input(0), 2), 1), c.int_attr("num_true"))
        for i in range(3):
            c.set_output(i, c.vector(c.unknown_dim()))

    def kernel(k: KernelContext) -> Kernel:
        columns = _number(k, "num_true")

        def hits(true_classes: Any, candidates: Any) -> Any:
            if true_classes.ndim != 2 or true_classes.shape[1] != columns or candidates.ndim != 1:
                raise invalid(
                    k, f"true_classes must be [batch, {columns}], and sampled_candidates a vector; got {list(true_classes.shape)}"
                )
            at: dict[int, int] = {candidate: i for i, candidate in enumerate(candidates.tolist())}
            hits = [(row, at[label]) for row, labels in enumerate(true_classes.tolist()) for label in labels if label in at]
            rows, ids = ([pair[i] for pair in hits] for i in (0, 1))
            return np.array(rows, np.int32), np.array(ids, np.int64), np.full(len(hits), -np.finfo(np.float32).max, np.float32)

        return hits
