"""`tf.random`: seeds, draws from distributions, choices, and numbers whose seed is an input."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.dtypes import as_dtype, float32, int32, int64
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor, get_default_graph
from graphcore.tf1.arrays.layout import broadcast_dynamic_shape
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import constant, control_dependencies, convert_to_tensor, name_scope
from graphcore.tf1.math.elementwise import add, maximum, multiply
from graphcore.tf1.math.reductions import reduce_all

__all__ = [
    "categorical",
    "gamma",
    "get_seed",
    "multinomial",
    "normal",
    "poisson",
    "random_crop",
    "set_random_seed",
    "shuffle",
    "stateless_categorical",
    "stateless_multinomial",
    "stateless_normal",
    "stateless_truncated_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
]

_GRAPH_SEED_ALONE: Final = 87654321
_SEEDS: Final = 2**31 - 1
"""The number of different seeds: larger ones and negative ones are taken modulo this."""


def set_random_seed(seed: int | None) -> None:
    """Set the seed of the default graph: its random ops give the same values in every new session."""
    get_default_graph().seed = None if seed is None else int(seed)


def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """The two seeds of a new random op, from the graph's seed and its own; None twice without either."""
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


uniform = random_uniform
normal = random_normal


def multinomial(logits: Any, num_samples: Any, seed: int | None = None, name: str | None = None, output_dtype: object = None) -> Tensor:
    """Classes drawn with the probabilities softmax(logits). logits: [batch, classes] -> y: [batch, num_samples].

    Args:
        logits: the logarithms of the probabilities, up to a number for each row.
        num_samples: the number for each row, a scalar.
        seed: the seed of this op.
        name: the name scope.
        output_dtype: int64, the default, or int32.
    """
    with name_scope(name or "multinomial"):
        attrs = {"output_dtype": as_dtype(output_dtype or int64), **seed_attrs(seed)}
        return apply_one("Multinomial", [convert_to_tensor(logits, name="logits"), num_samples], None, attrs)


def categorical(logits: Any, num_samples: Any, dtype: object = None, seed: int | None = None, name: str | None = None) -> Tensor:
    """`multinomial` under its later name: classes for each row of logits, [batch, num_samples]."""
    return multinomial(logits, num_samples, seed, name or "categorical", dtype)


def shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """The slices along the first dimension in random order."""
    return apply_one("RandomShuffle", [value], name, seed_attrs(seed))


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """A part at a random place. value: any, size: [rank] -> y: [*size]."""
    with name_scope(name or "random_crop") as scope:
        value, size = convert_to_tensor(value, name="value"), convert_to_tensor(size, int32, name="size")
        whole = apply_one("Shape", [value], None)
        fits = reduce_all(whole >= size)
        check = get_default_graph().apply_op("Assert", [fits, ["Need value.shape >= size, got ", whole, size]], {"summarize": 1000}, None)
        with control_dependencies([check]):
            whole = apply_one("Identity", [whole], None)
        last = np.iinfo(np.int32).max
        offset = random_uniform(apply_one("Shape", [whole], None), 0, last, int32, seed) % (whole - size + 1)
        return apply_one("Slice", [value, offset, size], scope)


def gamma(shape: Any, alpha: Any, beta: Any = None, dtype: object = float32, seed: int | None = None, name: str | None = None) -> Tensor:
    """Values of gamma distributions. shape: sizes -> y: [*shape, *(shape of alpha and beta)].

    Args:
        shape: the sizes of the draws for each parameter.
        alpha: the shapes of the distributions.
        beta: their rates, 1 by default; broadcast with `alpha`.
        dtype: the dtype of parameters that are not tensors.
        seed: the seed of this op.
        name: the name of the result.
    """
    with name_scope(name or "random_gamma") as scope:
        alpha = convert_to_tensor(alpha, dtype, name="alpha")
        beta = convert_to_tensor(1.0 if beta is None else beta, dtype, name="beta")
        both = broadcast_dynamic_shape(apply_one("Shape", [alpha], None), apply_one("Shape", [beta], None))
        drawn = apply_one("RandomGamma", [sizes_of(shape), apply_one("BroadcastTo", [alpha, both], None)], None, seed_attrs(seed))
        return maximum(np.finfo(alpha.dtype.base.as_numpy).tiny, drawn / beta, scope)


