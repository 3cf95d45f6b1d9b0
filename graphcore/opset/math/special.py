"""Special functions as ops: error function, gamma function and their relatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from graphcore.functions import binary_grad
from graphcore.inference.shape_fns.common_shape_fns import broadcast_binary_op_shape_fn
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.families import Elementwise
from graphcore.opset.framework.gradient_text import scalar
from graphcore.opset.framework.unary import unary
from graphcore.opset.numerics import special_functions
from graphcore.registry import KernelFactory


def _in_double(function: Callable[..., Any]) -> KernelFactory:
    """A kernel that computes in double precision and casts to the type of its inputs."""

    def kernel(k: KernelContext) -> Kernel:
        xp, dtype = k.xp, k.dtype("T")
        return lambda *inputs: function(xp, *[x.astype(np.float64) for x in inputs]).astype(dtype)

    return kernel


def _constant(name: str, value: float) -> str:
    """A constant of type T. Given as a double, so that doubles are exact."""
    return f"{name}_const = {scalar('double', value)}\n        {name} = Cast[SrcT=double, DstT=$T]({name}_const)"


unary(
    "Erf",
    "The error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.",
    _in_double(special_functions.erf),
    f"""
        {_constant("two_over_root_pi", 2 / math.sqrt(math.pi))}
        x2 = Square(x) @ dy
        x2_neg = Neg(x2)
        e = Exp(x2_neg)
        slope = Mul(two_over_root_pi, e)
        dx = Mul(dy, slope)
    """,
    Example([[0.0, 0.5, -1.5, 3.0]]),
    cost="transcendental",
    family=Elementwise,
)

unary(
    "Erfc",
    "`1 - erf(x)`, exact where that is tiny.",
    _in_double(special_functions.erfc),
    f"""
        {_constant("minus_two_over_root_pi", -2 / math.sqrt(math.pi))}
        x2 = Square(x) @ dy
        x2_neg = Neg(x2)
        e = Exp(x2_neg)
        slope = Mul(minus_two_over_root_pi, e)
        dx = Mul(dy, slope)
    """,
    Example([[0.0, 0.5, -1.5, 3.0, 9.0]]),
    family=Elementwise,
    cost="transcendental",
)

unary(
    "Erfinv",
    "The inverse error function; infinite at -1 and 1, NaN beyond.",
    _in_double(special_functions.erfinv),
    f"""
        {_constant("half_root_pi", math.sqrt(math.pi) / 2)}
        y = Erfinv(x)
        y2 = Square(y) @ dy
        e = Exp(y2)
        slope = Mul(half_root_pi, e)
        dx = Mul(dy, slope)
    """,
    Example([[0.0, 0.5, -0.9]]),
    family=Elementwise,
    cost="transcendental",
)

unary(
    "Ndtri",
    "The quantile function of the normal distribution.",
    _in_double(special_functions.ndtri),
    f"""
        {_constant("root_two_pi", math.sqrt(2 * math.pi))}
        {_constant("half", 0.5)}
        y = Ndtri(x)
        y2 = Square(y) @ dy
        y2_half = Mul(half, y2)
        e = Exp(y2_half)
        slope = Mul(root_two_pi, e)
        dx = Mul(dy, slope)
    """,
    Example([[0.5, 0.1, 0.975]]),
    family=Elementwise,
    cost="transcendental",
)

unary(
    "Lgamma",
    "The logarithm of the absolute value of the gamma function; infinite at 0, -1, -2, ...",
    _in_double(special_functions.lgamma),
    """
        slope = Digamma(x) @ dy
        dx = Mul(dy, slope)
    """,
    Example([[0.5, 1.0, 4.5, -1.5, 20.0]]),
    family=Elementwise,
    cost="transcendental",
)

unary(
    "Digamma",
    "The derivative of Lgamma; NaN at 0, -1, -2, ...",
    _in_double(special_functions.digamma),
    f"""
        {_constant("one", 1)}
        slope = Polygamma(one, x) @ dy
        dx = Mul(dy, slope)
    """,
    Example([[0.5, 1.0, 4.5, 20.0]]),
    Example([[-1.5]], differentiable=False),
    family=Elementwise,
    cost="transcendental",
)


@op
class Polygamma(Elementwise):
    """The derivative of Digamma of order `a`, a whole number >= 0, for positive x."""

    signature = "Polygamma[T:{float, double}](a:T, x:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    kernel = _in_double(special_functions.polygamma)
    no_gradient_by: ClassVar = {0: "it is the order of a derivative, a whole number"}
    gradient = binary_grad(f"""
        {_constant("one", 1)}
        higher = Add(x, one) @ dz
        slope = Polygamma(higher, y)
        gx = ZerosLike(dz)
        gy = Mul(dz, slope)
    """)
    examples = (Example([[[1.0], [2.0]], [0.5, 1.0, 4.5]], differentiable=False),)


@op
class Zeta(Elementwise):
    """The Hurwitz zeta function: the sum of `(q + i) ** -x` over i = 0, 1, ..., for x > 1 and positive q."""

    signature = "Zeta[T:{float, double}](x:T, q:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    kernel = _in_double(special_functions.zeta)
    no_gradient_by: ClassVar = {0: "TensorFlow has none either"}
    gradient = binary_grad(f"""
        {_constant("one", 1)}
        next = Add(x, one) @ dz
        tail = Zeta(next, y)
        minus_x = Neg(x)
        slope = Mul(minus_x, tail)
        gx = ZerosLike(dz)
        gy = Mul(dz, slope)
    """)
    examples = (Example([[[2.0], [3.5]], [0.5, 1.0, 4.5]], differentiable=False),)
