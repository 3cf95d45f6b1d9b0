"""`tf.contrib.layers`: regularizers, and initializers under other names."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any

from graphcore.dtypes import as_dtype, float32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import add_to_collection, constant, convert_to_tensor, get_collection, name_scope
from graphcore.tf1.initializers import fans
from graphcore.tf1.math.elementwise import abs as absolute
from graphcore.tf1.math.elementwise import add_n, multiply
from graphcore.tf1.math.reductions import reduce_sum
from graphcore.tf1.random import random_uniform, truncated_normal
from graphcore.tf1.variables.collections import GraphKeys

Regularizer = Callable[[Any], Any]


def l1_regularizer(scale: Any, scope: str | None = None) -> Regularizer:
    """A function from weights to `scale * sum(|weights|)`; to None for a scale of 0.

    Raises:
        InvalidArgumentError: the scale is an int, or negative.
    """
    return _scaled(scale, scope, "l1_regularizer", lambda weights: reduce_sum(absolute(weights)))


def l2_regularizer(scale: Any, scope: str | None = None) -> Regularizer:
    """A function from weights to `scale * sum(weights ** 2) / 2`; to None for a scale of 0.

    Raises:
        InvalidArgumentError: the scale is an int, or negative.
    """
    return _scaled(scale, scope, "l2_regularizer", lambda weights: apply_one("L2Loss", [weights], None))


def _scaled(scale: Any, scope: str | None, label: str, measure: Callable[[Any], Tensor]) -> Regularizer:
    if isinstance(scale, numbers.Integral):
        raise InvalidArgumentError(f"{label}: scale cannot be an integer: {scale}")
    if isinstance(scale, numbers.Real):
        if scale < 0.0:
            raise InvalidArgumentError(f"{label}: Setting a scale less than 0 on a regularizer: {scale}")
        if scale == 0.0:
            return lambda _: None

    def regularizer(weights: Any) -> Tensor:
        with name_scope(scope or label) as name:
            factor = convert_to_tensor(scale, weights.dtype.base, name="scale")
            return multiply(factor, measure(weights), name=name)

    return regularizer


def l1_l2_regularizer(scale_l1: Any = 1.0, scale_l2: Any = 1.0, scope: str | None = None) -> Regularizer | None:
    """The sum of an L1 and an L2 regularizer."""
    return sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)], scope)


def _losses(regularizers: Sequence[Regularizer], weights: Any) -> list[Any]:
    return [loss for regularizer in regularizers if (loss := regularizer(weights)) is not None]


def sum_regularizer(regularizer_list: Sequence[Regularizer | None], scope: str | None = None) -> Regularizer | None:
    """The sum of regularizers; None for none."""
    present = [regularizer for regularizer in regularizer_list if regularizer is not None]
    if not present:
        return None

    def regularizer(weights: Any) -> Tensor | None:
        with name_scope(scope or "sum_regularizer") as name:
            losses = _losses(present, weights)
            return add_n(losses, name=name) if losses else None

    return regularizer


def apply_regularization(regularizer: Regularizer, weights_list: Sequence[Any] | None = None) -> Tensor:
    """The sum of the losses of variables, which joins the collection of regularization losses.

    Args:
        regularizer: a function from a variable to a loss, or to None.
        weights_list: the variables; those of the collection of weights if None.

    Raises:
        InvalidArgumentError: there are no variables, or a loss is no scalar.
    """
    weights = list(weights_list or get_collection(GraphKeys.WEIGHTS))
    if not weights:
        raise InvalidArgumentError("No weights to regularize.")
    with name_scope("get_regularization_penalty") as name:
        losses = [constant(0.0) if (loss := regularizer(tensor)) is None else loss for tensor in weights]
        wrong = next((loss for loss in losses if loss.shape.rank not in (None, 0)), None)
        if wrong is not None:
            raise InvalidArgumentError(f"regularizer must return a scalar Tensor instead of a Tensor with rank {wrong.shape.rank}")
        total = add_n(losses, name=name)
    add_to_collection(GraphKeys.REGULARIZATION_LOSSES, total)
    return total


def variance_scaling_initializer(
    factor: float = 2.0, mode: str = "FAN_IN", uniform: bool = False, seed: int | None = None, dtype: object = float32
) -> Callable[..., Tensor]:
    """An initializer with a variance of `factor` divided by the number of inputs or outputs.

    Args:
        factor: the numerator.
        mode: "FAN_IN", "FAN_OUT" or "FAN_AVG".
        uniform: draw from a uniform distribution, instead of a truncated normal one.
        seed: the seed of the op.
        dtype: the dtype.

    Raises:
        InvalidArgumentError: another mode, or no floating dtype.
    """
    own = as_dtype(dtype)
    if not own.is_floating:
        raise InvalidArgumentError(f"Cannot create initializer for non-floating point type {own.text}")
    if mode not in ("FAN_IN", "FAN_OUT", "FAN_AVG"):
        raise InvalidArgumentError(f"Unknown mode {mode} [FAN_IN, FAN_OUT, FAN_AVG]")

    def initializer(shape: Any, dtype: object = own, partition_info: Any = None) -> Tensor:
        del partition_info
        inputs, outputs = fans([int(size) for size in shape])
        count = {"FAN_IN": inputs, "FAN_OUT": outputs, "FAN_AVG": (inputs + outputs) / 2.0}[mode]
        if uniform:
            limit = math.sqrt(3.0 * factor / count)
            return random_uniform(shape, -limit, limit, dtype, seed)
        return truncated_normal(shape, 0.0, math.sqrt(1.3 * factor / count), dtype, seed)

    return initializer


def xavier_initializer(uniform: bool = True, seed: int | None = None, dtype: object = float32) -> Callable[..., Tensor]:
    """An initializer with a variance of `2 / (inputs + outputs)`."""
    return variance_scaling_initializer(1.0, "FAN_AVG", uniform, seed, dtype)


xavier_initializer_conv2d = xavier_initializer
