"""Random tensors and their seeds, under TF1's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from graphcore.api.math import add
from graphcore.dtypes import as_dtype, float32
from graphcore.graph import Tensor, get_default_graph

_GRAPH_SEED_ALONE: Final = 87654321


def set_random_seed(seed: int) -> None:
    """Set the seed of the default graph: its random ops give the same values in every new session."""
    get_default_graph().seed = seed


def _seeds(seed: int | None) -> dict[str, int]:
    graph = get_default_graph()
    if graph.seed is None and seed is None:
        return {"seed": 0, "seed2": 0}
    if graph.seed is None:
        return {"seed": _GRAPH_SEED_ALONE, "seed2": seed or 0}
    return {"seed": graph.seed, "seed2": len(graph) if seed is None else seed}


def _draw(op: str, shape: Sequence[int] | Tensor, dtype: object, seed: int | None, name: str) -> Tensor:
    attrs = {"dtype": as_dtype(dtype), **_seeds(seed)}
    sizes = shape if isinstance(shape, Tensor) or len(shape) else np.empty(0, np.int32)  # an empty list has no type
    return get_default_graph().apply_op(op, [sizes], attrs, name).outputs[0]


def random_uniform(
    shape: Sequence[int] | Tensor,
    minval: float = 0.0,
    maxval: float = 1.0,
    dtype: object = float32,
    seed: int | None = None,
    name: str = "random_uniform",
) -> Tensor:
    """Values uniform in [minval, maxval). shape: sizes -> y: [*shape]."""
    with get_default_graph().name_scope(name) as scope:
        drawn = _draw("RandomUniform", shape, dtype, seed, "RandomUniform")
        return add(drawn * (maxval - minval), minval, scope)


def random_normal(
    shape: Sequence[int] | Tensor,
    mean: float = 0.0,
    stddev: float = 1.0,
    dtype: object = float32,
    seed: int | None = None,
    name: str = "random_normal",
) -> Tensor:
    """Values of a normal distribution. shape: sizes -> y: [*shape]."""
    with get_default_graph().name_scope(name) as scope:
        drawn = _draw("RandomStandardNormal", shape, dtype, seed, "RandomStandardNormal")
        return add(drawn * stddev, mean, scope)


def truncated_normal(
    shape: Sequence[int] | Tensor,
    mean: float = 0.0,
    stddev: float = 1.0,
    dtype: object = float32,
    seed: int | None = None,
    name: str = "truncated_normal",
) -> Tensor:
    """Values of a normal distribution, redrawn beyond two standard deviations. shape: sizes -> y: [*shape]."""
    with get_default_graph().name_scope(name) as scope:
        drawn = _draw("TruncatedNormal", shape, dtype, seed, "TruncatedNormal")
        return add(drawn * stddev, mean, scope)
