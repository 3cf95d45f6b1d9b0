"""Ops that compute a derivative from the value of the function, in older graphs and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from graphcore.attrs import Attrs
from graphcore.functions import GradientText
from graphcore.inference.shape_fns.common_shape_fns import merge_both_inputs
from graphcore.opset.framework.block import Example, Kernel, KernelContext, define_op
from graphcore.opset.framework.families import Elementwise
from graphcore.opset.framework.gradient_text import holomorphic, is_complex, scalar
from graphcore.opset.framework.type_sets import FLOATING_OR_COMPLEX
from graphcore.registry import GradientCreator, KernelFactory

_Y: Final = [[0.25, 0.5, 0.9], [0.1, 0.75, 0.3]]
_DY: Final = [[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]]


def _gradient(body: str) -> GradientCreator:
    """A body for holomorphic functions of y and dy."""
    return holomorphic(GradientText(f"[T:{{half, float, double}}](y:T, dy:T, dz:T) -> (gy:T, gdy:T) {{\n{body}\n}}"))


def _conjugate_gradient(body: str) -> Callable[[Attrs], str]:
    """A body with `y_conj` and `dz_conj` as conjugates of y and dz, for functions of y's conjugate."""

    def gradient(attrs: Attrs) -> str:
        if not is_complex(attrs):
            real = body.replace("y_conj", "y").replace("dz_conj", "dz")
            return f"[T:{{half, float, double}}](y:T, dy:T, dz:T) -> (gy:T, gdy:T) {{\n{real}\n}}"
        head = "  y_conj = Conj[T=$T](y)\n  dz_conj = Conj[T=$T](dz)"
        return f"[T:{{complex64, complex128}}](y:T, dy:T, dz:T) -> (gy:T, gdy:T) {{\n{head}\n{body}\n}}"

    return gradient


def _factor(value: float) -> str:
    return f"const = {scalar('float', value)}\n      factor = Cast[SrcT=float, DstT=$T](const)"


def _of_value(name: str, doc: str, kernel: KernelFactory, gradient: GradientCreator | Callable[[Attrs], str]) -> None:
    """Register the derivative of a function as an op on the function's value y and a gradient dy."""
    define_op(
        name,
        doc,
        Elementwise,
        signature=f"{name}[T:{FLOATING_OR_COMPLEX}](y:T, dy:T) -> (z:T)",
        shape=merge_both_inputs,
        kernel=kernel,
        gradient=gradient,
        examples=(Example([_Y, _DY]),),
    )


def _singular(slope: Callable[[KernelContext], Kernel]) -> KernelFactory:
    """A derivative that is infinite somewhere, but 0 for a gradient of 0, there too."""

    def kernel(k: KernelContext) -> Kernel:
        where, zero, derivative = k.xp.where, k.dtype("T").type(0), slope(k)
        return lambda y, dy: where(dy == zero, zero, derivative(y, dy))

    return kernel


@_singular
def _sqrt_grad(k: KernelContext) -> Kernel:
    half = k.dtype("T").type(0.5)
    if k.output_types[0].is_complex:
        return lambda y, dy: dy * half / y.conj()
    return lambda y, dy: dy * half / y


@_singular
def _rsqrt_grad(k: KernelContext) -> Kernel:
    minus_half, conj = k.dtype("T").type(-0.5), k.xp.conjugate
    return lambda y, dy: dy * (minus_half * conj(y * y * y))


@_singular
def _reciprocal_grad(k: KernelContext) -> Kernel:
    if k.output_types[0].is_complex:
        return lambda y, dy: -dy * (y * y).conj()
    return lambda y, dy: -dy * (y * y)


_of_value(
    "SigmoidGrad",
    "The gradient of Sigmoid from its value y: `dy * y * (1 - y)`.",
    lambda _: lambda y, dy: dy * y * (1 - y),
    _gradient(f"""
      {_factor(2)}
      gb = Mul[T=$T](dz, dy)
      gby = Mul[T=$T](gb, y)
      gby2 = Mul[T=$T](gby, factor)
      gy = Sub[T=$T](gb, gby2)
      gdy = SigmoidGrad[T=$T](y, dz)
    """),
)
_of_value(
    "TanhGrad",
    "The gradient of Tanh from its value y: `dy * (1 - y * y)`.",
    lambda _: lambda y, dy: dy * (1 - y * y),
    _gradient(f"""
      {_factor(-2)}
      gb = Mul[T=$T](dz, dy)
      gby = Mul[T=$T](gb, y)
      gy = Mul[T=$T](gby, factor)
      gdy = TanhGrad[T=$T](y, dz)
    """),
)
_of_value(
    "SqrtGrad",
    "The gradient of Sqrt from its value y: `dy / (2 * y)`, and 0 for dy = 0.",
    _sqrt_grad,
    _conjugate_gradient(f"""
      {_factor(0.5)}
      ga = Div[T=$T](dz, y)
      gac = Div[T=$T](dz_conj, y_conj)
      z = SqrtGrad[T=$T](y, dy)
      gaz = Mul[T=$T](gac, z)
      gy = Neg[T=$T](gaz)
      gdy = Mul[T=$T](ga, factor)
    """),
)
_of_value(
    "RsqrtGrad",
    "The gradient of Rsqrt from its value y: `dy * -y ** 3 / 2`, and 0 for dy = 0.",
    _rsqrt_grad,
    _conjugate_gradient(f"""
      {_factor(-1.5)}
      y2 = Square[T=$T](y_conj)
      gb = Mul[T=$T](dz_conj, dy)
      gby2 = Mul[T=$T](gb, y2)
      gy = Mul[T=$T](gby2, factor)
      gdy = RsqrtGrad[T=$T](y_conj, dz)
    """),
)
for _name, _function in (("ReciprocalGrad", "Reciprocal"), ("InvGrad", "Inv")):
    _of_value(
        _name,
        f"The gradient of {_function} from its value y: `-dy * y * y`, and 0 for dy = 0.",
        _reciprocal_grad,
        _conjugate_gradient(f"""
          {_factor(-2)}
          gb = Mul[T=$T](dz_conj, dy)
          gby = Mul[T=$T](gb, y_conj)
          gy = Mul[T=$T](gby, factor)
          gdy = {_name}[T=$T](y_conj, dz)
        """),
    )
