"""`tf.contrib.factorization.KMeans`: the graph that finds clusters of points by k-means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from graphcore import dtypes
from graphcore.api.branches import cond
from graphcore.errors import InvalidArgumentError, UnimplementedError
from graphcore.graph import Node, Tensor, get_default_graph
from graphcore.tf1.arrays.layout import expand_dims, identity, ones_like, shape, size, zeros_like
from graphcore.tf1.arrays.slices import gather
from graphcore.tf1.calls import apply_one
from graphcore.tf1.contrib.factorization.distances import COSINE_DISTANCE, SQUARED_EUCLIDEAN_DISTANCE, all_distances, nearest, unit_rows
from graphcore.tf1.contrib.factorization.starts import KMC2_INIT, KMEANS_PLUS_PLUS_INIT, RANDOM_INIT, Starts
from graphcore.tf1.framework import control_dependencies, convert_to_tensor, group, no_op, ones, placeholder_with_default, zeros
from graphcore.tf1.math.elementwise import add_n, cast
from graphcore.tf1.random import get_seed
from graphcore.tf1.variables.assigning import assign, assign_sub, scatter_add
from graphcore.tf1.variables.variables import Variable

_STARTS: Final = (RANDOM_INIT, KMEANS_PLUS_PLUS_INIT)
_METRICS: Final = (SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE)
_EPSILON: Final = 1e-6
"""TensorFlow's addend to the number of points of a cluster, against a division by 0."""


