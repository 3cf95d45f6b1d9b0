"""Random tensors and their seeds, under TF1's names."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.dtypes import as_dtype, float32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor, get_default_graph
from graphcore.tf1.framework import constant
from graphcore.tf1.math.elementwise import add

_GRAPH_SEED_ALONE: Final = 87654321
_SEEDS: Final = 2**31 - 1
"""The number of different seeds: larger ones and negative ones are taken modulo this."""


def set_random_seed(seed: int | None) -> None:
    """Set the seed of the default graph: its random ops give the same values in every new session."""
    get_default_graph().seed = None if seed is None else int(seed)


def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """The two seeds of a new random op, of the graph's seed and its own; None twice if there is neither."""
    graph = get_default_graph()
    if graph.seed is None and op_seed is None:
        return None, None
    first = _GRAPH_SEED_ALONE if graph.seed is None else graph.seed % _SEEDS
    second = (len(graph) if op_seed is None else int(op_seed)) % _SEEDS
    return (first, second) if first or second else (0, _SEEDS)  # both 0 would mean no seed


def seed_attrs(op_seed: int | None) -> dict[str, int]:
    """The attrs `seed` and `seed2` of a new random op."""
    return dict(zip(("seed", "seed2"), [seed or 0 for seed in get_seed(op_seed)], strict=True))


def sizes_of(shape: Any) -> Any:
    """A shape as an op takes it; an empty list has no type of its own."""
    return np.zeros(0, np.int32) if isinstance(shape, list | tuple) and not shape else shape


def _draw(op: str, shape: Any, dtype: object, seed: int | None) -> Tensor:
    attrs = {"dtype": as_dtype(dtype), **seed_attrs(seed)}
    return get_default_graph().apply_op(op, [sizes_of(shape)], attrs, op).outputs[0]


def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: object = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Values uniform in [minval, maxval). shape: sizes -> y: [*shape].

    Args:
        shape: sizes, which may be a tensor or hold some.
        minval, maxval: the limits, 0 and 1 by default; integers require a `maxval`.
        dtype: a float, int32 or int64.
        seed: the seed of this op.
        name: the name of the result.
    """
    wanted = as_dtype(dtype)
    with get_default_graph().name_scope(name or "random_uniform") as scope:
        if wanted.is_integer:
            if maxval is None:
                raise InvalidArgumentError(f"random_uniform: Must specify maxval for integer dtype {wanted.text}")
            attrs = {"Tout": wanted, **seed_attrs(seed)}
            return get_default_graph().apply_op("RandomUniformInt", [sizes_of(shape), minval, maxval], attrs, scope).outputs[0]
        limits = [_number(value, wanted, name) for value, name in ((minval, "min"), (1 if maxval is None else maxval, "max"))]
        drawn = _draw("RandomUniform", shape, wanted, seed)
        return add(drawn * (limits[1] - limits[0]), limits[0], scope)


def random_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: object = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Values of a normal distribution. shape: sizes, which may be a tensor or hold some -> y: [*shape]."""
    return _scaled("RandomStandardNormal", (shape, mean, stddev), dtype, seed, name or "random_normal")


def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: object = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Values of a normal distribution, drawn again beyond two standard deviations. shape: sizes -> y: [*shape]."""
    return _scaled("TruncatedNormal", (shape, mean, stddev), dtype, seed, name or "truncated_normal")


def _scaled(op: str, drawn: tuple[Any, Any, Any], dtype: object, seed: int | None, name: str) -> Tensor:
    shape, mean, stddev = drawn
    wanted = as_dtype(dtype)
    with get_default_graph().name_scope(name) as scope:
        mean, stddev = _number(mean, wanted, "mean"), _number(stddev, wanted, "stddev")
        return add(_draw(op, shape, wanted, seed) * stddev, mean, scope)


def _number(value: Any, dtype: Any, name: str) -> Any:
    """A number as a constant of the dtype; tensors and variables as they are."""
    return value if isinstance(value, Tensor) or hasattr(value, "as_tensor") else constant(value, dtype, name=name)
