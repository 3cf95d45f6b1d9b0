"""The choice of the first centers of k-means."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from graphcore import dtypes
from graphcore.api.branches import cond
from graphcore.api.loops import while_loop
from graphcore.graph import Tensor
from graphcore.shapes import Shape
from graphcore.tf1.arrays.layout import concat, expand_dims, identity, reshape, shape, stack
from graphcore.tf1.arrays.slices import gather
from graphcore.tf1.arrays.sorting import searchsorted
from graphcore.tf1.checks import assert_equal, assert_greater_equal, assert_positive
from graphcore.tf1.contrib.factorization.distances import COSINE_DISTANCE, half_squares, unit_rows
from graphcore.tf1.framework import constant, control_dependencies, convert_to_tensor
from graphcore.tf1.math.elementwise import add_n, cast, equal, log, matmul, maximum, minimum
from graphcore.tf1.math.reductions import argmin, cumsum, reduce_sum
from graphcore.tf1.random import random_uniform, stateless_uniform
from graphcore.tf1.variables.assigning import assign
from graphcore.tf1.variables.variables import Variable

RANDOM_INIT: Final = "random"
KMEANS_PLUS_PLUS_INIT: Final = "kmeans_plus_plus"
KMC2_INIT: Final = "kmc2"
_SEEDS: Final = 2**31 - 1


class Starts(msgspec.Struct, frozen=True):
    """The op that chooses centers, from one batch or, as far as that has too few points, several.

    Args:
        inputs: the points, in one tensor or several. [n, d] each
        num_clusters: the number of clusters, int32.
        initial_clusters: "random", "kmeans_plus_plus", a function of inputs and a number, or the centers.
        distance_metric: the distance; for the cosine distance the centers get norm 1.
        seed: of the choice; None for another one in each run.
        retries: the number of further points that k-means++ draws for each center; negative for about the logarithm of their number.
        centers: the variable of the centers.
        updated: the variable of their copy that each step updates; the same one if there is no copy.
        initialized: the variable that becomes true when all centers are chosen.
    """

    inputs: list[Tensor]
    num_clusters: Tensor
    initial_clusters: Any
    distance_metric: str
    seed: int | None
    retries: int
    centers: Variable
    updated: Variable
    initialized: Variable

    def op(self) -> Tensor:
        """Adds centers when it is run, as long as some are missing. -> initialized: bool, a scalar."""
        count = shape(self.centers)[0]
        remaining = self.num_clusters - count
        is_done = equal(remaining, 0)
        chosen = cond(is_done, self._kept, lambda: self._with_new_ones(count, remaining))
        others = chosen if self.updated is self.centers else cond(is_done, lambda: identity(self.updated), lambda: chosen)
        assigned = assign(self.centers, chosen, validate_shape=False)
        with control_dependencies(
            [assigned] if self.updated is self.centers else [assigned, assign(self.updated, others, validate_shape=False)]
        ):
            return assign(self.initialized, equal(self.num_clusters, shape(chosen)[0]))

    def _kept(self) -> Tensor:
        """The centers as they are."""
        with control_dependencies([assert_equal(self.initialized, True)]):
            return identity(self.centers)

    def _with_new_ones(self, count: Tensor, remaining: Tensor) -> Tensor:
        """The centers so far, and new ones."""
        with control_dependencies([assert_positive(remaining)]):
            new = self._new_ones(remaining)
            if self.distance_metric == COSINE_DISTANCE:
                new = unit_rows(new)
            joined: Tensor = cond(equal(count, 0), lambda: identity(new), lambda: concat([self.centers, new], 0))
            return joined

    def _new_ones(self, remaining: Tensor) -> Tensor:
        """As many centers as are missing; fewer if there are fewer points for a random choice."""
        if callable(self.initial_clusters):
            return convert_to_tensor(self.initial_clusters(self.inputs, remaining))
        if not isinstance(self.initial_clusters, str):
            with control_dependencies([assert_equal(remaining, shape(self.initial_clusters)[0])]):
                return identity(self.initial_clusters)
        count = add_n([shape(part)[0] for part in self.inputs])
        if self.initial_clusters == RANDOM_INIT:
            new_centers: Tensor = cond(count <= remaining, lambda: concat(self.inputs, 0), lambda: self._random(count, remaining))
            return new_centers
        with control_dependencies([assert_greater_equal(count, remaining)]):
            points = identity(self.inputs[0])
        if self.distance_metric == COSINE_DISTANCE:
            points = unit_rows(points)
        return spread(points, remaining, self.seed, self.retries)

    def _random(self, count: Tensor, remaining: Tensor) -> Tensor:
        """Points drawn with equal chances; one can be drawn twice."""
        drawn = random_uniform(reshape(remaining, [-1]), 0, cast(count, dtypes.int64), dtypes.int64, seed=self.seed)
        return gather(concat(self.inputs, 0), drawn)


def spread(points: Tensor, count: Tensor, seed: int | None, retries: int) -> Tensor:
    """Points drawn by k-means++. points: [n, d] -> y: [count, d].

    The first has equal chances, each further one chances in proportion to the squared distance from the nearest so far. Of several such draws the
    one counts after which the sum of these distances is least.

    Args:
        points: the points to choose from.
        count: the number of points to draw, int32.
        seed: of the draws; None for another one in each run.
        retries: the number of further draws for each point; negative for 2 plus the logarithm of `count`.
    """
    first_seed = random_uniform([], 0, _SEEDS, dtypes.int64) if seed is None else constant(seed, dtypes.int64)
    total = cast(shape(points)[0], dtypes.int64)
    tries = retries + 1 if retries >= 0 else 3 + cast(log(cast(count, dtypes.float32)), dtypes.int32)
    halves = half_squares(points)

    def distances(numbers: Tensor) -> Tensor:
        products = matmul(gather(points, numbers), points, transpose_b=True)
        return maximum(expand_dims(halves, 0) + expand_dims(gather(halves, numbers), 1) - products, 0.0)

    def draw(number: Tensor, chosen: Tensor, nearest: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        sums = cumsum(nearest)
        drawn = stateless_uniform(reshape(tries, [1]), stack([first_seed, number])) * sums[-1]
        candidates = minimum(searchsorted(sums, drawn, "right", dtypes.int64), total - 1)
        after = minimum(expand_dims(nearest, 0), distances(candidates))
        best = argmin(reduce_sum(after, 1), 0)
        return number + 1, concat([chosen, expand_dims(gather(candidates, best), 0)], 0), gather(after, best)

    first = stateless_uniform([1], stack([first_seed, constant(0, dtypes.int64)]), 0, total, dtypes.int64)
    _, chosen, _ = while_loop(
        lambda number, *_: number < cast(count, dtypes.int64),
        draw,
        [constant(1, dtypes.int64), first, distances(first)[0]],
        [Shape([]), Shape([None]), Shape([None])],
    )
    return gather(points, chosen)
