"""Arithmetic on single values: sign, powers, roots, exponentials, logarithms, rounding."""

from __future__ import annotations

from typing import Final

from graphcore.functions import unary_grad
from graphcore.inference.shape_fns.common_shape_fns import unchanged_shape
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.families import Elementwise
from graphcore.opset.framework.gradient_text import ONE, gradient_from_value, holomorphic, scalar
from graphcore.opset.framework.kernels import floating_ufunc, into_itself, ufunc
from graphcore.opset.framework.type_sets import FLOATING_OR_COMPLEX, SIGNED
from graphcore.opset.framework.unary import unary

_RECIPROCAL_GRADIENT: Final = """
        y = Reciprocal(x)
        y2 = Square(y) @ dy
        y2_neg = Neg(y2)
        dx = Mul(dy, y2_neg)
    """
_EXP_GRADIENT: Final = """
        y = Exp(x)
        dx = Mul(dy, y)
    """

unary(
    "Neg",
    "The negative of each element.",
    ufunc("negative"),
    unary_grad("dx = Neg(dy)"),
    Example([[-2.0, 3.0]], outputs=[[2.0, -3.0]]),
    types=SIGNED,
)

unary(
    "Abs",
    "The absolute value of each element. For complex numbers see ComplexAbs.",
    ufunc("absolute"),
    """
        sign = Sign(x) @ dy
        dx = Mul(dy, sign)
    """,
    Example([[-2.0, 3.0]], outputs=[[2.0, 3.0]]),
    types="{bfloat16, half, float, double, int8, int16, int32, int64}",
)

unary(
    "Sign",
    "-1, 0 or 1 by the sign of each element; for complex numbers `x / |x|`, and 0 for 0.",
    ufunc("sign"),
    unary_grad(f"""
        s = Shape(x)
        zero = {scalar("float", 0)}
        val = Cast[SrcT=float, DstT=$T](zero)
        dx = Fill(s, val)
    """),
    Example([[-2.0, 3.0]], outputs=[[-1.0, 1.0]]),
    types=SIGNED,
)

unary(
    "Square",
    "`x * x`, element by element.",
    ufunc("square"),
    f"""
        c = {scalar("int64", 2)}
        two = Cast[SrcT=int64, DstT=$T](c)
        x2 = Mul(x, two) @ dy
        dx = Mul(dy, x2)
    """,
    Example([[-2.0, 3.0]], outputs=[[4.0, 9.0]]),
    types="{bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}",
)

unary(
    "Sqrt",
    "The square root of each element; NaN for negative real numbers.",
    ufunc("sqrt"),
    f"""
        y = Sqrt(x)
        y_inv = Reciprocal(y) @ dy
        const = {scalar("float", 0.5)}
        half = Cast[SrcT=float, DstT=$T](const)
        a = Mul(half, y_inv)
        dx = Mul(dy, a)
    """,
    Example([[4.0, 2.25]], outputs=[[2.0, 1.5]]),
    types=FLOATING_OR_COMPLEX,
    exact_gradient=gradient_from_value("Sqrt"),
)


@op
class Rsqrt(Elementwise):
    """`1 / sqrt(x)`, element by element."""

    layer = "normalization"
    signature = f"Rsqrt[T:{FLOATING_OR_COMPLEX}](x:T) -> (y:T)"
    shape = unchanged_shape
    gradient = holomorphic(
        unary_grad(f"""
        x_inv = Reciprocal(x) @ dy
        y = Rsqrt(x)
        const = {scalar("float", -0.5)}
        neghalf = Cast[SrcT=float, DstT=$T](const)
        a = Mul(neghalf, x_inv)
        b = Mul(a, y)
        dx = Mul(dy, b)
    """)
    )
    exact_gradient = gradient_from_value("Rsqrt")
    examples = (Example([[4.0, 0.25]], outputs=[[0.5, 2.0]]),)

    def kernel(k: KernelContext) -> Kernel:
        sqrt, reciprocal = k.xp.sqrt, into_itself(k.xp, "reciprocal")
        return lambda x: reciprocal(sqrt(x))


