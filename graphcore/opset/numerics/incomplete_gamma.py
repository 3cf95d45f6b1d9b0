"""The incomplete gamma and beta functions, elementwise in double precision, with `xp` NumPy or CuPy.

Below `x = a + 1` the incomplete gamma function is summed as a series, above it is a continued fraction, as in Cephes (Moshier); the
derivatives by a are those of the same terms. Near a large a, see `incomplete_gamma_large`. The incomplete beta function is Lentz's
continued fraction.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from graphcore.opset.numerics.incomplete_gamma_large import is_large, of_large
from graphcore.opset.numerics.special_functions import digamma, lgamma

_MOST_TERMS: Final = 2000
_EPSILON: Final = 2.0**-53
_BIG: Final = 2.0**52
_TINY: Final = 1e-300


class _Part(NamedTuple):
    """A sum or a fraction, and its derivative by a."""

    value: Any
    slope: Any


def igamma(xp: Any, a: Any, x: Any) -> Any:
    """The regularized lower incomplete gamma function."""
    a, x = xp.broadcast_arrays(a, x)
    return _of_both(
        xp, a, x, lambda low, scale: low.value * scale / a, lambda high, scale: 1 - high.value * scale, lambda near: near.lower, 0.0, 1.0
    )


def igammac(xp: Any, a: Any, x: Any) -> Any:
    """The regularized upper incomplete gamma function."""
    a, x = xp.broadcast_arrays(a, x)
    return _of_both(
        xp, a, x, lambda low, scale: 1 - low.value * scale / a, lambda high, scale: high.value * scale, lambda near: near.upper, 1.0, 0.0
    )


def igamma_grad_a(xp: Any, a: Any, x: Any) -> Any:
    """The derivative of `igamma` by a."""
    a, x = xp.broadcast_arrays(a, x)
    below, above = _log_slopes(xp, a, x)
    return _of_both(
        xp,
        a,
        x,
        lambda low, scale: scale / a * (low.slope + low.value * below),
        lambda high, scale: -scale * (high.slope + high.value * above),
        lambda near: near.slope,
        0.0,
        0.0,
    )


def random_gamma_grad(xp: Any, a: Any, x: Any) -> Any:
    """The derivative by a of a sample x of the gamma distribution.

    It is that of `igamma` by a, divided by minus the density.
    """
    a, x = xp.broadcast_arrays(a, x)
    below, above = _log_slopes(xp, a, x)
    return _of_both(
        xp,
        a,
        x,
        lambda low, _: -x / a * (low.slope + low.value * below),
        lambda high, _: x * (high.slope + high.value * above),
        lambda near: near.sample_slope,
        0.0,
        0.0,
    )


def betainc(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """The regularized incomplete beta function."""
    a, b, x = xp.broadcast_arrays(a, b, x)
    turned = x > (a + 1) / (a + b + 2)
    inside = (x > 0) & (x < 1) & (a > 0) & (b > 0)
    p, q, at = xp.where(turned, b, a), xp.where(turned, a, b), xp.where(inside, xp.where(turned, 1 - x, x), 0.5)
    p, q = xp.where(inside, p, 1.0), xp.where(inside, q, 1.0)
    log_front = p * xp.log(at) + q * xp.log1p(-at) - (lgamma(xp, p) + lgamma(xp, q) - lgamma(xp, p + q))
    part = xp.exp(log_front) / p * _beta_fraction(xp, p, q, at)
    result = xp.where(turned, 1 - part, part)
    result = xp.where(x == 0, 0.0, xp.where(x == 1, 1.0, result))
    return xp.where((a > 0) & (b > 0) & (x >= 0) & (x <= 1), result, xp.nan)


def _log_slopes(xp: Any, a: Any, x: Any) -> tuple[Any, Any]:
    """The derivatives by a of the logarithms of the factors of series and fraction."""
    log = xp.log(x)
    return log - digamma(xp, a + 1), log - digamma(xp, a)


def _of_both(xp: Any, a: Any, x: Any, below: Any, above: Any, near: Any, at_zero: float, at_infinity: float) -> Any:
    """A function from `Large` near a large a, from the series where x is small, else from the fraction."""
    large = is_large(xp, a, x)
    valid = (a > 0) & (x > 0) & xp.isfinite(a) & xp.isfinite(x) & ~large
    inner_a, inner_x = xp.where(valid, a, 1.0), xp.where(valid, x, 1.0)
    small = inner_x < inner_a + 1
    scale = xp.exp(inner_a * xp.log(inner_x) - inner_x - lgamma(xp, inner_a))
    low = _series(xp, inner_a, xp.where(small, inner_x, 0.5))
    high = _fraction(xp, xp.where(small, 1.0, inner_a), xp.where(small, 2.0, inner_x))
    result = xp.where(small, below(low, scale), above(high, scale))
    result = xp.where((inner_x > inner_a) & (scale == 0), at_infinity, result)  # the fraction may have overflown
    result = xp.where((x == 0) & (a > 0), at_zero, xp.where((x == xp.inf) & (a > 0) & xp.isfinite(a), at_infinity, result))
    result = xp.where((a == xp.inf) & xp.isfinite(x) & (x > 0), at_zero, result)
    if bool(large.any()):
        result = xp.where(large, near(of_large(xp, xp.where(large, a, 1.0), xp.where(large, x, 1.0))), result)
    defined = (a > 0) & (x >= 0) & ~((a == xp.inf) & (x == xp.inf))
    return xp.where(defined, result, xp.nan)


def _series(xp: Any, a: Any, x: Any) -> _Part:
    """The sum of `x^n / ((a + 1) ... (a + n))`."""
    term, term_slope = xp.ones_like(x), xp.zeros_like(x)
    value, slope = term, term_slope
    for n in range(1, _MOST_TERMS):
        factor = x / (a + n)
        term_slope = factor * (term_slope - term / (a + n))
        term = term * factor
        value, slope = value + term, slope + term_slope
        if bool((term <= _EPSILON * value).all()) and bool((abs(term_slope) <= _EPSILON * abs(slope)).all()):
            break
    return _Part(value, slope)


def _fraction(xp: Any, a: Any, x: Any) -> _Part:
    """The continued fraction of the upper function, with derivatives by a."""
    y, z, c = 1 - a, x + 2 - a, 0.0
    zero, one = xp.zeros_like(x), xp.ones_like(x)
    before, last = (one, zero, x, zero), (x + 1, zero, z * x, -x)
    value = last[0] / last[2]
    slope = (last[1] - value * last[3]) / last[2]
    settled = xp.zeros_like(x, dtype=bool)  # each element by itself: the last bits of some change for ever
    for _ in range(_MOST_TERMS):
        c, y, z = c + 1, y + 1, z + 2
        p = last[0] * z - before[0] * (y * c)
        p_slope = last[1] * z - last[0] - before[1] * (y * c) + before[0] * c
        q = last[2] * z - before[2] * (y * c)
        q_slope = last[3] * z - last[2] - before[3] * (y * c) + before[2] * c
        safe = xp.where(q == 0, 1.0, q)
        new = xp.where(q == 0, value, p / safe)
        new_slope = xp.where(q == 0, slope, (p_slope - new * q_slope) / safe)
        settled |= (abs(new - value) <= _EPSILON * abs(new)) & (abs(new_slope - slope) <= 4 * _EPSILON * abs(new_slope))
        value, slope = new, new_slope
        scale = xp.where(abs(p) > _BIG, 1 / _BIG, 1.0)
        before, last = tuple([part * scale for part in last]), tuple([part * scale for part in (p, p_slope, q, q_slope)])
        if bool(settled.all()):
            break
    return _Part(value, slope)


def _beta_fraction(xp: Any, a: Any, b: Any, x: Any) -> Any:
    c, d = xp.ones_like(x), 1 - (a + b) * x / (a + 1)
    d = 1 / xp.where(abs(d) < _TINY, _TINY, d)
    result = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for step in (even, odd):
            d = 1 + step * d
            c = 1 + step / c
            d = 1 / xp.where(abs(d) < _TINY, _TINY, d)
            c = xp.where(abs(c) < _TINY, _TINY, c)
            result = result * d * c
        if bool((abs(d * c - 1) <= 4 * _EPSILON).all()):
            break
    return result
