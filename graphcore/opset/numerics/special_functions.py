"""Special functions as rational approximations: erf, its inverses, lgamma, digamma, zeta.

All compute in double precision, elementwise, with `xp` NumPy or CuPy. The rational approximations are those of Cephes (Moshier), the
starting point of the inverse error function is Giles' (2010); each is refined or reflected to the whole axis here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

_ERF_P: Final = (
    9.60497373987051638749e0,
    9.00260197203842689217e1,
    2.23200534594684319226e3,
    7.00332514112805075473e3,
    5.55923013010394962768e4,
)
_ERF_Q: Final = (
    1.0,
    3.35617141647503099647e1,
    5.21357949780152679795e2,
    4.59432382970980127987e3,
    2.26290000613890934246e4,
    4.92673942608635921086e4,
)
_ERFC_P: Final = (
    2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0, 4.86371970985681366614e1, 1.96520832956077098242e2,
    5.26445194995477358631e2, 9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2,
)  # fmt: skip
_ERFC_Q: Final = (
    1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2, 9.75708501743205489753e2, 1.82390916687909736289e3,
    2.24633760818710981792e3, 1.65666309194161350182e3, 5.57535340817727675546e2,
)  # fmt: skip
_ERFC_R: Final = (
    5.64189583547755073984e-1,
    1.27536670759978104416e0,
    5.01905042251180477414e0,
    6.16021097993053585195e0,
    7.40974269950448939160e0,
    2.97886665372100240670e0,
)
_ERFC_S: Final = (
    1.0,
    2.26052863220117276590e0,
    9.39603524938001434673e0,
    1.20489539808096656605e1,
    1.70814450747565897222e1,
    9.60896809063285878198e0,
    3.36907645100081516050e0,
)
_CENTRAL: Final = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
_TAIL: Final = (
    -0.000200214257,
    0.000100950558,
    0.00134934322,
    -0.00367342844,
    0.00573950773,
    -0.0076224613,
    0.00943887047,
    1.00167406,
    2.83297682,
)
_LANCZOS: Final = (
    0.99999999999980993227684700473478, 676.520368121885098567009190444019, -1259.13921672240287047156078755283, 771.3234287776530788486528258894,
    -176.61502916214059906584551354, 12.507343278686904814458936853, -0.13857109526572011689554707, 9.984369578019570859563e-6, 1.50563273514931155834e-7,
)  # fmt: skip
_BERNOULLI: Final = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_SHIFT: Final = 10
_REFINEMENTS: Final = 2
_ERFC_FAR: Final = 8.0
_ERFC_VANISHES: Final = 27.5
_TAIL_BEGINS: Final = 5.0


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """The polynomial with these coefficients, highest power first, by Horner's rule."""
    result = coefficients[0]
    for coefficient in coefficients[1:]:
        result = result * x + coefficient
    return result


def erf(xp: Any, x: Any) -> Any:
    """2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x."""
    square = x * x
    near = x * polynomial(square, _ERF_P) / polynomial(square, _ERF_Q)
    return xp.where(xp.abs(x) <= 1, near, xp.copysign(1 - _erfc_positive(xp, xp.abs(x)), x))


def erfc(xp: Any, x: Any) -> Any:
    """1 - erf(x), exact where that is tiny."""
    square = x * x
    near = 1 - x * polynomial(square, _ERF_P) / polynomial(square, _ERF_Q)
    far = _erfc_positive(xp, xp.abs(x))
    return xp.where(xp.abs(x) <= 1, near, xp.where(x < 0, 2 - far, far))


def _erfc_positive(xp: Any, x: Any) -> Any:
    middle = polynomial(x, _ERFC_P) / polynomial(x, _ERFC_Q)
    far = polynomial(x, _ERFC_R) / polynomial(x, _ERFC_S)
    return xp.where(x > _ERFC_VANISHES, 0.0, xp.exp(-x * x) * xp.where(x < _ERFC_FAR, middle, far))


