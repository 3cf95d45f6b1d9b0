"""Arithmetic on single values: sign, powers, roots, exponentials, logarithms, rounding."""

from __future__ import annotations

from typing import Any

from graphcore.functions import unary_grad
from graphcore.inference.shape_fns.common_shape_fns import unchanged_shape
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.families import Elementwise
from graphcore.opset.framework.gradient_text import ONE, holomorphic, scalar
from graphcore.opset.framework.kernels import floating_ufunc, ufunc
from graphcore.opset.framework.type_sets import FLOATING, FLOATING_OR_COMPLEX, SIGNED


@op
class Neg:
    """The negative of each element."""

    signature = f"Neg[T:{SIGNED}](x:T) -> (y:T)"
    shape = unchanged_shape
    kernel = ufunc("negative")
    gradient = unary_grad("dx = Neg(dy)")
    examples = (Example([[-2.0, 3.0]], outputs=[[2.0, -3.0]]),)


@op
class Abs:
    """The absolute value of each element. For complex numbers see ComplexAbs."""

    signature = "Abs[T:{bfloat16, half, float, double, int8, int16, int32, int64}](x:T) -> (y:T)"
    shape = unchanged_shape
    kernel = ufunc("absolute")
    gradient = unary_grad("""
        sign = Sign(x) @ dy
        dx = Mul(dy, sign)
    """)
    examples = (Example([[-2.0, 3.0]], outputs=[[2.0, 3.0]]),)


@op
class Sign:
    """-1, 0 or 1 by the sign of each element; for complex numbers `x / |x|`, and 0 for 0."""

    signature = f"Sign[T:{SIGNED}](x:T) -> (y:T)"
    shape = unchanged_shape
    kernel = ufunc("sign")
    gradient = unary_grad(f"""
        s = Shape(x)
        zero = {scalar("float", 0)}
        val = Cast[SrcT=float, DstT=$T](zero)
        dx = Fill(s, val)
    """)
    examples = (Example([[-2.0, 3.0]], outputs=[[-1.0, 1.0]]),)


@op
class Square:
    """`x * x`, element by element."""

    signature = "Square[T:{bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}](x:T) -> (y:T)"
    shape = unchanged_shape
    kernel = ufunc("square")
    gradient = holomorphic(
        unary_grad(f"""
        c = {scalar("int64", 2)}
        two = Cast[SrcT=int64, DstT=$T](c)
        x2 = Mul(x, two) @ dy
        dx = Mul(dy, x2)
    """)
    )
    examples = (Example([[-2.0, 3.0]], outputs=[[4.0, 9.0]]),)


@op
class Sqrt:
    """The square root of each element; NaN for negative real numbers."""

    signature = f"Sqrt[T:{FLOATING_OR_COMPLEX}](x:T) -> (y:T)"
    shape = unchanged_shape
    kernel = ufunc("sqrt")
    gradient = holomorphic(
        unary_grad(f"""
        y = Sqrt(x)
        y_inv = Reciprocal(y) @ dy
        const = {scalar("float", 0.5)}
        half = Cast[SrcT=float, DstT=$T](const)
        a = Mul(half, y_inv)
        dx = Mul(dy, a)
    """)
    )
    examples = (Example([[4.0, 2.25]], outputs=[[2.0, 1.5]]),)


@op
class Rsqrt(Elementwise):
    """`1 / sqrt(x)`, element by element."""

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
    examples = (Example([[4.0, 0.25]], outputs=[[0.5, 2.0]]),)

    def kernel(k: KernelContext) -> Kernel:
        sqrt, reciprocal = k.xp.sqrt, k.xp.reciprocal

        def rsqrt(x: Any) -> Any:
            root = sqrt(x)
            return reciprocal(root, root) if root.shape else reciprocal(root)

        return rsqrt


@op
class Reciprocal:
    """`1 / x`, element by element."""

    signature = f"Reciprocal[T:{SIGNED}](x:T) -> (y:T)"
    shape = unchanged_shape
    kernel = floating_ufunc("reciprocal")
    gradient = holomorphic(
        unary_grad("""
        y = Reciprocal(x)
        y2 = Square(y) @ dy
        y2_neg = Neg(y2)
        dx = Mul(dy, y2_neg)
    """)
    )
    examples = (Example([[4.0, -0.5]], outputs=[[0.25, -2.0]]),)


@op
class Inv:
    """`1 / x`, element by element (the older name of Reciprocal)."""

    signature = f"Inv[T:{SIGNED}](x:T) -> (y:T)"
    shape = unchanged_shape
    kernel = floating_ufunc("reciprocal")
    gradient = Reciprocal.gradient
    examples = (Example([[4.0, -0.5]], outputs=[[0.25, -2.0]]),)


