"""`tf.nn`: moments, normalization and dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from graphcore.dtypes import float16, float32, int32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor, get_default_graph
from graphcore.tf1.arrays.layout import shape, squeeze, stop_gradient
from graphcore.tf1.calls import apply_one, either
from graphcore.tf1.framework import constant, convert_to_tensor, name_scope
from graphcore.tf1.math.elementwise import cast
from graphcore.tf1.math.reductions import reduction
from graphcore.tf1.random import random_uniform


class Moments(NamedTuple):
    """Means and variances."""

    mean: Tensor
    variance: Tensor


def moments(
    x: Any, axes: Any, shift: Any = None, name: str | None = None, keep_dims: bool | None = None, keepdims: bool | None = None
) -> Moments:
    """The means and variances over `axes`.

    Args:
        x: the values.
        axes: the dimensions that vanish.
        shift: without effect.
        name: the name scope.
        keep_dims, keepdims: keep these dimensions, with size 1.
    """
    del shift
    keep = bool(either("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name or "moments"):
        x = convert_to_tensor(x)
        y = cast(x, float32) if x.dtype.base is float16 else x
        along = [axes] if isinstance(axes, int) else axes
        mean = reduction("Mean", y, along, True, "mean")
        variance = reduction("Mean", apply_one("SquaredDifference", [y, stop_gradient(mean)], None), along, True, "variance")
        if not keep:
            gone = along if isinstance(along, Tensor) else [int(axis) for axis in along]
            mean, variance = (_without(moment, gone) for moment in (mean, variance))
        return Moments(cast(mean, float16), cast(variance, float16)) if x.dtype.base is float16 else Moments(mean, variance)


def _without(x: Tensor, axes: Any) -> Tensor:
    if isinstance(axes, Tensor):
        raise InvalidArgumentError("moments: required axes as ints unless the dimensions are kept, got a tensor")
    return squeeze(x, axes)


def weighted_moments(
    x: Any, axes: Any, frequency_weights: Any, name: str | None = None, keep_dims: bool | None = None, keepdims: bool | None = None
) -> Moments:
    """The means and variances over `axes`, of values that count as often as `frequency_weights` says."""
    keep = bool(either("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name or "weighted_moments"):
        x = convert_to_tensor(x)
        weights = convert_to_tensor(frequency_weights, x.dtype.base) + apply_one("ZerosLike", [x], None)
        along = [axes] if isinstance(axes, int) else axes
        total = reduction("Sum", weights, along, True)
        mean = reduction("Sum", weights * x, along, True) / total
        variance = reduction("Sum", weights * apply_one("SquaredDifference", [x, mean], None), along, True) / total
        return Moments(mean, variance) if keep else Moments(_without(mean, along), _without(variance, along))


class SufficientStatistics(NamedTuple):
    """The number of elements, the sums of the values and of their squares, and the shift."""

    counts: Tensor
    mean_ss: Tensor
    variance_ss: Tensor
    shift: Tensor | None


def sufficient_statistics(
    x: Any, axes: Any, shift: Any = None, keep_dims: bool | None = None, name: str | None = None, keepdims: bool | None = None
) -> SufficientStatistics:
    """The sums that moments are computed from, of `x - shift`."""
    keep = bool(either("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name or "sufficient_statistics"):
        x = convert_to_tensor(x)
        along = [axes] if isinstance(axes, int) else list(axes)
        sizes = shape(x)
        counts = reduction("Prod", apply_one("GatherV2", [sizes, constant(along, int32), 0], None))
        moved = x if shift is None else x - convert_to_tensor(shift, x.dtype.base)
        sums = reduction("Sum", moved, along, keep), reduction("Sum", apply_one("Square", [moved], None), along, keep)
        return SufficientStatistics(cast(counts, x.dtype.base), *sums, None if shift is None else convert_to_tensor(shift, x.dtype.base))


def normalize_moments(counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None) -> Moments:
    """The means and variances from sufficient statistics."""
    with name_scope(name or "normalize"):
        divisor = apply_one("Reciprocal", [counts], None)
        shifted = apply_one("Mul", [mean_ss, divisor], None)
        mean = shifted if shift is None else shifted + shift
        variance = apply_one("Mul", [variance_ss, divisor], None) - apply_one("Square", [shifted], None)
        return Moments(mean, variance)


def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any, name: str | None = None
) -> Tensor:
    """`(x - mean) / sqrt(variance + epsilon) * scale + offset`; scale and offset may be None."""
    with name_scope(name or "batchnorm"):
        x = convert_to_tensor(x)
        factor = apply_one("Rsqrt", [convert_to_tensor(variance, x.dtype.base) + variance_epsilon], None)
        if scale is not None:
            factor = factor * scale
        moved = -mean * factor if offset is None else offset - mean * factor
        result: Tensor = x * factor + moved
        return result


def batch_norm_with_global_normalization(
    t: Any = None,
    m: Any = None,
    v: Any = None,
    beta: Any = None,
    gamma: Any = None,
    variance_epsilon: Any = None,
    scale_after_normalization: bool | None = None,
    name: str | None = None,
    input: Any = None,
    mean: Any = None,
    variance: Any = None,
) -> Tensor:
    """Batch normalization of images; `gamma` scales if `scale_after_normalization`."""
    t, m, v = either("input", input, "t", t), either("mean", mean, "m", m), either("variance", variance, "v", v)
    return batch_normalization(t, m, v, beta, gamma if scale_after_normalization else None, variance_epsilon, name)


class FusedBatchNorm(NamedTuple):
    """Normalised images with the means and variances of the batch."""

    y: Tensor
    batch_mean: Tensor
    batch_var: Tensor


def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
    exponential_avg_factor: float = 1.0,
) -> FusedBatchNorm:
    """Batch normalization of images in one op, by the moments of the batch or by those given."""
    empty = constant(np.zeros(0, np.float32), float32)
    inputs = [x, scale, offset, empty if mean is None else mean, empty if variance is None else variance]
    attrs = {
        "epsilon": max(epsilon, 1.001e-5),
        "data_format": data_format,
        "is_training": is_training,
        "exponential_avg_factor": exponential_avg_factor,
    }
    outputs = get_default_graph().apply_op("FusedBatchNormV3", inputs, attrs, name).outputs
    return FusedBatchNorm(outputs[0], outputs[1], outputs[2])


def local_response_normalization(
    input: Any, depth_radius: int = 5, bias: float = 1, alpha: float = 1, beta: float = 0.5, name: str | None = None
) -> Tensor:
    """Each element divided by `(bias + alpha * sum of squares) ** beta` of the channels around."""
    return apply_one("LRN", [input], name, {"depth_radius": depth_radius, "bias": float(bias), "alpha": float(alpha), "beta": float(beta)})


lrn = local_response_normalization


def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Tensor:
    """`x` with some elements set to 0 at random and the others scaled, so that the mean stays the same.

    Args:
        x: floats.
        keep_prob: the probability that an element stays; 1 - `rate`.
        noise_shape: the shape of the choices, which is broadcast to that of `x`: dimensions of size 1 are kept or dropped together.
        seed: the seed of the choices.
        name: the name scope.
        rate: the probability that an element is set to 0.
    """
    if rate is not None and keep_prob is not None:
        raise InvalidArgumentError("dropout: Cannot specify both 'keep_prob' and 'rate'")
    if rate is None and keep_prob is None:
        raise InvalidArgumentError("dropout: required a rate (or keep_prob), got neither")
    with name_scope(name or "dropout"):
        x = convert_to_tensor(x)
        if not x.dtype.is_floating:
            raise InvalidArgumentError(
                f"dropout: x has to be a floating point tensor since it's going to be scaled. Got a {x.dtype.text} tensor"
            )
        rate = 1 - keep_prob if rate is None else rate
        if isinstance(rate, int | float | np.number):
            rate = float(rate)
            if not 0 <= rate < 1:
                raise InvalidArgumentError(f"dropout: required a rate in [0, 1), got {rate}")
            if rate == 0:
                unchanged: Tensor = x
                return unchanged
            scale: Any = constant(1 / (1 - rate), x.dtype.base)
            rate = constant(rate, x.dtype.base)
        else:
            rate = convert_to_tensor(rate, x.dtype.base)
            scale = 1 / (1 - rate)
        drawn = random_uniform(_noise_shape(x, noise_shape), seed=seed, dtype=x.dtype.base)
        kept = cast(apply_one("GreaterEqual", [drawn, rate], None), x.dtype.base)
        dropped: Tensor = x * scale * kept
        dropped.set_shape(x.shape)
        return dropped


def _noise_shape(x: Tensor, wanted: Any) -> Any:
    if wanted is None:
        return shape(x)
    if isinstance(wanted, Sequence) and x.shape.rank == len(wanted) and any(size is None for size in wanted):
        return [x.shape[i] if size is None else size for i, size in enumerate(wanted)]
    return wanted