def erfinv(xp: Any, y: Any) -> Any:
    """The inverse of erf; infinite at -1 and 1, NaN beyond."""
    w = -xp.log1p(-y * y)
    central = polynomial(w - 2.5, _CENTRAL)
    tail = polynomial(xp.sqrt(w) - 3, _TAIL)
    x = xp.where(w < _TAIL_BEGINS, central, tail) * y
    for _ in range(_REFINEMENTS):
        x = x - _erf_error(xp, x, y) / (2 / math.sqrt(math.pi) * xp.exp(-x * x))
    return xp.where(xp.abs(y) == 1, xp.copysign(np.inf, y), x)


def _erf_error(xp: Any, x: Any, y: Any) -> Any:
    """The difference of erf(x) and y, computed from the nearer end of the range."""
    return xp.where(xp.abs(y) < 0.5, erf(xp, x) - y, xp.sign(y) * ((1 - xp.abs(y)) - erfc(xp, xp.abs(x))))


def ndtri(xp: Any, p: Any) -> Any:
    """The quantile of the normal distribution at probability p."""
    return math.sqrt(2) * erfinv(xp, 2 * p - 1)


def lgamma(xp: Any, x: Any) -> Any:
    """The logarithm of the absolute value of the gamma function; infinite at 0, -1, -2, ..."""
    mirrored = xp.where(x < 0.5, 1 - x, x)
    base = mirrored - 1
    series = _LANCZOS[0] + sum(coefficient / (base + i) for i, coefficient in enumerate(_LANCZOS[1:], 1))
    t = base + len(_LANCZOS) - 1.5
    positive = 0.5 * math.log(2 * math.pi) + (base + 0.5) * xp.log(t) - t + xp.log(series)
    reflected = math.log(math.pi) - xp.log(xp.abs(xp.sin(math.pi * (x - xp.floor(x))))) - positive
    return xp.where(xp.isinf(x) | ((x <= 0) & (x == xp.floor(x))), np.inf, xp.where(x < 0.5, reflected, positive))


def digamma(xp: Any, x: Any) -> Any:
    """The derivative of lgamma; NaN at 0, -1, -2, ..."""
    mirrored = xp.where(x <= 0, 1 - x, x)
    low = sum(1 / (mirrored + i) for i in range(_SHIFT))
    z = mirrored + _SHIFT
    inverse = 1 / (z * z)
    series = polynomial(inverse, [b / (2 * i) for i, b in reversed(list(enumerate(_BERNOULLI, 1)))]) * inverse
    positive = xp.log(z) - 0.5 / z - series - low
    fraction = x - xp.floor(x)
    reflected = positive - math.pi / xp.tan(math.pi * fraction)
    return xp.where(x <= 0, xp.where(fraction == 0, np.nan, reflected), positive)


def zeta(xp: Any, x: Any, q: Any) -> Any:
    """The sum of (q + i)^-x over i = 0, 1, ... for x > 1 (Hurwitz), by Euler's and Maclaurin's formula."""
    head = sum((q + i) ** -x for i in range(_SHIFT))
    z = q + _SHIFT
    result = head + z ** (1 - x) / (x - 1) + 0.5 * z**-x
    factor = x * z ** (-x - 1)
    for i, bernoulli in enumerate(_BERNOULLI, 1):
        result = result + bernoulli / math.factorial(2 * i) * factor
        factor = factor * (x + 2 * i - 1) * (x + 2 * i) / (z * z)
    at_pole = (q <= 0) & (q == xp.floor(q))
    result = xp.where(at_pole, xp.where(x % 2 == 0, np.inf, np.nan), result)
    for_infinite = xp.where(q > 1, 0.0, xp.where(q == 1, 1.0, np.inf))
    result = xp.where((x == np.inf) & ~xp.isnan(q), for_infinite, result)
    return xp.where(x == 1, np.inf, xp.where(x < 1, np.nan, result))


def polygamma(xp: Any, order: Any, x: Any) -> Any:
    """The derivative of digamma of that order, a whole number >= 0."""
    factorial = xp.exp(lgamma(xp, order + 1))
    higher = xp.where(order % 2 == 0, -1.0, 1.0) * factorial * zeta(xp, xp.maximum(order, 1) + 1, x)
    valid = (order >= 0) & (order == xp.floor(order))
    return xp.where(valid, xp.where(order == 0, digamma(xp, x), higher), np.nan)
