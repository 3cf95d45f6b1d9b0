"""`tf.random`: choices, distributions, and numbers whose seed is an input."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphcore.api.random import get_seed, random_normal, random_uniform, seed_attrs, set_random_seed, sizes_of, truncated_normal
from graphcore.dtypes import as_dtype, float32, int32, int64
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor, get_default_graph
from graphcore.tf1.arrays import broadcast_dynamic_shape
from graphcore.tf1.arrays import slice as _slice
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
    """As `multinomial`: classes for each row of logits, [batch, num_samples]."""
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
        return _slice(value, offset, size, scope)


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
        made = apply_one(op, [sizes_of(shape), seed], None, {"dtype": wanted})
        return add(multiply(made, constant(stddev, wanted)), constant(mean, wanted), scope)


def stateless_normal(shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: object = float32, name: str | None = None) -> Tensor:
    """Values of a normal distribution, the same in each run with the same seed. shape: sizes, seed: [2] -> y: [*shape]."""
    return _stateless("StatelessRandomNormal", (shape, seed, mean, stddev), dtype, name or "stateless_random_normal")


def stateless_truncated_normal(
    shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: object = float32, name: str | None = None
) -> Tensor:
    """As `stateless_normal`, without values beyond two standard deviations."""
    return _stateless("StatelessTruncatedNormal", (shape, seed, mean, stddev), dtype, name or "stateless_truncated_normal")


def stateless_multinomial(logits: Any, num_samples: Any, seed: Any, output_dtype: object = int64, name: str | None = None) -> Tensor:
    """As `multinomial`, the same in each run with the same seed. seed: [2] -> y: [batch, num_samples]."""
    with name_scope(name or "stateless_multinomial"):
        logits = convert_to_tensor(logits, name="logits")
        return apply_one("StatelessMultinomial", [logits, num_samples, seed], None, {"output_dtype": as_dtype(output_dtype)})


def stateless_categorical(logits: Any, num_samples: Any, seed: Any, dtype: object = int64, name: str | None = None) -> Tensor:
    """As `stateless_multinomial`."""
    return stateless_multinomial(logits, num_samples, seed, dtype, name or "stateless_categorical")
