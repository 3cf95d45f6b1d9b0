"""The incomplete gamma function at large `a` and `x` near it.

Series and fraction would need too many terms there. It is Temme's uniform expansion (DiDonato and Morris 1986): the complementary error
function and a remainder in powers of `1 / a`, of which three are taken. With `mu = (x - a) / a`, `eta` has the sign of mu and `eta^2 / 2 = mu - log(1 + mu)`.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

from graphcore.opset.numerics.special_functions import erfc, polynomial

_LARGE: Final = 1e4
_NEAR: Final = 0.1
_REMAINDER: Final = (
    (-1 / 3, 1 / 12, -2 / 135, 1 / 864, 1 / 2835, -139 / 777600, 1 / 25515, -571 / 261273600, -281 / 151559100),
    (-1 / 540, -1 / 288, 1 / 378, -77 / 77760, 1 / 4860),
    (25 / 6048, -139 / 51840, 1 / 1296),
)
"""For each power of `1 / a`, the factors of the powers of eta, lowest first."""
_ODD: Final = tuple(1 / n for n in range(3, 18, 2))


class Large(NamedTuple):
    """The values of the functions."""

    lower: Any
    upper: Any
    slope: Any
    """The derivative of `lower` by a."""
    sample_slope: Any
    """The derivative by a of a sample: minus `slope` divided by the density at x."""


def is_large(xp: Any, a: Any, x: Any) -> Any:
    """True where the expansion is as precise as the doubles are."""
    return xp.isfinite(a) & (a >= _LARGE) & (abs(x - a) <= _NEAR * a)


def of_large(xp: Any, a: Any, x: Any) -> Large:
    """The functions where `is_large` is true."""
    mu, per_a = (x - a) / a, 1 / a
    log, half_square = xp.log1p(mu), _less_log(mu)
    eta = xp.copysign(xp.sqrt(2 * half_square), mu)
    decay = xp.exp(-a * half_square) * xp.sqrt(per_a / (2 * math.pi))
    parts = [_up(factors, eta) * per_a**power for power, factors in enumerate(_REMAINDER)]
    remainder = sum(parts)
    by_a = -sum(power * part for power, part in enumerate(parts)) * per_a
    by_eta = sum(_up(_derivative(factors), eta) * per_a**power for power, factors in enumerate(_REMAINDER))
    is_centre = eta == 0
    safe = xp.where(is_centre, 1.0, eta)
    log_ratio, ratio = xp.where(is_centre, 1.0, log / safe), xp.where(is_centre, 1.0, mu / safe)
    slope = log_ratio + (log - per_a / 2) * remainder + by_a - by_eta * ratio * per_a
    stirling = 1 + per_a / 12 + per_a**2 / 288  # of gamma(a), beside Stirling's formula
    bell = eta * xp.sqrt(a / 2)
    return Large(
        lower=erfc(xp, -bell) / 2 - decay * remainder,
        upper=erfc(xp, bell) / 2 + decay * remainder,
        slope=-decay * slope,
        sample_slope=(1 + mu) * slope * stirling,
    )


def _less_log(mu: Any) -> Any:
    """`mu - log(1 + mu)` without the cancellation; the logarithm is 2 artanh(t)."""
    t = mu / (2 + mu)
    return t * mu - 2 * t**3 * _up(_ODD, t * t)


def _up(coefficients: tuple[float, ...], x: Any) -> Any:
    return polynomial(x, coefficients[::-1])


def _derivative(coefficients: tuple[float, ...]) -> tuple[float, ...]:
    return tuple([power * factor for power, factor in enumerate(coefficients)][1:])
