"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

from graphcore.functions import binary_grad
from graphcore.inference.shape_fns.common_shape_fns import broadcast_binary_op_shape_fn
from graphcore.opset.framework.block import Example, op
from graphcore.opset.framework.gradient_text import ONE
from graphcore.opset.framework.kernels import ufunc
from graphcore.opset.framework.type_sets import FLOATING, FLOATING_OR_COMPLEX
from graphcore.opset.framework.unary import unary

unary(
    "Sin",
    "The sine of each element, in radians.",
    ufunc("sin"),
    """
        cos = Cos(x) @ dy
        dx = Mul(dy, cos)
    """,
    Example([[0.0, 0.5, -2.0]]),
    types=FLOATING_OR_COMPLEX,
    cost="transcendental",
)

unary(
    "Cos",
    "The cosine of each element, in radians.",
    ufunc("cos"),
    """
        sin = Sin(x) @ dy
        neg = Neg(sin)
        dx = Mul(dy, neg)
    """,
    Example([[0.0, 0.5, -2.0]]),
    types=FLOATING_OR_COMPLEX,
    cost="transcendental",
)

unary(
    "Tan",
    "The tangent of each element, in radians.",
    ufunc("tan"),
    """
        cosx = Cos(x)
        secx = Reciprocal(cosx)
        secx2 = Square(secx)
        dx = Mul(dy, secx2)
    """,
    Example([[0.0, 0.5, -1.2]]),
    types=FLOATING_OR_COMPLEX,
    cost="transcendental",
)

unary(
    "Asin",
    "The arcsine in [-pi/2, pi/2]; NaN outside [-1, 1].",
    ufunc("arcsin"),
    f"""
        x2 = Square(x)
        {ONE}
        a = Sub(one, x2)
        b = Sqrt(a)
        inv = Reciprocal(b)
        dx = Mul(dy, inv)
    """,
    Example([[0.0, 0.5, -0.8]]),
    types=FLOATING_OR_COMPLEX,
)

unary(
    "Acos",
    "The arccosine in [0, pi]; NaN outside [-1, 1].",
    ufunc("arccos"),
    f"""
        x2 = Square(x)
        {ONE}
        a = Sub(one, x2)
        b = Sqrt(a)
        inv = Reciprocal(b)
        neg = Neg(inv)
        dx = Mul(dy, neg)
    """,
    Example([[0.0, 0.5, -0.8]]),
    types=FLOATING_OR_COMPLEX,
)

unary(
    "Atan",
    "The arctangent in [-pi/2, pi/2].",
    ufunc("arctan"),
    f"""
        x2 = Square(x)
        {ONE}
        a = Add(one, x2)
        inv = Reciprocal(a)
        dx = Mul(dy, inv)
    """,
    Example([[0.0, 0.5, -3.0]]),
    types=FLOATING_OR_COMPLEX,
)


@op
class Atan2:
    """The angle of the point (x, y) from the origin, in [-pi, pi]."""

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


unary(
    "Sinh",
    "The hyperbolic sine of each element.",
    ufunc("sinh"),
    """
        cosh = Cosh(x) @ dy
        dx = Mul(dy, cosh)
    """,
    Example([[0.0, 0.5, -2.0]]),
    types=FLOATING_OR_COMPLEX,
)

unary(
    "Cosh",
    "The hyperbolic cosine of each element.",
    ufunc("cosh"),
    """
        sinh = Sinh(x) @ dy
        dx = Mul(dy, sinh)
    """,
    Example([[0.0, 0.5, -2.0]]),
    types=FLOATING_OR_COMPLEX,
)

unary(
    "Tanh",
    "The hyperbolic tangent of each element, in (-1, 1).",
    ufunc("tanh"),
    f"""
        y = Tanh(x)
        y2 = Square(y) @ dy
        {ONE}
        a = Sub(one, y2)
        dx = Mul(dy, a)
    """,
    Example([[0.0, 0.5, -2.0]]),
    types=FLOATING_OR_COMPLEX,
    cost="transcendental",
)

unary(
    "Asinh",
    "The inverse hyperbolic sine of each element.",
    ufunc("arcsinh"),
    """
        y = Asinh(x)
        cosh = Cosh(y)
        dx = Div(dy, cosh)
    """,
    Example([[0.0, 0.5, -2.0]]),
    types=FLOATING_OR_COMPLEX,
)

unary(
    "Acosh",
    "The inverse hyperbolic cosine of each element; NaN below 1.",
    ufunc("arccosh"),
    """
        y = Acosh(x)
        sinh = Sinh(y)
        dx = Div(dy, sinh)
    """,
    Example([[1.5, 2.0, 7.0]]),
    types=FLOATING_OR_COMPLEX,
)

unary(
    "Atanh",
    "The inverse hyperbolic tangent of each element; NaN outside [-1, 1].",
    ufunc("arctanh"),
    f"""
        x2 = Square(x)
        {ONE}
        a = Sub(one, x2)
        inv = Reciprocal(a)
        dx = Mul(dy, inv)
    """,
    Example([[0.0, 0.5, -0.8]]),
    types=FLOATING_OR_COMPLEX,
)