def poisson(lam: Any, shape: Any, dtype: object = float32, seed: int | None = None, name: str | None = None) -> Tensor:
    """Values of Poisson distributions with the means `lam`. shape: sizes -> y: [*shape, *(shape of lam)] of `dtype`."""
    with name_scope(name or "random_poisson"):
        means = convert_to_tensor(lam, name="lam")
        return apply_one("RandomPoissonV2", [sizes_of(shape), means], None, {"dtype": as_dtype(dtype), **seed_attrs(seed)})


# ---- numbers whose seed is an input: [2] -----------------------------------------------------------------------------


def stateless_uniform(
    shape: Any, seed: Any, minval: Any = 0, maxval: Any = None, dtype: object = float32, name: str | None = None
) -> Tensor:
    """Values uniform in [minval, maxval), the same in each run with the same seed. shape: sizes, seed: [2] -> y: [*shape]."""
    wanted = as_dtype(dtype)
    with name_scope(name or "stateless_random_uniform") as scope:
        if wanted.is_integer:
            if maxval is None:
                raise InvalidArgumentError(f"stateless_uniform: Must specify maxval for integer dtype {wanted.text}")
            limits = [convert_to_tensor(value, wanted) for value in (minval, maxval)]
            return apply_one("StatelessRandomUniformInt", [sizes_of(shape), seed, *limits], scope)
        low, high = (convert_to_tensor(value, wanted) for value in (minval, 1 if maxval is None else maxval))
        drawn = apply_one("StatelessRandomUniform", [sizes_of(shape), seed], None, {"dtype": wanted})
        return add(drawn * (high - low), low, scope)


def _stateless(op: str, drawn: tuple[Any, Any, Any, Any], dtype: object, name: str) -> Tensor:
    shape, seed, mean, stddev = drawn
    wanted = as_dtype(dtype)
    with name_scope(name) as scope:
        sample = apply_one(op, [sizes_of(shape), seed], None, {"dtype": wanted})
        return add(multiply(sample, constant(stddev, wanted)), constant(mean, wanted), scope)


def stateless_normal(shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: object = float32, name: str | None = None) -> Tensor:
    """Values of a normal distribution, the same in each run with the same seed. shape: sizes, seed: [2] -> y: [*shape]."""
    return _stateless("StatelessRandomNormal", (shape, seed, mean, stddev), dtype, name or "stateless_random_normal")


def stateless_truncated_normal(
    shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: object = float32, name: str | None = None
) -> Tensor:
    """Like `stateless_normal`, without values beyond two standard deviations."""
    return _stateless("StatelessTruncatedNormal", (shape, seed, mean, stddev), dtype, name or "stateless_truncated_normal")


def stateless_multinomial(logits: Any, num_samples: Any, seed: Any, output_dtype: object = int64, name: str | None = None) -> Tensor:
    """Like `multinomial`, the same in each run with the same seed. seed: [2] -> y: [batch, num_samples]."""
    with name_scope(name or "stateless_multinomial"):
        logits = convert_to_tensor(logits, name="logits")
        return apply_one("StatelessMultinomial", [logits, num_samples, seed], None, {"output_dtype": as_dtype(output_dtype)})


def stateless_categorical(logits: Any, num_samples: Any, seed: Any, dtype: object = int64, name: str | None = None) -> Tensor:
    """Like `stateless_multinomial`."""
    return stateless_multinomial(logits, num_samples, seed, dtype, name or "stateless_categorical")
