"""Batch normalisation in its three versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from graphcore.attrs import Attrs
from graphcore.inference.shape_fns.common_shape_fns import fused_batch_norm_grad_shape, fused_batch_norm_shape
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.families import Total
from graphcore.opset.framework.gradient_text import scalar
from graphcore.opset.framework.kernels import float_attr
from graphcore.opset.numerics.windows import is_channels_last

_FORMAT: Final = "data_format:{'NHWC', 'NCHW'} = 'NHWC', is_training:bool = true"
_FORMAT_3D: Final = "data_format:{'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC', is_training:bool = true"
_EPSILON: Final = "epsilon:float = 9.999999747378752e-05"
_FACTOR: Final = "exponential_avg_factor:float = 1.0"


class _Channels:
    """The channels of an array: the axes to sum over, and the broadcast form of a vector of channels."""

    def __init__(self, k: KernelContext, rank: int) -> None:
        self.xp = k.xp
        channel = rank - 1 if is_channels_last(k.attrs) else 1
        self.axes = tuple([axis for axis in range(rank) if axis != channel])
        self.shape = tuple([-1 if axis == channel else 1 for axis in range(rank)])

    def wide(self, vector_of_channels: Any) -> Any:
        """A vector of channels, shaped to broadcast against the array."""
        return vector_of_channels.reshape(self.shape)

    def total(self, x: Any) -> Any:
        """The sum over everything but the channels."""
        return self.xp.add.reduce(x, self.axes, np.float32)


def _normalise(k: KernelContext) -> Kernel:
    epsilon, training = np.float32(float_attr(k, "epsilon")), k.attr("is_training")
    take = np.float32(float_attr(k, "exponential_avg_factor"))
    dtype, version_3 = k.dtype("T"), len(k.output_types) == 6
    xp = k.xp
    stats = k.output_types[1].as_numpy

    def outputs(y: Any, *vectors: Any) -> Any:
        outputs = [y.astype(dtype, copy=False), *[v.astype(stats, copy=False) for v in vectors]]
        return tuple([*outputs, xp.zeros((), stats)] if version_3 else outputs)

    def normalise(x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
        x = x.astype(np.float32, copy=False)
        channels = _Channels(k, x.ndim)
        if not training:
            return outputs(_applied(channels, x, scale, offset, mean, variance, epsilon), mean, variance, mean, variance)
        size = x.size // max(1, scale.size)
        if not size:
            nothing = xp.full(scale.shape, np.nan, np.float32)
            return outputs(x, nothing, nothing, xp.zeros(scale.shape, np.float32), xp.zeros(scale.shape, np.float32))
        batch_mean = channels.total(x) / size
        centred = x - channels.wide(batch_mean)
        batch_variance = channels.total(centred * centred) / size
        unbiased = batch_variance * np.float32(size / max(1, size - 1))
        y = _applied(channels, x, scale, offset, batch_mean, batch_variance, epsilon)
        if take == 1:
            return outputs(y, batch_mean, unbiased, batch_mean, batch_variance)
        keep = 1 - take
        return outputs(y, keep * mean + take * batch_mean, keep * variance + take * unbiased, batch_mean, batch_variance)

    return normalise


def _applied(channels: _Channels, x: Any, scale: Any, offset: Any, mean: Any, variance: Any, epsilon: Any) -> Any:
    factor = scale / channels.xp.sqrt(variance + epsilon)
    y = x * channels.wide(factor)
    y += channels.wide(offset - mean * factor)
    return y


def _gradient(k: KernelContext) -> Kernel:
    epsilon, training, dtype, xp = np.float32(float_attr(k, "epsilon")), k.attr("is_training"), k.dtype("T"), k.xp
    stats = k.output_types[1].as_numpy

    def gradient(dy: Any, x: Any, scale: Any, mean: Any, variance: Any, *_: Any) -> Any:
        dy, x = dy.astype(np.float32, copy=False), x.astype(np.float32, copy=False)
        channels = _Channels(k, x.ndim)
        deviation = 1 / xp.sqrt(variance + epsilon)
        normal = (x - channels.wide(mean)) * channels.wide(deviation)
        doffset, dscale = channels.total(dy), channels.total(dy * normal)
        dx = dy
        if training:
            size = max(1, x.size // max(1, scale.size))
            dx = dy - channels.wide(doffset / size) - normal * channels.wide(dscale / size)
        dx = (dx * channels.wide(scale * deviation)).astype(dtype, copy=False)
        unused = xp.zeros(0, stats)
        return dx, dscale.astype(stats, copy=False), doffset.astype(stats, copy=False), unused, unused

    return gradient


def _norm_grad(version: str) -> Callable[[Attrs], str]:
    """The gradient through y only: the other outputs are statistics, and inputs of the gradient itself."""

    def gradient(attrs: Attrs) -> str:
        v3 = version == "V3"
        stats = "T" if not version else "U"
        types = f"T=$T, {'U=$U, ' if version else ''}"
        names = ["y", "batch_mean", "batch_variance", "saved_mean", "saved_variance", *(["saved"] if v3 else [])]
        arrived = ", ".join(f"d{name}:{'T' if name == 'y' else stats}" for name in names)
        head = "T:{half, bfloat16, float}, U:{bfloat16, float}" if version else "T:{float}"
        trained = bool(attrs.get("is_training", True))
        saved = ("saved_mean", "saved_variance") if trained else ("mean", "variance")
        kept = "epsilon=$epsilon, data_format=$data_format, is_training=$is_training"
        return f"""[{head}, epsilon:float, exponential_avg_factor:float, data_format:string, is_training:bool](x:T, scale:{stats}, offset:{stats}, mean:{stats}, variance:{stats}, {arrived}) -> (dx:T, dscale:{stats}, doffset:{stats}, dmean:{stats}, dvariance:{stats}) {{
          {", ".join(names)} = FusedBatchNorm{version}[{types}exponential_avg_factor=$exponential_avg_factor, {kept}](x, scale, offset, mean, variance)
          dx, dscale, doffset, unused_1, unused_2 = FusedBatchNormGrad{version}[{types}{kept}](dy, x, scale, {saved[0]}, {saved[1]}{", saved" if v3 else ""})
{_by_statistics(attrs, stats, trained=trained)}        }}"""

    return gradient


def _by_statistics(attrs: Attrs, stats: str, *, trained: bool) -> str:
    """The gradients with respect to given statistics, which training does not use.

    Outside of training, y is scale (x - mean) / deviation + offset.
    """
    if trained:
        return f"  dmean = ZerosLike[T=${stats}](mean)\n  dvariance = ZerosLike[T=${stats}](variance)\n"
    lines = [
        f"eps_float = {scalar('float', attrs.get('epsilon', 9.999999747378752e-05))}",
        f"eps = Cast[SrcT=float, DstT=${stats}](eps_float)",
        f"shifted = AddV2[T=${stats}](variance, eps)",
        f"r = Rsqrt[T=${stats}](shifted)",
        f"sr = Mul[T=${stats}](scale, r)",
        f"moved = Mul[T=${stats}](sr, doffset)",
        f"dmean = Neg[T=${stats}](moved)",
        f"minus_half_float = {scalar('float', -0.5)}",
        f"minus_half = Cast[SrcT=float, DstT=${stats}](minus_half_float)",
        f"srr = Mul[T=${stats}](sr, r)",
        f"stretched = Mul[T=${stats}](srr, dscale)",
        f"dvariance = Mul[T=${stats}](stretched, minus_half)",
    ]
    return "".join(f"  {line}\n" for line in lines)


def _norm_grad_grad(version: str) -> Callable[[Attrs], str]:
    """The derivative of the gradient, in which mean and variance are those of x while training.

    With v, g for the incoming gradients of dx and y, h for the normalised x, r for 1 / deviation and M for the mean over a channel: dx
    = s r (g - M[g] - h M[g h]), and with a = M[v h], b = M[g h], c = M[v g] - M[v] M[g] the derivative of sum(v dx) with respect to x
    is -s r^2 (h (c - a b) + b (v - M[v] - h a) + a (g - M[g] - h b)).
    """

    def gradient(attrs: Attrs) -> str:
        stats = "T" if not version else "U"
        types = "T:{half, bfloat16, float}, U:{bfloat16, float}" if version else "T:{float}"
        v3 = version == "V3"
        last = ", reserve:U" if v3 else ""
        scale_type = "T" if not version else "float"
        head = (
            f"[{types}, epsilon:float, data_format:string, is_training:bool](g:T, x:T, scale:{scale_type}, mean:{stats}, variance:{stats}{last}, "
            f"v:T, vscale:{stats}, voffset:{stats}, unused_1:{stats}, unused_2:{stats}) -> "
            f"(dg:T, dx:T, dscale:{scale_type}, dmean:{stats}, dvariance:{stats}{', dreserve:U' if v3 else ''}) {{"
        )
        trained = bool(attrs.get("is_training", True))
        without = [*(("mean", "variance") if trained else ()), *(("reserve",) if v3 else ())]
        zeros = "".join(f"  d{name} = ZerosLike[T=${stats}]({name})\n" for name in without)
        return f"{head}\n{_common(attrs)}{_while_training() if trained else _frozen(stats)}{zeros}}}"

    return gradient


def _common(attrs: Attrs) -> str:
    """The inputs in float32, channels shaped to broadcast, and the axes of means."""
    nchw = not is_channels_last(attrs)
    x_type, u_type = "$T", "$U" if "U" in attrs else "$T"
    scale_type = "$T" if "U" not in attrs else "float"
    lines = [
        "shape = Shape[T=$T](x)",
        "rank = Rank[T=$T](x)",
        f"zero = {scalar('int32', 0)}",
        f"one = {scalar('int32', 1)}",
        f"channel = {scalar('int32', 1) if nchw else 'Sub[T=int32](rank, one)'}",
        "dims = Range(zero, rank, one)",
        "is_channel = Equal[T=int32](dims, channel)",
        "ones = OnesLike[T=int32](shape)",
        "wide = SelectV2[T=int32](is_channel, shape, ones)",
        "column = ExpandDims[T=int32](channel, zero)",
        "axes, axes_places = ListDiff[T=int32](dims, column)",
        f"xf = Cast[SrcT={x_type}, DstT=float](x)",
        f"gf = Cast[SrcT={x_type}, DstT=float](g)",
        f"vf = Cast[SrcT={x_type}, DstT=float](v)",
        f"meanf = Cast[SrcT={u_type}, DstT=float](mean)",
        f"variancef = Cast[SrcT={u_type}, DstT=float](variance)",
        f"vscalef = Cast[SrcT={u_type}, DstT=float](vscale)",
        f"voffsetf = Cast[SrcT={u_type}, DstT=float](voffset)",
        f"scalef = Cast[SrcT={scale_type}, DstT=float](scale)",
        "eps = " + scalar("float", attrs.get("epsilon", 9.999999747378752e-05)),
        "shifted = AddV2[T=float](variancef, eps)",
        "rv = Rsqrt[T=float](shifted)",
        *[
            f"{name}_w = Reshape[T=float]({source}, wide)"
            for name, source in (("mean", "meanf"), ("r", "rv"), ("s", "scalef"), ("vs", "vscalef"), ("vo", "voffsetf"))
        ],
        "centred = Sub[T=float](xf, mean_w)",
        "h = Mul[T=float](centred, r_w)",
        "sr = Mul[T=float](s_w, r_w)",
        "hvs = Mul[T=float](h, vs_w)",
        "direct = AddV2[T=float](hvs, vo_w)",
    ]
    return "".join(f"  {line}\n" for line in lines)


def _mean_of(name: str, source: str) -> str:
    return f"{name} = Mean[T=float, keep_dims=true]({source}, axes)"


def _while_training() -> str:
    lines = [
        _mean_of("mg", "gf"),
        _mean_of("mv", "vf"),
        "g0 = Sub[T=float](gf, mg)",
        "v0 = Sub[T=float](vf, mv)",
        "gh = Mul[T=float](gf, h)",
        "vh = Mul[T=float](vf, h)",
        _mean_of("b", "gh"),
        _mean_of("a", "vh"),
        "ha = Mul[T=float](h, a)",
        "hb = Mul[T=float](h, b)",
        "g1 = Sub[T=float](g0, hb)",
        "v1 = Sub[T=float](v0, ha)",
        "v2 = Mul[T=float](sr, v1)",
        "dgf = AddV2[T=float](v2, direct)",
        "dg = Cast[SrcT=float, DstT=$T](dgf)",
        "vg1 = Mul[T=float](vf, g1)",
        "vg2 = Mul[T=float](vg1, r_w)",
        "dscale = Sum[T=float](vg2, axes)",
        "vg = Mul[T=float](vf, g0)",
        _mean_of("c", "vg"),
        "ab = Mul[T=float](a, b)",
        "cab = Sub[T=float](c, ab)",
        "p1 = Mul[T=float](h, cab)",
        "p2 = Mul[T=float](b, v1)",
        "p3 = Mul[T=float](a, g1)",
        "p = AddN[N=3, T=float](p1, p2, p3)",
        "srr = Mul[T=float](sr, r_w)",
        "q = Mul[T=float](srr, p)",
        "vsr = Mul[T=float](vs_w, r_w)",
        "t = Mul[T=float](vsr, g1)",
        "dxf = Sub[T=float](t, q)",
        "dx = Cast[SrcT=float, DstT=$T](dxf)",
    ]
    return "".join(f"  {line}\n" for line in lines)


def _frozen(stats: str) -> str:
    lines = [
        "v2 = Mul[T=float](sr, vf)",
        "dgf = AddV2[T=float](v2, direct)",
        "dg = Cast[SrcT=float, DstT=$T](dgf)",
        "vg = Mul[T=float](vf, gf)",
        "vgr = Mul[T=float](vg, r_w)",
        "dscale = Sum[T=float](vgr, axes)",
        "vsr = Mul[T=float](vs_w, r_w)",
        "dxf = Mul[T=float](vsr, gf)",
        "dx = Cast[SrcT=float, DstT=$T](dxf)",
        "gsum = Sum[T=float](gf, axes)",
        "vr = Mul[T=float](vscalef, rv)",
        "moved = Mul[T=float](vr, gsum)",
        "dmeanf = Neg[T=float](moved)",
        f"dmean = Cast[SrcT=float, DstT=${stats}](dmeanf)",
        "gh = Mul[T=float](gf, h)",
        "ghsum = Sum[T=float](gh, axes)",
        "p1 = Mul[T=float](scalef, dscale)",
        "p2 = Mul[T=float](vscalef, ghsum)",
        "p = AddV2[T=float](p1, p2)",
        "rr = Mul[T=float](rv, rv)",
        "stretched = Mul[T=float](rr, p)",
        f"minus_half = {scalar('float', -0.5)}",
        "dvariancef = Mul[T=float](stretched, minus_half)",
        f"dvariance = Cast[SrcT=float, DstT=${stats}](dvariancef)",
    ]
    return "".join(f"  {line}\n" for line in lines)


def _ramp(*sizes: int) -> Any:
    count = int(np.prod(sizes))
    return (((np.arange(count) * 11 + 3) % 23 - 9.25) / 8).reshape(sizes).astype(np.float32)


_STATS: Final = [[1.0, 2.0, 3.0], [0.5, 0.0, -1.0], [1.0, 2.0, -3.0], [1.0, 4.0, 0.25]]
_X: Final = _ramp(2, 2, 2, 3)
_NORM_EXAMPLES: Final = (
    Example([_X, *_STATS]),
    Example([_X, *_STATS], {"is_training": False, "epsilon": 0.001}),
    Example([_X, *_STATS], {"exponential_avg_factor": 0.5}),
)
# In training, mean and variance depend on x, so finite differences in a single input do not show the derivative.
_GRAD_INPUTS: Final = [_ramp(2, 2, 2, 3)[::-1], _X, *_STATS[:1], _X.mean((0, 1, 2)), _X.var((0, 1, 2))]
_GRAD_EXAMPLES: Final = (
    Example(_GRAD_INPUTS, differentiable=False),
    Example(_GRAD_INPUTS, {"is_training": False}, differentiable=False),
)
_FOR_THE_CALLER: Final = "it is a statistic of x, for running averages"
_FOR_THE_GRADIENT: Final = "it is kept for the gradient of the op"
_STATISTICS: Final = {
    **dict.fromkeys(["batch_mean", "batch_variance"], _FOR_THE_CALLER),
    **dict.fromkeys(["reserve_space_1", "reserve_space_2", "reserve_space_3"], _FOR_THE_GRADIENT),
}


@op
class FusedBatchNorm:
    """Normalises each channel to mean 0 and variance 1, then scales and shifts it.

    x: [batch, rows, columns, channels], or in data_format's order
    scale: [channels]
    offset: [channels]
    mean: [channels], used outside of training
    variance: [channels], likewise
    y: like x
    batch_mean: the running mean, mixed from `mean` and that of x by exponential_avg_factor
    batch_variance: the running variance, likewise, from the unbiased variance of x
    reserve_space_1: the mean that was used, for the gradient
    reserve_space_2: the variance that was used, for the gradient
    epsilon: added to the variance.
    is_training: use the mean and variance of x itself.
    """

    layer = "normalization"
    signature = (
        f"FusedBatchNorm[T:{{float}}, {_EPSILON}, {_FACTOR}, {_FORMAT}](x:T, scale:T, offset:T, mean:T, variance:T) -> "
        "(y:T, batch_mean:T, batch_variance:T, reserve_space_1:T, reserve_space_2:T)"
    )
    shape = fused_batch_norm_shape
    can_fail = False
    kernel = _normalise
    gradient = _norm_grad("")
    no_gradient_through = _STATISTICS
    examples = _NORM_EXAMPLES


@op
class FusedBatchNormV2:
    """FusedBatchNorm with a separate type for the statistics.

    x: [batch, rows, columns, channels], or in data_format's order
    """

    layer = "normalization"
    signature = (
        f"FusedBatchNormV2[T:{{half, bfloat16, float}}, U:{{float}}, {_EPSILON}, {_FACTOR}, {_FORMAT}](x:T, scale:U, offset:U, mean:U, variance:U) -> "
        "(y:T, batch_mean:U, batch_variance:U, reserve_space_1:U, reserve_space_2:U)"
    )
    shape = fused_batch_norm_shape
    can_fail = False
    kernel = _normalise
    gradient = _norm_grad("V2")
    no_gradient_through = _STATISTICS
    examples = _NORM_EXAMPLES


@op
class FusedBatchNormV3:
    """FusedBatchNormV2 with one more output for the gradient, and for volumes too.

    x: [batch, rows, columns, channels], or in data_format's order
    reserve_space_3: not used
    """

    layer = "normalization"
    signature = (
        f"FusedBatchNormV3[T:{{half, bfloat16, float}}, U:{{bfloat16, float}}, {_EPSILON}, {_FACTOR}, {_FORMAT_3D}]"
        "(x:T, scale:U, offset:U, mean:U, variance:U) -> "
        "(y:T, batch_mean:U, batch_variance:U, reserve_space_1:U, reserve_space_2:U, reserve_space_3:U)"
    )
    shape = fused_batch_norm_shape
    can_fail = False
    kernel = _normalise
    gradient = _norm_grad("V3")
    no_gradient_through = _STATISTICS
    examples = _NORM_EXAMPLES


@op
class FusedBatchNormGrad(Total):
    """The gradient of FusedBatchNorm.

    y_backprop: the gradient of y
    reserve_space_1: the mean that was used
    reserve_space_2: the variance that was used
    reserve_space_3: empty
    reserve_space_4: empty
    """

    signature = (
        f"FusedBatchNormGrad[T:{{float}}, {_EPSILON}, {_FORMAT}](y_backprop:T, x:T, scale:T, reserve_space_1:T, reserve_space_2:T) -> "
        "(x_backprop:T, scale_backprop:T, offset_backprop:T, reserve_space_3:T, reserve_space_4:T)"
    )
    shape = fused_batch_norm_grad_shape
    kernel = _gradient
    gradient = _norm_grad_grad("")
    examples = _GRAD_EXAMPLES


@op
class FusedBatchNormGradV2(Total):
    """The gradient of FusedBatchNormV2.

    y_backprop: the gradient of y
    reserve_space_1: the mean that was used
    reserve_space_2: the variance that was used
    reserve_space_3: empty
    reserve_space_4: empty
    """

    signature = (
        f"FusedBatchNormGradV2[T:{{half, bfloat16, float}}, U:{{float}}, {_EPSILON}, {_FORMAT}]"
        "(y_backprop:T, x:T, scale:float, reserve_space_1:U, reserve_space_2:U) -> "
        "(x_backprop:T, scale_backprop:U, offset_backprop:U, reserve_space_3:U, reserve_space_4:U)"
    )
    shape = fused_batch_norm_grad_shape
    kernel = _gradient
    gradient = _norm_grad_grad("V2")
    examples = _GRAD_EXAMPLES


@op
class FusedBatchNormGradV3(Total):
    """The gradient of FusedBatchNormV3.

    y_backprop: the gradient of y
    reserve_space_1: the mean that was used
    reserve_space_2: the variance that was used
    reserve_space_3: not used
    reserve_space_4: empty
    reserve_space_5: empty
    """

    signature = (
        f"FusedBatchNormGradV3[T:{{half, bfloat16, float}}, U:{{float}}, {_EPSILON}, {_FORMAT_3D}]"
        "(y_backprop:T, x:T, scale:float, reserve_space_1:U, reserve_space_2:U, reserve_space_3:U) -> "
        "(x_backprop:T, scale_backprop:U, offset_backprop:U, reserve_space_4:U, reserve_space_5:U)"
    )
    shape = fused_batch_norm_grad_shape
    kernel = _gradient
    gradient = _norm_grad_grad("V3")
    examples = tuple([Example([*_GRAD_INPUTS, np.zeros(0, np.float32)], example.attrs, differentiable=False) for example in _GRAD_EXAMPLES])