@op
class Exp:
    """e to the power of each element."""

    signature = f"Exp[T:{FLOATING_OR_COMPLEX}](x:T) -> (y:T)"
    shape = unchanged_shape
    cost = "transcendental"
    kernel = ufunc("exp")
    gradient = holomorphic(
        unary_grad("""
        y = Exp(x)
        dx = Mul(dy, y)
    """)
    )
    examples = (Example([[0.0, 1.0, -2.0]]),)


@op
class Expm1:
    """`exp(x) - 1`, exact near 0."""

    signature = f"Expm1[T:{FLOATING_OR_COMPLEX}](x:T) -> (y:T)"
    shape = unchanged_shape
    cost = "transcendental"
    kernel = ufunc("expm1")
    gradient = Exp.gradient
    examples = (Example([[0.0, 1.0, -2.0]]),)


@op
class Log:
    """The natural logarithm of each element: -inf at 0, NaN for negative real numbers."""

    signature = f"Log[T:{FLOATING_OR_COMPLEX}](x:T) -> (y:T)"
    shape = unchanged_shape
    cost = "transcendental"
    kernel = ufunc("log")
    gradient = holomorphic(
        unary_grad("""
        x_inv = Reciprocal(x) @ dy
        dx = Mul(dy, x_inv)
    """)
    )
    examples = (Example([[1.0, 0.5, 4.0]]),)


@op
class Log1p:
    """`log(1 + x)`, exact near 0."""

    signature = f"Log1p[T:{FLOATING_OR_COMPLEX}](x:T) -> (y:T)"
    shape = unchanged_shape
    cost = "transcendental"
    kernel = ufunc("log1p")
    gradient = holomorphic(
        unary_grad(f"""
        {ONE}
        a = Add(one, x)
        dx = Div(dy, a)
    """)
    )
    examples = (Example([[0.0, -0.5, 4.0]]),)


@op
class Floor:
    """The largest integer not above each element, in the same type."""

    signature = f"Floor[T:{FLOATING}](x:T) -> (y:T)"
    shape = unchanged_shape
    kernel = ufunc("floor")
    gradient = NO_GRADIENT
    examples = (Example([[-1.5, 1.5]], outputs=[[-2.0, 1.0]]),)


@op
class Ceil:
    """The smallest integer not below each element, in the same type."""

    signature = f"Ceil[T:{FLOATING}](x:T) -> (y:T)"
    shape = unchanged_shape
    kernel = ufunc("ceil")
    gradient = NO_GRADIENT
    examples = (Example([[-1.5, 1.5]], outputs=[[-1.0, 2.0]]),)


@op
class Rint:
    """The nearest integer of each element, ties to the even one, in the same type."""

    signature = f"Rint[T:{FLOATING}](x:T) -> (y:T)"
    shape = unchanged_shape
    kernel = ufunc("rint")
    gradient = NO_GRADIENT
    examples = (Example([[-1.5, 0.5, 2.6]], outputs=[[-2.0, 0.0, 3.0]]),)


@op
class Round(Elementwise):
    """The nearest integer of each element, ties to the even one; integers are unchanged."""

    signature = f"Round[T:{SIGNED}](x:T) -> (y:T)"
    shape = unchanged_shape
    gradient = NO_GRADIENT
    examples = (Example([[-1.5, 0.5, 2.6]], outputs=[[-2.0, 0.0, 3.0]]), Example([[1, -2]], outputs=[[1, -2]]))

    def kernel(k: KernelContext) -> Kernel:
        rint: Kernel = k.xp.positive if k.output_types[0].is_integer else k.xp.rint
        return rint


@op
class IsNan:
    """True where an element is NaN."""

    signature = f"IsNan[T:{FLOATING}](x:T) -> (y:bool)"
    shape = unchanged_shape
    kernel = ufunc("isnan")
    gradient = NO_GRADIENT
    examples = (Example([[1.0, float("nan")]], outputs=[[False, True]]),)


@op
class IsInf:
    """True where an element is plus or minus infinity."""

    signature = f"IsInf[T:{FLOATING}](x:T) -> (y:bool)"
    shape = unchanged_shape
    kernel = ufunc("isinf")
    gradient = NO_GRADIENT
    examples = (Example([[1.0, float("-inf")]], outputs=[[False, True]]),)


@op
class IsFinite:
    """True where an element is neither NaN nor infinite."""

    signature = f"IsFinite[T:{FLOATING}](x:T) -> (y:bool)"
    shape = unchanged_shape
    kernel = ufunc("isfinite")
    gradient = NO_GRADIENT
    examples = (Example([[1.0, float("inf")]], outputs=[[True, False]]),)
