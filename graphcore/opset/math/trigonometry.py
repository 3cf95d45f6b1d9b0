"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

from graphcore.functions import binary_grad, unary_grad
from graphcore.inference.shape_fns.common_shape_fns import broadcast_binary_op_shape_fn, unchanged_shape
from graphcore.opset.framework.block import Example, op
from graphcore.opset.framework.gradient_text import ONE, holomorphic
from graphcore.opset.framework.kernels import ufunc
from graphcore.opset.framework.type_sets import FLOATING, FLOATING_OR_COMPLEX


@op
class Sin:
    """The sine of each element, in radians."""

    signature = f"Sin[T:{FLOATING_OR_COMPLEX}](x:T) -> (y:T)"
    shape = unchanged_shape
    cost = "transcendental"
    kernel = ufunc("sin")
    gradient = holomorphic(
        unary_grad("""
        cos = Cos(x) @ dy
        dx = Mul(dy, cos)
    """)
    )
    examples = (Example([[0.0, 0.5, -2.0]]),)


@op
class Cos:
    """The cosine of each element, in radians."""

    signature = f"Cos[T:{FLOATING_OR_COMPLEX}](x:T) -> (y:T)"
    shape = unchanged_shape
    cost = "transcendental"
    kernel = ufunc("cos")
    gradient = holomorphic(
        unary_grad("""
        sin = Sin(x) @ dy
        neg = Neg(sin)
        dx = Mul(dy, neg)
    """)
    )
    examples = (Example([[0.0, 0.5, -2.0]]),)


@op
class Tan:
    """The tangent of each element, in radians."""

    signature = f"Tan[T:{FLOATING_OR_COMPLEX}](x:T) -> (y:T)"
    shape = unchanged_shape
    cost = "transcendental"
    kernel = ufunc("tan")
    gradient = holomorphic(
        unary_grad("""
        cosx = Cos(x)
        secx = Reciprocal(cosx)
        secx2 = Square(secx)
        dx = Mul(dy, secx2)
    """)
    )
    examples = (Example([[0.0, 0.5, -1.2]]),)


@op
class Asin:
    """The arcsine in [-pi/2, pi/2]; NaN outside [-1, 1]."""

    signature = f"Asin[T:{FLOATING_OR_COMPLEX}](x:T) -> (y:T)"
    shape = unchanged_shape
    kernel = ufunc("arcsin")
    gradient = holomorphic(
        unary_grad(f"""
        x2 = Square(x)
        {ONE}
        a = Sub(one, x2)
        b = Sqrt(a)
        inv = Reciprocal(b)
        dx = Mul(dy, inv)
    """)
    )
    examples = (Example([[0.0, 0.5, -0.8]]),)


@op
class Acos:
    """The arccosine in [0, pi]; NaN outside [-1, 1]."""

    signature = f"Acos[T:{FLOATING_OR_COMPLEX}](x:T) -> (y:T)"
    shape = unchanged_shape
    kernel = ufunc("arccos")
    gradient = holomorphic(
        unary_grad(f"""
        x2 = Square(x)
        {ONE}
        a = Sub(one, x2)
        b = Sqrt(a)
        inv = Reciprocal(b)
        neg = Neg(inv)
        dx = Mul(dy, neg)
    """)
    )
    examples = (Example([[0.0, 0.5, -0.8]]),)


@op
class Atan:
    """The arctangent in [-pi/2, pi/2]."""

    signature = f"Atan[T:{FLOATING_OR_COMPLEX}](x:T) -> (y:T)"
    shape = unchanged_shape
    kernel = ufunc("arctan")
    gradient = holomorphic(
        unary_grad(f"""
        x2 = Square(x)
        {ONE}
        a = Add(one, x2)
        inv = Reciprocal(a)
        dx = Mul(dy, inv)
    """)
    )
    examples = (Example([[0.0, 0.5, -3.0]]),)


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


@op
class Sinh:
    """The hyperbolic sine of each element."""

    signature = f"Sinh[T:{FLOATING_OR_COMPLEX}](x:T) -> (y:T)"
    shape = unchanged_shape
    kernel = ufunc("sinh")
    gradient = holomorphic(
        unary_grad("""
        cosh = Cosh(x) @ dy
        dx = Mul(dy, cosh)
    """)
    )
    examples = (Example([[0.0, 0.5, -2.0]]),)


@op
class Cosh:
    """The hyperbolic cosine of each element."""

    signature = f"Cosh[T:{FLOATING_OR_COMPLEX}](x:T) -> (y:T)"
    shape = unchanged_shape
    kernel = ufunc("cosh")
    gradient = holomorphic(
        unary_grad("""
        sinh = Sinh(x) @ dy
        dx = Mul(dy, sinh)
    """)
    )
    examples = (Example([[0.0, 0.5, -2.0]]),)


@op
class Tanh:
    """The hyperbolic tangent of each element, in (-1, 1)."""

    signature = f"Tanh[T:{FLOATING_OR_COMPLEX}](x:T) -> (y:T)"
    shape = unchanged_shape
    cost = "transcendental"
    kernel = ufunc("tanh")
    gradient = holomorphic(
        unary_grad(f"""
        y = Tanh(x)
        y2 = Square(y) @ dy
        {ONE}
        a = Sub(one, y2)
        dx = Mul(dy, a)
    """)
    )
    examples = (Example([[0.0, 0.5, -2.0]]),)


@op
class Asinh:
    """The inverse hyperbolic sine of each element."""

    signature = f"Asinh[T:{FLOATING_OR_COMPLEX}](x:T) -> (y:T)"
    shape = unchanged_shape
    kernel = ufunc("arcsinh")
    gradient = holomorphic(
        unary_grad("""
        y = Asinh(x)
        cosh = Cosh(y)
        dx = Div(dy, cosh)
    """)
    )
    examples = (Example([[0.0, 0.5, -2.0]]),)


@op
class Acosh:
    """The inverse hyperbolic cosine of each element; NaN below 1."""

    signature = f"Acosh[T:{FLOATING_OR_COMPLEX}](x:T) -> (y:T)"
    shape = unchanged_shape
    kernel = ufunc("arccosh")
    gradient = holomorphic(
        unary_grad("""
        y = Acosh(x)
        sinh = Sinh(y)
        dx = Div(dy, sinh)
    """)
    )
    examples = (Example([[1.5, 2.0, 7.0]]),)


@op
class Atanh:
    """The inverse hyperbolic tangent of each element; NaN outside [-1, 1]."""

    signature = f"Atanh[T:{FLOATING_OR_COMPLEX}](x:T) -> (y:T)"
    shape = unchanged_shape
    kernel = ufunc("arctanh")
    gradient = holomorphic(
        unary_grad(f"""
        x2 = Square(x)
        {ONE}
        a = Sub(one, x2)
        inv = Reciprocal(a)
        dx = Mul(dy, inv)
    """)
    )
    examples = (Example([[0.0, 0.5, -0.8]]),)
