"""The incomplete gamma and beta functions as ops, and the derivative of gamma distributed samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

import numpy as np

from graphcore.functions import binary_grad
from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import broadcast_binary_op_shape_fn
from graphcore.opset.framework.block import Example, Kernel, KernelContext, no_registered_gradient, op
from graphcore.opset.framework.families import Elementwise
from graphcore.opset.framework.gradient_text import ONE
from graphcore.opset.framework.type_sets import FLOATING
from graphcore.opset.numerics import incomplete_gamma
from graphcore.registry import KernelFactory

_A: Final = [[0.5], [2.0], [10.0]]
_X: Final = [0.25, 1.5, 12.0]
_DENSITY: Final = f"""{ONE}
        a_less = Sub(x, one) @ dz
        log_y = Log(y)
        power = Mul(a_less, log_y)
        log_gamma = Lgamma(x)
        with_y = Add(y, log_gamma)
        log_density = Sub(power, with_y)
        density = Exp(log_density)
        by_y = Mul(dz, density)
        by_a = IgammaGradA(x, y)"""


def _in_double(function: Callable[..., Any]) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        xp, dtype = k.xp, k.dtype("T")
        return lambda *inputs: function(xp, *[x.astype(np.float64) for x in inputs]).astype(dtype)

    return kernel


@op
class Igamma(Elementwise):
    """The regularized lower incomplete gamma function.

    It is the part of the gamma distribution of shape `a` below `x`.
    """

    signature = f"Igamma[T:{FLOATING}](a:T, x:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    cost = "transcendental"
    kernel = _in_double(incomplete_gamma.igamma)
    gradient = binary_grad(f"""
        {_DENSITY}
        gx = Mul(dz, by_a)
        gy = Identity(by_y)
    """)
    examples = (Example([_A, _X]), Example([[1.0, 2.0], [0.0, 1.0]], differentiable=False))


@op
class Igammac(Elementwise):
    """The regularized upper incomplete gamma function: `1 - Igamma(a, x)`, exact where that is tiny."""

    signature = f"Igammac[T:{FLOATING}](a:T, x:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    cost = "transcendental"
    kernel = _in_double(incomplete_gamma.igammac)
    gradient = binary_grad(f"""
        {_DENSITY}
        minus_a = Neg(by_a)
        gx = Mul(dz, minus_a)
        gy = Neg(by_y)
    """)
    examples = (Example([_A, _X]),)


@op
class IgammaGradA(Elementwise):
    """The derivative of Igamma by its first input."""

    signature = "IgammaGradA[T:{float, double}](a:T, x:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    cost = "transcendental"
    kernel = _in_double(incomplete_gamma.igamma_grad_a)
    gradient = no_registered_gradient("TensorFlow has none; it is a derivative itself")
    examples = (Example([_A, _X]),)


@op
class RandomGammaGrad(Elementwise):
    """The derivative of a sample of the gamma distribution by its shape.

    alpha: the shape of the distribution
    sample: the sample
    """

    signature = "RandomGammaGrad[T:{float, double}](alpha:T, sample:T) -> (output:T)"
    shape = broadcast_binary_op_shape_fn
    cost = "transcendental"
    kernel = _in_double(incomplete_gamma.random_gamma_grad)
    gradient = no_registered_gradient("TensorFlow has none; it is a derivative itself")
    examples = (Example([_A, _X]),)


def _three_shape(c: InferenceContext) -> None:
    """Three inputs of one shape, of which some may be scalars."""
    whole = c.unknown_shape()
    for shape in c.inputs:
        if c.rank(shape) != 0:
            whole = c.merge(whole, shape)
    scalars = all(c.rank(shape) == 0 for shape in c.inputs)
    c.set_output(0, c.scalar() if scalars else whole)


@op
class Betainc(Elementwise):
    """The regularized incomplete beta function.

    It is the part of the beta distribution of shapes `a` and `b` below `x`.
    """

    signature = "Betainc[T:{float, double}](a:T, b:T, x:T) -> (z:T)"
    shape = _three_shape
    cost = "transcendental"
    kernel = _in_double(incomplete_gamma.betainc)
    no_gradient_by: ClassVar = {0: "TensorFlow has none either", 1: "TensorFlow has none either"}
    gradient = """[T:{half, float, double}](a:T, b:T, x:T, dz:T) -> (da:T, db:T, dx:T) {
      const = Const[dtype=float, value=Tensor<type: float shape: [] values: 1>]()
      one = Cast[SrcT=float, DstT=$T](const)
      a_less = Sub[T=$T](a, one)
      b_less = Sub[T=$T](b, one)
      minus_x = Neg[T=$T](x)
      log_rest = Log1p[T=$T](minus_x)
      log_x = Log[T=$T](x)
      first = Mul[T=$T](b_less, log_rest)
      second = Mul[T=$T](a_less, log_x)
      powers = AddV2[T=$T](first, second)
      gamma_a = Lgamma[T=$T](a)
      gamma_b = Lgamma[T=$T](b)
      a_b = AddV2[T=$T](a, b)
      gamma_both = Lgamma[T=$T](a_b)
      gammas = AddV2[T=$T](gamma_a, gamma_b)
      log_beta = Sub[T=$T](gammas, gamma_both)
      log_density = Sub[T=$T](powers, log_beta)
      density = Exp[T=$T](log_density)
      product = Mul[T=$T](dz, density)
      shape_x = Shape[T=$T](x)
      shape_z = Shape[T=$T](dz)
      unused, axes = BroadcastGradientArgs(shape_z, shape_x)
      sum = Sum[T=$T](product, axes)
      dx = Reshape[T=$T](sum, shape_x)
      da = ZerosLike[T=$T](a)
      db = ZerosLike[T=$T](b)
    }"""
    examples = (
        Example([[0.5, 2.0, 5.0], [1.5, 2.0, 0.5], [0.25, 0.5, 0.9]], differentiable=False),
        Example([2.0, 3.0, [0.1, 0.7]], differentiable=False),
    )
