"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from graphcore.functions import binary_grad
from graphcore.inference.shape_fns.common_shape_fns import broadcast_binary_op_shape_fn
from graphcore.opset.framework.block import Example, op
from graphcore.opset.framework.gradient_text import ONE
from graphcore.opset.framework.kernels import ufunc
from graphcore.opset.framework.type_sets import FLOATING, FLOATING_OR_COMPLEX
from graphcore.opset.framework.unary import unary

_ANY: Final = (0.0, 0.5, -2.0)
_INSIDE: Final = (0.0, 0.5, -0.8)
_ONE_MINUS_SQUARE: Final = ("x2 = Square(x)", ONE, "a = Sub(one, x2)")
_ARCSINE: Final = (*_ONE_MINUS_SQUARE, "b = Sqrt(a)", "inv = Reciprocal(b)")


def _function(name: str, ufunc_name: str, doc: str, gradient: Sequence[str], values: Sequence[float] = _ANY, family: type = object) -> None:
    """Register a function of real and complex numbers; `gradient` has the lines of its body."""
    unary(
        name,
        doc,
        ufunc(ufunc_name),
        "\n".join(gradient),
        Example([[*values]]),
        types=FLOATING_OR_COMPLEX,
        cost="transcendental",
        family=family,
    )


_function("Sin", "sin", "The sine of each element, in radians.", ["cos = Cos(x) @ dy", "dx = Mul(dy, cos)"])
_function(
    "Cos",
    "cos",
    "The cosine of each element, in radians.",
    ["sin = Sin(x) @ dy", "neg = Neg(sin)", "dx = Mul(dy, neg)"],
)
_function(
    "Tan",
    "tan",
    "The tangent of each element, in radians.",
    ["cosx = Cos(x)", "secx = Reciprocal(cosx)", "secx2 = Square(secx)", "dx = Mul(dy, secx2)"],
    (0.0, 0.5, -1.2),
)
_function("Asin", "arcsin", "The arcsine in [-pi/2, pi/2]; NaN outside [-1, 1].", [*_ARCSINE, "dx = Mul(dy, inv)"], _INSIDE)
_function("Acos", "arccos", "The arccosine in [0, pi]; NaN outside [-1, 1].", [*_ARCSINE, "neg = Neg(inv)", "dx = Mul(dy, neg)"], _INSIDE)
_function(
    "Atan",
    "arctan",
    "The arctangent in [-pi/2, pi/2].",
    ["x2 = Square(x)", ONE, "a = Add(one, x2)", "inv = Reciprocal(a)", "dx = Mul(dy, inv)"],
    (0.0, 0.5, -3.0),
)
_function("Sinh", "sinh", "The hyperbolic sine of each element.", ["cosh = Cosh(x) @ dy", "dx = Mul(dy, cosh)"])
_function("Cosh", "cosh", "The hyperbolic cosine of each element.", ["sinh = Sinh(x) @ dy", "dx = Mul(dy, sinh)"])


class _HyperbolicTangent:
    layer = "tanh"


_function(
    "Tanh",
    "tanh",
    "The hyperbolic tangent of each element, in (-1, 1).",
    ["y = Tanh(x)", "y2 = Square(y) @ dy", ONE, "a = Sub(one, y2)", "dx = Mul(dy, a)"],
    family=_HyperbolicTangent,
)
_function("Asinh", "arcsinh", "The inverse hyperbolic sine of each element.", ["y = Asinh(x)", "cosh = Cosh(y)", "dx = Div(dy, cosh)"])
_function(
    "Acosh",
    "arccosh",
    "The inverse hyperbolic cosine of each element; NaN below 1.",
    ["y = Acosh(x)", "sinh = Sinh(y)", "dx = Div(dy, sinh)"],
    (1.5, 2.0, 7.0),
)
_function(
    "Atanh",
    "arctanh",
    "The inverse hyperbolic tangent of each element; NaN outside [-1, 1].",
    [*_ONE_MINUS_SQUARE, "inv = Reciprocal(a)", "dx = Mul(dy, inv)"],
    _INSIDE,
)


@op
class Atan2:
    """The angle of the point (x, y) from the origin, in [-pi, pi]."""

    cost = "transcendental"
    signature = f"Atan2[T:{FLOATING}](y:T, x:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    kernel = ufunc("arctan2")
    gradient = binary_grad("""
        x2 = Square(x)
        y2 = Square(y)
        r2 = Add(x2, y2)
        g = Div(dz, r2)
        gx = Mul(g, y)
        nx = Neg(x)
        gy = Mul(g, nx)
    """)
    examples = (Example([[1.0, -1.0, 0.5], [1.0, 2.0, -3.0]]), Example([[[1.0], [-2.0]], [1.0, 2.0]]))
