"""`tf.train`: learning rates that fall with the number of steps.

Each function gives a scalar tensor, computed anew in every run from the global step then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from graphcore.api.branches import case, cond
from graphcore.dtypes import DType
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor, get_default_graph
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import convert_to_tensor, name_scope
from graphcore.tf1.math.elementwise import cast, equal, exp, minimum, multiply, pow, sqrt, where  # noqa: A004 - TF1's name
from graphcore.tf1.random import random_normal

_NUMBERS: Final = (int, float)


def exponential_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False, name: str | None = None
) -> Tensor:
    """`learning_rate * decay_rate ** (global_step / decay_steps)`.

    Args:
        learning_rate: the rate at the start.
        global_step: the number of steps so far.
        decay_steps, decay_rate: after each `decay_steps` steps the rate is multiplied by `decay_rate`.
        staircase: round the exponent down.
        name: the name of the node.
    """
    with name_scope(name or "ExponentialDecay") as scope:
        rate, step = _rate_and_step("exponential_decay", learning_rate, global_step)
        return multiply(rate, pow(_like(rate, decay_rate), _progress(rate, step, decay_steps, staircase)), scope)


def natural_exp_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False, name: str | None = None
) -> Tensor:
    """`learning_rate * exp(-decay_rate * global_step / decay_steps)`.

    The arguments are those of `exponential_decay`.
    """
    with name_scope(name or "NaturalExpDecay") as scope:
        rate, step = _rate_and_step("natural_exp_decay", learning_rate, global_step)
        exponent = -_like(rate, decay_rate) * _progress(rate, step, decay_steps, staircase)
        return multiply(rate, exp(exponent), scope)


def inverse_time_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False, name: str | None = None
) -> Tensor:
    """`learning_rate / (1 + decay_rate * global_step / decay_steps)`.

    The arguments are those of `exponential_decay`.
    """
    with name_scope(name or "InverseTimeDecay") as scope:
        rate, step = _rate_and_step("inverse_time_decay", learning_rate, global_step)
        part = _like(rate, decay_rate) * _progress(rate, step, decay_steps, staircase)
        return apply_one("RealDiv", [rate, 1.0 + part], scope)


def polynomial_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    end_learning_rate: Any = 0.0001,
    power: Any = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Tensor:
    """A polynomial of the step from `learning_rate` to `end_learning_rate`.

    It is `(learning_rate - end_learning_rate) * (1 - global_step / decay_steps) ** power + end_learning_rate`.

    Args:
        learning_rate: the rate at the start.
        global_step: the number of steps so far.
        decay_steps: the number of steps to the end; the rate stays there.
        end_learning_rate: the rate at the end.
        power: the power of the polynomial.
        cycle: at each end begin again, with a multiple of `decay_steps` to go.
        name: the name of the node.
    """
    with name_scope(name or "PolynomialDecay") as scope:
        rate, step = _rate_and_step("polynomial_decay", learning_rate, global_step)
        end, total = _like(rate, end_learning_rate), _like(rate, decay_steps)
        if cycle:
            ratio = apply_one("Ceil", [step / total], None)
            total = total * where(equal(step, _like(rate, 0.0)), _like(rate, 1.0), ratio)
        else:
            step = minimum(step, total)
        return apply_one("AddV2", [(rate - end) * pow(1.0 - step / total, _like(rate, power)), end], scope)


def cosine_decay(learning_rate: Any, global_step: Any, decay_steps: Any, alpha: Any = 0.0, name: str | None = None) -> Tensor:
    """The rate falls along half a cosine, from `learning_rate` to `alpha` of it.

    Args:
        learning_rate: the rate at the start.
        global_step: the number of steps so far.
        decay_steps: the number of steps to the end; the rate stays there.
        alpha: the fraction of the rate at the end.
        name: the name of the node.
    """
    with name_scope(name or "CosineDecay") as scope:
        rate, step = _rate_and_step("cosine_decay", learning_rate, global_step)
        total = _like(rate, decay_steps)
        fall = _cosine(rate, minimum(step, total) / total)
        return multiply(rate, (1 - alpha) * fall + alpha, scope)


def cosine_decay_restarts(
    learning_rate: Any,
    global_step: Any,
    first_decay_steps: Any,
    t_mul: Any = 2.0,
    m_mul: Any = 1.0,
    alpha: Any = 0.0,
    name: str | None = None,
) -> Tensor:
    """The rate of `cosine_decay`, which begins again at each end.

    Args:
        learning_rate: the rate at the start.
        global_step: the number of steps so far.
        first_decay_steps: the number of steps to the first end.
        t_mul: each way to an end has so many times the steps of that before.
        m_mul: each beginning has so many times the rate of that before.
        alpha: the fraction of the rate at an end.
        name: the name of the node.
    """
    with name_scope(name or "SGDRDecay") as scope:
        rate, step = _rate_and_step("cosine_decay_restarts", learning_rate, global_step)
        done = step / _like(rate, first_decay_steps)
        factor = _like(rate, t_mul)

        def same() -> list[Tensor]:
            number = apply_one("Floor", [done], None)
            return [number, done - number]

        def longer() -> list[Tensor]:
            number = apply_one("Floor", [_log(1.0 - done * (1.0 - factor)) / _log(factor)], None)
            before = (1.0 - pow(factor, number)) / (1.0 - factor)
            return [number, (done - before) / pow(factor, number)]

        if isinstance(t_mul, _NUMBERS):
            number, part = same() if t_mul == 1 else longer()
        else:
            number, part = cond(equal(factor, _like(rate, 1.0)), same, longer)
        fall = pow(_like(rate, m_mul), number) * _cosine(rate, part)
        return multiply(rate, (1 - alpha) * fall + alpha, scope)


def linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Tensor:
    """`learning_rate * ((alpha + linear) * cosine + beta)`: a cosine that falls with a line.

    Args:
        learning_rate: the rate at the start.
        global_step: the number of steps so far.
        decay_steps: the number of steps to the end; the rate stays there.
        num_periods: the number of periods of the cosine until then.
        alpha, beta: see the formula.
        name: the name of the node.
    """
    with name_scope(name or "LinearCosineDecay") as scope:
        rate, step = _rate_and_step("linear_cosine_decay", learning_rate, global_step)
        total = _like(rate, decay_steps)
        done = minimum(step, total)
        cosine = _cosine(rate, 2.0 * _like(rate, num_periods) * (done / total))
        return multiply(rate, (_like(rate, alpha) + (total - done) / total) * cosine + _like(rate, beta), scope)


def noisy_linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    initial_variance: Any = 1.0,
    variance_decay: Any = 0.55,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Tensor:
    """The rate of `linear_cosine_decay` with noise on the line.

    Args:
        learning_rate, global_step, decay_steps, num_periods, alpha, beta, name: as there.
        initial_variance, variance_decay: the variance of the noise is `initial_variance / (1 + global_step) ** variance_decay`.
    """
    with name_scope(name or "NoisyLinearCosineDecay") as scope:
        rate, step = _rate_and_step("noisy_linear_cosine_decay", learning_rate, global_step)
        total = _like(rate, decay_steps)
        done = minimum(step, total)
        line = (total - done) / total
        variance = _like(rate, initial_variance) / pow(1.0 + done, _like(rate, variance_decay))
        noise = random_normal([], dtype=rate.dtype.base) * sqrt(variance)
        cosine = _cosine(rate, 2.0 * _like(rate, num_periods) * (done / total))
        return multiply(rate, (_like(rate, alpha) + line + noise) * cosine + _like(rate, beta), scope)


def piecewise_constant(x: Any, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None) -> Tensor:
    """`values[0]` while x <= `boundaries[0]`, then `values[1]`, ..., and the last value beyond.

    Args:
        x: a scalar, such as the global step.
        boundaries: increasing numbers of the kind of `x`.
        values: one value more.
        name: the name of the node.

    Raises:
        InvalidArgumentError: wrong counts, or boundaries of another kind than `x`.
    """
    if len(boundaries) != len(values) - 1:
        raise InvalidArgumentError(
            f"The length of boundaries should be 1 less than the length of values, got {len(boundaries)} and {len(values)}"
        )
    with name_scope(name or "PiecewiseConstant"):
        place = convert_to_tensor(x)
        limits = [_boundary(place, boundary) for boundary in boundaries]
        results = [convert_to_tensor(values[0])]
        results += [convert_to_tensor(value, results[0].dtype.base) for value in values[1:]]
        if not limits:
            return results[0]
        compare = get_default_graph().apply_op
        branches = [
            (compare("LessEqual", [place, limit], None, None).outputs[0], lambda value=value: apply_one("Identity", [value], None))
            for limit, value in zip(limits, results, strict=False)
        ]
        result: Tensor = case(branches, default=lambda: apply_one("Identity", [results[-1]], None))
        return result


piecewise_constant_decay = piecewise_constant


def _boundary(x: Tensor, boundary: Any) -> Tensor:
    if isinstance(boundary, float) and not x.dtype.base.is_floating:
        raise InvalidArgumentError(f"boundaries: required {x.dtype.base.text}, as x is, got {boundary}")
    limit = convert_to_tensor(boundary, None if hasattr(boundary, "dtype") else x.dtype.base)
    return limit if limit.dtype.base is x.dtype.base else cast(limit, x.dtype.base)


def _rate_and_step(what: str, learning_rate: Any, global_step: Any) -> tuple[Tensor, Tensor]:
    """The first rate, and the global step in its dtype.

    Raises:
        InvalidArgumentError: there is no global step.
    """
    if global_step is None:
        raise InvalidArgumentError(f"global_step is required for {what}.")
    rate = convert_to_tensor(learning_rate, name="learning_rate")
    if not rate.dtype.base.is_floating:
        raise InvalidArgumentError(f"{what}: required a learning_rate of floating dtype, got {rate.dtype.base.text}")
    return rate, _like(rate, global_step)


def _like(rate: Tensor, value: Any) -> Tensor:
    dtype: DType = rate.dtype.base
    return convert_to_tensor(value, dtype) if isinstance(value, _NUMBERS) else cast(convert_to_tensor(value), dtype)


def _progress(rate: Tensor, step: Tensor, decay_steps: Any, staircase: bool) -> Tensor:
    part = step / _like(rate, decay_steps)
    return apply_one("Floor", [part], None) if staircase else part


def _cosine(rate: Tensor, part: Tensor) -> Tensor:
    """Half a cosine, from 1 at 0 to 0 at 1."""
    angle = convert_to_tensor(math.pi, rate.dtype.base) * part
    return 0.5 * (1.0 + apply_one("Cos", [angle], None))


def _log(x: Tensor) -> Tensor:
    return apply_one("Log", [x], None)
