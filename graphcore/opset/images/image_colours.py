"""The colours of images: hue and saturation, contrast."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import Example, Kernel, KernelContext, define_op, no_registered_gradient, not_differentiable
from graphcore.opset.framework.gradient_text import scalar
from graphcore.opset.framework.kernels import invalid, narrow
from graphcore.registry import KernelFactory

_NONE: Final = no_registered_gradient("TensorFlow 1 has no gradient of this op")
_X: Final = np.array(
    [[[0.2, 0.5, 0.9], [0.7, 0.1, 0.1]], [[0.5, 0.5, 0.5], [0.0, 1.0, 0.25]], [[0.0, 0.0, 0.0], [0.9, 0.2, 0.8]]], np.float32
)


def to_hsv(xp: Any, rgb: Any) -> Any:
    """Hue, saturation and value of colours [..., 3], all in [0, 1]."""
    r, g, b = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    value = rgb.max(-1)
    spread = value - rgb.min(-1)
    one = rgb.dtype.type(1)
    norm = one / (rgb.dtype.type(6) * xp.where(spread > 0, spread, one))
    hue = xp.where(r == value, norm * (g - b), xp.where(g == value, norm * (b - r) + one * 2 / 6, norm * (r - g) + one * 4 / 6))
    hue = xp.where(spread > 0, hue, 0 * one)
    saturation = xp.where(value > 0, spread / xp.where(value > 0, value, one), 0 * one)
    return xp.stack([xp.where(hue < 0, hue + one, hue), saturation, value], -1)


def to_rgb(xp: Any, hsv: Any) -> Any:
    """Red, green and blue of hue, saturation and value [..., 3]."""
    h, s, v = hsv[..., 0] * hsv.dtype.type(6), hsv[..., 1], hsv[..., 2]
    parts = [xp.abs(h - 3) - 1, 2 - xp.abs(h - 2), 2 - xp.abs(h - 4)]
    return xp.stack([((xp.clip(part, 0, 1) * s + (1 - s)) * v) for part in parts], -1).astype(hsv.dtype, copy=False)


def _colours_shape(c: InferenceContext) -> None:
    in_shape = c.with_rank_at_least(c.input(0), 1)
    c.set_output(0, c.replace_dim(in_shape, -1, c.with_value(c.dim(in_shape, -1), 3)) if c.rank_known(in_shape) else in_shape)


def _images_shape(c: InferenceContext) -> None:
    if c.op == "AdjustContrastv2":  # the other ops leave it to their kernels
        c.with_rank(c.input(1), 0)
    c.set_output(0, c.with_rank_at_least(c.input(0), 3))


def _checked(k: KernelContext, x: Any, rank: int) -> Any:
    if x.ndim < rank or (x.shape[-1] != 3 and k.op != "AdjustContrastv2"):
        raise invalid(k, f"input must be at least {rank}-D with a last dimension of 3, got shape {list(x.shape)}")
    return x.astype(np.float32) if narrow(x.dtype) else x


def _hsv_slope(colour: str, after: str, before: str) -> str:
    """The lines that make the derivative by one colour.

    The hue of a pixel with most of `before` grows with it, with most of `after` falls.
    """
    return f"""
      {colour}_hue_up = Sub[T=$T]({before}_most, {after}_most)
      {colour}_wider = Sub[T=$T]({colour}_most, {colour}_least)
      {colour}_hue_down = Mul[T=$T](hue, {colour}_wider)
      {colour}_hue = Sub[T=$T]({colour}_hue_up, {colour}_hue_down)
      {colour}_by_hue = Mul[T=$T](dhue, {colour}_hue)
      {colour}_part = Mul[T=$T]({colour}_most, ratio)
      {colour}_grey = Sub[T=$T]({colour}_part, {colour}_least)
      {colour}_is_positive = Greater[T=$T]({colour}, zeros)
      {colour}_positive = Cast[SrcT=bool, DstT=$T]({colour}_is_positive)
      {colour}_saturation = Mul[T=$T]({colour}_positive, {colour}_grey)
      {colour}_by_saturation = Mul[T=$T](dsaturation, {colour}_saturation)
      {colour}_by_value = Mul[T=$T](dv, {colour}_most)
      {colour}_two = AddV2[T=$T]({colour}_by_hue, {colour}_by_saturation)
      d{colour} = AddV2[T=$T]({colour}_two, {colour}_by_value)"""


def _mask(name: str, *conditions: str) -> str:
    """The lines that make a number, 1 where both comparisons hold."""
    first, second = [f"{name}_{i} = {condition.replace('(', '[T=$T](')}" for i, condition in enumerate(conditions)]
    return f"""
      {first}
      {second}
      {name}_both = LogicalAnd({name}_0, {name}_1)
      {name} = Cast[SrcT=bool, DstT=$T]({name}_both)"""


# With d = most - least: saturation 1 - least / most, hue u / (6 d), where u is the difference of the other two colours, in their order.
# Of equal colours the first has most and the last least, as in TensorFlow; a derivative by a colour of 0 leaves out the saturation.
_HSV_GRADIENT: Final = f"""[T:{{half, bfloat16, float, double}}](images:T, dy:T) -> (dx:T) {{
      r, g, b = Unpack[T=$T, num=3, axis=-1](images)
      dh, ds, dv = Unpack[T=$T, num=3, axis=-1](dy)
      zeros = ZerosLike[T=$T](r)
      ones = OnesLike[T=$T](r)
      {_mask("r_most", "GreaterEqual(r, b)", "GreaterEqual(r, g)")}
      {_mask("g_most", "Greater(g, r)", "GreaterEqual(g, b)")}
      {_mask("b_most", "Greater(b, r)", "Greater(b, g)")}
      {_mask("r_least", "Less(r, b)", "Less(r, g)")}
      {_mask("g_least", "LessEqual(g, r)", "Less(g, b)")}
      {_mask("b_least", "LessEqual(b, r)", "LessEqual(b, g)")}
      r_or_g = Maximum[T=$T](r, g)
      most = Maximum[T=$T](r_or_g, b)
      least_of_two = Minimum[T=$T](r, g)
      least = Minimum[T=$T](least_of_two, b)
      spread = Sub[T=$T](most, least)
      per_spread = DivNoNan[T=$T](ones, spread)
      per_most = DivNoNan[T=$T](ones, most)
      ratio = Mul[T=$T](least, per_most)
      g_b = Sub[T=$T](g, b)
      b_r = Sub[T=$T](b, r)
      r_g = Sub[T=$T](r, g)
      u_r = Mul[T=$T](r_most, g_b)
      u_g = Mul[T=$T](g_most, b_r)
      u_b = Mul[T=$T](b_most, r_g)
      u_rg = AddV2[T=$T](u_r, u_g)
      u = AddV2[T=$T](u_rg, u_b)
      hue = Mul[T=$T](u, per_spread)
      is_positive = Greater[T=$T](most, zeros)
      positive = Cast[SrcT=bool, DstT=$T](is_positive)
      const = {scalar("float", 6)}
      six = Cast[SrcT=float, DstT=$T](const)
      per_turn = Div[T=$T](per_spread, six)
      slope = Mul[T=$T](positive, per_turn)
      dhue = Mul[T=$T](dh, slope)
      dsaturation = Mul[T=$T](ds, per_most)
      {_hsv_slope("r", "g", "b")}
      {_hsv_slope("g", "b", "r")}
      {_hsv_slope("b", "r", "g")}
      dx = Pack[T=$T, N=3, axis=-1](dr, dg, db)
    }}"""


def _conversion(name: str, convert: Any, summary: str, types: str, gradient: Any) -> None:
    def kernel(k: KernelContext) -> Kernel:
        xp, dtype = k.xp, k.dtype("T")
        return lambda x: convert(xp, _checked(k, x, 1)).astype(dtype, copy=False)

    define_op(
        name,
        f"{summary}\n\nimages: [..., 3], in [0, 1]\n",
        signature=f"{name}[T:{types} = float](images:T) -> (output:T)",
        shape=_colours_shape,
        kernel=kernel,
        gradient=gradient,
        examples=(Example([_X], differentiable=False), Example([[0.2, 0.5, 0.8]])),
        failures=(
            f"""
            two = Const[dtype=float, value=Tensor<type: float shape: [2] values: 0 1>]()
            hidden = PlaceholderWithDefault[dtype=float, shape=<unknown>](two)
            it = {name}[T=float](hidden)
            """,
        ),
    )


_FLOATS: Final = "{half, bfloat16, float, double}"
_conversion("RGBToHSV", to_hsv, "The colours of images as hue, saturation and value.", _FLOATS, _HSV_GRADIENT)
_conversion(
    "HSVToRGB",
    to_rgb,
    "The colours of images, given as hue, saturation and value, as red, green and blue.",
    _FLOATS,
    not_differentiable("TensorFlow registers it as not differentiable"),
)


def _hue(xp: Any, hsv: Any, delta: Any) -> Any:
    hue = hsv[..., 0] + delta
    return xp.stack([hue - xp.floor(hue), hsv[..., 1], hsv[..., 2]], -1)


def _saturation(xp: Any, hsv: Any, scale: Any) -> Any:
    return xp.stack([hsv[..., 0], xp.clip(hsv[..., 1] * scale, 0, 1), hsv[..., 2]], -1)


def _adjusting(change: Any) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        xp, dtype = k.xp, k.dtype("T")

        def adjust(x: Any, amount: Any) -> Any:
            if amount.ndim:
                raise invalid(k, f"required images and a scalar, got a second input of shape {list(amount.shape)}")
            hsv = to_hsv(xp, _checked(k, x, 3))
            return to_rgb(xp, change(xp, hsv, hsv.dtype.type(amount.item()))).astype(dtype, copy=False)

        return adjust

    return kernel


def _adjustment(name: str, arg: str, kernel: KernelFactory, doc: str, amounts: tuple[float, ...]) -> None:
    define_op(
        name,
        doc,
        signature=f"{name}[T:{{half, float}} = float](images:T, {arg}:float) -> (output:T)",
        shape=_images_shape,
        kernel=kernel,
        gradient=_NONE,
        examples=tuple([Example([_X, amount], differentiable=False) for amount in amounts]),
        failures=(
            f"""
            two = Const[dtype=float, value=Tensor<type: float shape: [2] values: 0 1>]()
            amount = Const[dtype=float, value=Tensor<type: float shape: [] values: 0.5>]()
            hidden = PlaceholderWithDefault[dtype=float, shape=<unknown>](two)
            it = {name}[T=float](hidden, amount)
            """,
        ),
    )


_adjustment(
    "AdjustHue",
    "delta",
    _adjusting(_hue),
    "Images with their hue turned.\n\nimages: [..., rows, columns, 3]\ndelta: the turn, a scalar; 1 is a whole one\n",
    (0.3, -0.6),
)
_adjustment(
    "AdjustSaturation",
    "scale",
    _adjusting(_saturation),
    "Images with their saturation multiplied, at most to 1.\n\nimages: [..., rows, columns, 3]\nscale: the factor, a scalar\n",
    (0.5, 3.0),
)


def _contrast(k: KernelContext) -> Kernel:
    dtype = k.dtype("T")

    def adjust(x: Any, factor: Any) -> Any:
        wide = _checked(k, x, 3)
        mean = wide.mean((-3, -2), keepdims=True)
        return ((wide - mean) * wide.dtype.type(factor.item()) + mean).astype(dtype, copy=False)

    return adjust


_adjustment(
    "AdjustContrastv2",
    "contrast_factor",
    _contrast,
    "Images with the distances from their mean multiplied, channel by channel.\n\n"
    "images: [..., rows, columns, channels]\ncontrast_factor: the factor, a scalar\n",
    (0.5, 2.0),
)