class KMeans:
    """The graph that finds clusters of points: of all points at once, or of mini-batches.

    With mini-batches a cluster of n points so far, at x, moves by `(sum of its k new points - k x) / (n + k)`.

    Args:
        inputs: the points, in one tensor or a list of them. [n, d] float32 each
        num_clusters: the number of clusters; without effect if `initial_clusters` are the centers.
        initial_clusters: the first centers: "random" points, "kmeans_plus_plus", a function that takes the list of inputs and a number and
            returns at most so many centers, or the centers. [num_clusters, d]
        distance_metric: "squared_euclidean", or "cosine", which is that of points and centers of norm 1.
        use_mini_batch: learn from a part of the points in each step.
        mini_batch_steps_per_iteration: the number of steps with mini-batches after which the distances are measured from the new centers.
        random_seed: of the choice of the first centers.
        kmeans_plus_plus_num_retries: the number of further points that k-means++ draws for each center, of which the best one counts; negative
            for 2 plus the logarithm of the number of centers.
        kmc2_chain_length: without effect; the start "kmc2" is not available.

    Raises:
        InvalidArgumentError: there is no such start or distance, or an input is not float32.
        UnimplementedError: the start is "kmc2".
    """

    def __init__(
        self,
        inputs: Any,
        num_clusters: Any,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        use_mini_batch: bool = False,
        mini_batch_steps_per_iteration: int = 1,
        random_seed: int | None = 0,
        kmeans_plus_plus_num_retries: int = 2,
        kmc2_chain_length: int = 200,
    ) -> None:
        del kmc2_chain_length
        if isinstance(initial_clusters, str) and initial_clusters == KMC2_INIT:
            raise UnimplementedError(
                f"initial_clusters: '{KMC2_INIT}' is not available here; required one of {_STARTS}, a function, or centers"
            )
        if isinstance(initial_clusters, str) and initial_clusters not in _STARTS:
            raise InvalidArgumentError(f"Unsupported initialization algorithm `{initial_clusters}`, must be one of `{[*_STARTS]}`.")
        if distance_metric not in _METRICS:
            raise InvalidArgumentError(f"Unsupported distance metric `{distance_metric}`, must be one of `{[*_METRICS]}`.")
        self._inputs = [_points(part) for part in (inputs if isinstance(inputs, list) else [inputs])]
        self._num_clusters = num_clusters
        self._initial_clusters = initial_clusters
        self._metric = distance_metric
        self._steps = int(mini_batch_steps_per_iteration) if use_mini_batch else 0
        self._seed = get_seed(random_seed)[0]
        self._retries = int(kmeans_plus_plus_num_retries)

    def training_graph(self) -> tuple[Any, ...]:
        """Add the nodes and their variables.

        Run the initializers of variables, then `init_op` until `cluster_centers_initialized` is true, then `training_op` for each step.

        Returns:
            all_scores: for each input the distances of its points to all centers. [n, num_clusters] each
            cluster_idx: for each input the numbers of the nearest centers. [n] int64 each
            scores: for each input the distances to these. [n] each
            cluster_centers_initialized: the variable that is true when the first centers are chosen.
            init_op: chooses first centers from the inputs.
            training_op: moves the centers.
        """
        is_given = not (isinstance(self._initial_clusters, str) or callable(self._initial_clusters))
        start = convert_to_tensor(self._initial_clusters) if is_given else self._initial_clusters
        count = shape(start)[0] if is_given else convert_to_tensor(self._num_clusters)
        empty = placeholder_with_default(zeros([0]), None)
        centers = Variable(empty, name="clusters", validate_shape=False)
        initialized = Variable(False, name="initialized")
        updated = Variable(empty, name="clusters_updated", validate_shape=False) if self._steps > 1 else centers
        chosen = Starts(self._inputs, count, start, self._metric, self._seed, self._retries, centers, updated, initialized).op()

        is_cosine = self._metric == COSINE_DISTANCE
        inputs = [unit_rows(part) for part in self._inputs] if is_cosine else self._inputs
        # With one step an iteration, mini-batches move the centers themselves, which do not stay of norm 1.
        places = unit_rows(identity(centers)) if is_cosine and self._steps == 1 else identity(centers)
        all_scores = tuple(all_distances(part, places, self._metric) for part in inputs)
        numbers, scores = zip(*[nearest(part, places) for part in inputs], strict=True)
        if is_cosine:  # half of the squared distance of unit vectors
            scores = tuple(part_scores * 0.5 for part_scores in scores)
        if self._steps:
            trained: Any = self._mini_batch_step(inputs, numbers, count, centers, updated)
        else:
            trained = assign(centers, self._means(inputs, numbers, count), validate_shape=False)
        return all_scores, numbers, scores, initialized, chosen, trained

    def _means(self, inputs: Sequence[Tensor], numbers: Sequence[Tensor], count: Tensor) -> Tensor:
        """The mean of the points of each cluster."""
        sums = add_n([_sums(points, part_numbers, count) for points, part_numbers in zip(inputs, numbers, strict=True)])
        counts = add_n([_sums(expand_dims(ones_like(part_numbers, dtypes.float32), 1), part_numbers, count) for part_numbers in numbers])
        means = sums / (counts + _EPSILON)
        return unit_rows(means) if self._metric == COSINE_DISTANCE else means

    def _mini_batch_step(
        self, inputs: Sequence[Tensor], numbers: Sequence[Tensor], count: Tensor, centers: Variable, updated: Variable
    ) -> Node:
        """The node that moves centers to the points of a batch."""
        if self._steps > 1:
            left = Variable(self._steps, dtype=dtypes.int64, name="update_in_steps")
            counts = Variable(zeros(expand_dims(count, 0), dtypes.int64))
            ready: Any = cond(left <= 0, lambda: self._next_iteration(left, centers, updated, counts), lambda: assign_sub(left, 1))
        else:
            counts = Variable(ones(expand_dims(count, 0), dtypes.int64))
            ready = no_op()
        done = [ready]
        for points, part_numbers in zip(inputs, numbers, strict=True):
            with control_dependencies(done):
                done = _moved(points, part_numbers, updated, counts)
        return group(*done)

    def _next_iteration(self, left: Variable, centers: Variable, updated: Variable, counts: Variable) -> Tensor:
        """Begin an iteration: the centers take their new places, and the points are counted anew."""
        places = unit_rows(identity(updated)) if self._metric == COSINE_DISTANCE else identity(updated)
        with control_dependencies([assign(centers, places, validate_shape=False), assign(counts, zeros_like(counts))]):
            return assign(left, self._steps - 1)


def _points(value: Any) -> Tensor:
    points = convert_to_tensor(value)
    if points.dtype.base is not dtypes.float32:
        raise InvalidArgumentError(f"inputs: required points of float32, got {points.dtype.text}; gc.cast converts them")
    return points


def _sums(rows: Tensor, numbers: Tensor, count: Tensor) -> Tensor:
    """The sums of the rows with each number below `count`."""
    return apply_one("UnsortedSegmentSum", [rows, numbers, count], None)


def _moved(points: Tensor, numbers: Tensor, centers: Variable, counts: Variable) -> list[Tensor]:
    """The changes of the clusters that get points, and of their counts."""
    # Later inputs see the changes of earlier ones.
    before, places = counts.read_value(), centers.read_value()
    unique, index = get_default_graph().apply_op("Unique", [numbers]).outputs
    added = _sums(ones_like(index, dtypes.int64), index, size(unique))
    total = gather(before, unique) + added
    shift = _sums(points, index, size(unique)) - expand_dims(cast(added, dtypes.float32), 1) * gather(places, unique)
    change = shift / expand_dims(cast(total, dtypes.float32), 1)
    with control_dependencies([change]):  # read before either changes
        return [scatter_add(counts, unique, added), scatter_add(centers, unique, change)]
