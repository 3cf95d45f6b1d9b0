"""Normalisation by the neighbouring channels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from graphcore.attrs import Attrs
from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.families import Total
from graphcore.opset.framework.gradient_text import scalar, vector
from graphcore.opset.framework.kernels import float_attr, invalid

_X: Final = (np.arange(24, dtype=np.float32) ** 2 % 17 / 4 - 2).reshape(1, 2, 2, 6)
_DY: Final = (np.arange(24, dtype=np.float32) ** 2 % 13 / 4 - 1).reshape(1, 2, 2, 6)
_ATTRS: Final = "depth_radius:int = 5, bias:float = 1.0, alpha:float = 1.0, beta:float = 0.5, T:{half, bfloat16, float} = float"
_GIVEN: Final = "T=$T, depth_radius=$depth_radius, bias=$bias, alpha=$alpha, beta=$beta"
_DECLARED: Final = "T:{half, bfloat16, float}, depth_radius:int, bias:float, alpha:float, beta:float"


def _images(c: InferenceContext) -> None:
    c.set_output(0, c.with_rank(c.input(0), 4))


def _gradient_images(c: InferenceContext) -> None:
    shape = c.with_rank(c.input(0), 4)
    c.set_output(0, c.merge(c.merge(shape, c.input(1)), c.input(2)))


def _neighbours(k: KernelContext) -> Any:
    """A function that sums a float32 array over the channels within the radius.

    It multiplies by a band of ones, which keeps small numbers precise.
    """
    radius, xp = k.attr("depth_radius"), k.xp
    if not isinstance(radius, int) or radius < 0:
        raise invalid(k, f"depth_radius must not be negative, got {radius!r}")

    def total(x: Any) -> Any:
        channels = xp.arange(x.shape[-1])
        band = (abs(channels[:, None] - channels) <= radius).astype(x.dtype)
        return (x.reshape(math.prod(x.shape[:-1]), x.shape[-1]) @ band).reshape(x.shape)

    return total


def _second(text: str) -> Callable[[Attrs], str]:
    """A gradient text with names of attrs in capitals replaced by their values."""

    def gradient(attrs: Attrs) -> str:
        gradient_text = text
        for name, default in (("depth_radius", 5), ("bias", 1.0), ("alpha", 1.0), ("beta", 0.5)):
            gradient_text = gradient_text.replace(name.rpartition("_")[2].upper(), str(attrs.get(name, default)))
        return gradient_text

    return gradient


@op
class LRN(Total):
    """Local response normalisation: input / (bias + alpha * sum of squares over near channels) ** beta.

    input: [batch, rows, columns, channels]
    depth_radius: the number of channels on each side.
    bias: avoids a division by 0.
    alpha: the factor of the sum.
    beta: the exponent.
    """

    signature = f"LRN[{_ATTRS}](input:T) -> (output:T)"
    shape = _images
    cost = "pairs"
    gradient = f"""[{_DECLARED}](x:T, dy:T) -> (dx:T) {{
      y = LRN[{_GIVEN}](x)
      dx = LRNGrad[{_GIVEN}](dy, x, y)
    }}"""
    examples = (Example([_X], {"depth_radius": 2}), Example([_X], {"depth_radius": 1, "bias": 2.0, "alpha": 0.5, "beta": 0.75}))

    def kernel(k: KernelContext) -> Kernel:
        total, dtype = _neighbours(k), k.dtype("T")
        bias, alpha, beta = (np.float32(float_attr(k, name)) for name in ("bias", "alpha", "beta"))

        def normalize(x: Any) -> Any:
            if x.ndim != 4:
                raise invalid(k, f"in must be 4-dimensional, got shape {list(x.shape)}")
            wide = x.astype(np.float32, copy=False)
            return (wide * (bias + alpha * total(wide * wide)) ** -beta).astype(dtype, copy=False)

        return normalize


@op
class LRNGrad(Total):
    """The gradient of LRN.

    input_grads: the gradient of its output
    input_image: its input
    output_image: its output
    depth_radius: as of LRN.
    bias: as of LRN.
    alpha: as of LRN.
    beta: as of LRN.
    """

    signature = f"LRNGrad[{_ATTRS}](input_grads:T, input_image:T, output_image:T) -> (output:T)"
    shape = _gradient_images
    cost = "pairs"
    gradient = _second(f"""[{_DECLARED}](dy:T, x:T, y:T, dz:T) -> (ddy:T, dx:T, dout:T) {{
      shape = Shape[T=$T](x)
      last = {vector("int32", 3)}
      end = {vector("int32", 4)}
      step = {vector("int32", 1)}
      channels = StridedSlice[T=int32, Index=int32](shape, last, end, step)
      two = {vector("int32", 2)}
      square_shape = Tile[T=int32](channels, two)
      one32 = {scalar("float", 1)}
      one = Cast[SrcT=float, DstT=$T](one32)
      full = Fill[T=$T](square_shape, one)
      radius = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: RADIUS>]()
      band = MatrixBandPart[T=$T, Tindex=int64](full, radius, radius)
      rows = {vector("int32", -1)}
      zero = {scalar("int32", 0)}
      flat = ConcatV2[N=2, T=int32, Tidx=int32](rows, channels, zero)
      bias32 = Const[dtype=float, value=Tensor<type: float shape: [] values: BIAS>]()
      bias_t = Cast[SrcT=float, DstT=$T](bias32)
      alpha32 = Const[dtype=float, value=Tensor<type: float shape: [] values: ALPHA>]()
      alpha_t = Cast[SrcT=float, DstT=$T](alpha32)
      beta32 = Const[dtype=float, value=Tensor<type: float shape: [] values: BETA>]()
      beta_t = Cast[SrcT=float, DstT=$T](beta32)
      minus_beta = Neg[T=$T](beta_t)
      two32 = {scalar("float", 2)}
      two_t = Cast[SrcT=float, DstT=$T](two32)
      two_alpha = Mul[T=$T](two_t, alpha_t)
      factor = Mul[T=$T](two_alpha, minus_beta)
      x2 = Square[T=$T](x)
      x2_flat = Reshape[T=$T](x2, flat)
      x2_sums = MatMul[T=$T](x2_flat, band)
      sums = Reshape[T=$T](x2_sums, shape)
      scaled = Mul[T=$T](alpha_t, sums)
      norm = Add[T=$T](scaled, bias_t)
      power = Pow[T=$T](norm, minus_beta)
      zx = Mul[T=$T](dz, x)
      zx_flat = Reshape[T=$T](zx, flat)
      zx_sums = MatMul[T=$T](zx_flat, band)
      zx_sum = Reshape[T=$T](zx_sums, shape)
      common = Mul[T=$T](factor, zx_sum)
      common_norm = Div[T=$T](common, norm)
      z_power = Mul[T=$T](dz, power)
      y_common = Mul[T=$T](y, common_norm)
      ddy = Add[T=$T](z_power, y_common)
      dout = Mul[T=$T](dy, common_norm)
      gy = Mul[T=$T](dy, y)
      gy_norm = Div[T=$T](gy, norm)
      gyn_flat = Reshape[T=$T](gy_norm, flat)
      gyn_sums = MatMul[T=$T](gyn_flat, band)
      gyn_sum = Reshape[T=$T](gyn_sums, shape)
      z_gyn = Mul[T=$T](dz, gyn_sum)
      direct = Mul[T=$T](factor, z_gyn)
      power_norm = Div[T=$T](power, norm)
      z_dy = Mul[T=$T](dz, dy)
      z_dy_power = Mul[T=$T](z_dy, power_norm)
      by_power = Mul[T=$T](minus_beta, z_dy_power)
      gy_norm2 = Div[T=$T](gy_norm, norm)
      by_quotient = Mul[T=$T](common, gy_norm2)
      by_norm = Sub[T=$T](by_power, by_quotient)
      by_norm_flat = Reshape[T=$T](by_norm, flat)
      by_norm_sums = MatMul[T=$T](by_norm_flat, band)
      by_norm_sum = Reshape[T=$T](by_norm_sums, shape)
      x_by_norm = Mul[T=$T](x, by_norm_sum)
      through_norm = Mul[T=$T](two_alpha, x_by_norm)
      dx = Add[T=$T](direct, through_norm)
    }}""")
    examples = (Example([_DY, _X, _X / 2], {"depth_radius": 2}), Example([_DY, _X, _X / 2], {"depth_radius": 1, "bias": 2.0, "beta": 0.75}))

    def kernel(k: KernelContext) -> Kernel:
        total, dtype = _neighbours(k), k.dtype("T")
        bias, alpha, beta = (np.float32(float_attr(k, name)) for name in ("bias", "alpha", "beta"))
        factor = np.float32(-2) * alpha * beta

        def gradient(dy: Any, x: Any, y: Any) -> Any:
            if not dy.shape == x.shape == y.shape or x.ndim != 4:
                raise invalid(k, f"inputs must be 4-dimensional and alike, got {[list(part.shape) for part in (dy, x, y)]}")
            dy, x, y = (part.astype(np.float32, copy=False) for part in (dy, x, y))
            norm = bias + alpha * total(x * x)
            return (dy * norm**-beta + factor * x * total(dy * y / norm)).astype(dtype, copy=False)

        return gradient