unary(
    "Reciprocal",
    "`1 / x`, element by element.",
    floating_ufunc("reciprocal"),
    _RECIPROCAL_GRADIENT,
    Example([[4.0, -0.5]], outputs=[[0.25, -2.0]]),
    types=SIGNED,
    exact_gradient=gradient_from_value("Reciprocal"),
)

unary(
    "Inv",
    "`1 / x`, element by element (the older name of Reciprocal).",
    floating_ufunc("reciprocal"),
    _RECIPROCAL_GRADIENT,
    Example([[4.0, -0.5]], outputs=[[0.25, -2.0]]),
    types=SIGNED,
    exact_gradient=gradient_from_value("Inv"),
)

unary(
    "Exp",
    "e to the power of each element.",
    ufunc("exp"),
    _EXP_GRADIENT,
    Example([[0.0, 1.0, -2.0]]),
    types=FLOATING_OR_COMPLEX,
    cost="transcendental",
)

unary(
    "Expm1",
    "`exp(x) - 1`, exact near 0.",
    ufunc("expm1"),
    _EXP_GRADIENT,
    Example([[0.0, 1.0, -2.0]]),
    types=FLOATING_OR_COMPLEX,
    cost="transcendental",
)

unary(
    "Log",
    "The natural logarithm of each element: -inf at 0, NaN for negative real numbers.",
    ufunc("log"),
    """
        x_inv = Reciprocal(x) @ dy
        dx = Mul(dy, x_inv)
    """,
    Example([[1.0, 0.5, 4.0]]),
    types=FLOATING_OR_COMPLEX,
    cost="transcendental",
)

unary(
    "Log1p",
    "`log(1 + x)`, exact near 0.",
    ufunc("log1p"),
    f"""
        {ONE}
        a = Add(one, x)
        dx = Div(dy, a)
    """,
    Example([[0.0, -0.5, 4.0]]),
    types=FLOATING_OR_COMPLEX,
    cost="transcendental",
)

unary(
    "Floor",
    "The largest integer not above each element, in the same type.",
    ufunc("floor"),
    NO_GRADIENT,
    Example([[-1.5, 1.5]], outputs=[[-2.0, 1.0]]),
)

unary(
    "Ceil",
    "The smallest integer not below each element, in the same type.",
    ufunc("ceil"),
    NO_GRADIENT,
    Example([[-1.5, 1.5]], outputs=[[-1.0, 2.0]]),
)

unary(
    "Rint",
    "The nearest integer of each element, ties to the even one, in the same type.",
    ufunc("rint"),
    NO_GRADIENT,
    Example([[-1.5, 0.5, 2.6]], outputs=[[-2.0, 0.0, 3.0]]),
)


@op
class Round(Elementwise):
    """The nearest integer of each element, ties to the even one; integers are unchanged."""

    signature = f"Round[T:{SIGNED}](x:T) -> (y:T)"
    reuses_input = True
    shape = unchanged_shape
    gradient = NO_GRADIENT
    examples = (Example([[-1.5, 0.5, 2.6]], outputs=[[-2.0, 0.0, 3.0]]), Example([[1, -2]], outputs=[[1, -2]]))

    def kernel(k: KernelContext) -> Kernel:
        rint: Kernel = k.xp.positive if k.output_types[0].is_integer else k.xp.rint
        return rint


unary(
    "IsNan",
    "True where an element is NaN.",
    ufunc("isnan"),
    NO_GRADIENT,
    Example([[1.0, float("nan")]], outputs=[[False, True]]),
    output="bool",
)

unary(
    "IsInf",
    "True where an element is plus or minus infinity.",
    ufunc("isinf"),
    NO_GRADIENT,
    Example([[1.0, float("-inf")]], outputs=[[False, True]]),
    output="bool",
)

unary(
    "IsFinite",
    "True where an element is neither NaN nor infinite.",
    ufunc("isfinite"),
    NO_GRADIENT,
    Example([[1.0, float("inf")]], outputs=[[True, False]]),
    output="bool",
)
