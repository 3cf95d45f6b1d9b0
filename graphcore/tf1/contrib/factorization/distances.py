"""The distances of points to the centers of clusters."""

from __future__ import annotations

from typing import Final

from graphcore.graph import Tensor
from graphcore.tf1.arrays.layout import expand_dims
from graphcore.tf1.math.elementwise import matmul, maximum, square
from graphcore.tf1.math.reductions import argmin, reduce_min, reduce_sum
from graphcore.tf1.nn.activations import l2_normalize

SQUARED_EUCLIDEAN_DISTANCE: Final = "squared_euclidean"
COSINE_DISTANCE: Final = "cosine"


def unit_rows(rows: Tensor) -> Tensor:
    """Rows divided by their Euclidean norms. rows: [n, d]."""
    return l2_normalize(rows, 1)


def half_squares(rows: Tensor) -> Tensor:
    """Half of the squared norm of each row. rows: [n, d] -> y: [n]."""
    return reduce_sum(square(rows), 1) * 0.5


def all_distances(points: Tensor, centers: Tensor, metric: str) -> Tensor:
    """The distance of each point to each center. points: [n, d]  centers: [k, d] -> y: [n, k].

    For the cosine distance all rows have norm 1.
    """
    products = matmul(points, centers, transpose_b=True)
    if metric == COSINE_DISTANCE:
        return 1.0 - products
    return expand_dims(reduce_sum(square(points), 1), 1) - 2.0 * products + expand_dims(reduce_sum(square(centers), 1), 0)


def nearest(points: Tensor, centers: Tensor) -> tuple[Tensor, Tensor]:
    """The number of the nearest center of each point, and the squared distance to it.

    points: [n, d]  centers: [k, d] -> numbers: [n] int64, distances: [n]
    """
    relative = expand_dims(half_squares(centers), 0) - matmul(points, centers, transpose_b=True)
    return argmin(relative, 1), maximum(2.0 * (half_squares(points) + reduce_min(relative, 1)), 0.0)
