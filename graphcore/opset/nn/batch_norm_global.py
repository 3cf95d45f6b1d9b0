"""Batch normalisation of graphs older than version 9, with given statistics."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.attrs import Attrs
from graphcore.errors import UnimplementedError
from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.families import Total
from graphcore.opset.framework.gradient_text import scalar, vector
from graphcore.opset.framework.kernels import float_attr
from graphcore.opset.framework.type_sets import NUMBER

_ATTRS: Final = f"T:{NUMBER}, variance_epsilon:float, scale_after_normalization:bool"
_REMOVED: Final = '@deprecated(9, "Use tf.nn.batch_normalization()")'
_T: Final = [[[[1.0, -2.0], [0.5, 3.0]], [[-1.0, 0.25], [2.0, 1.5]]]]
_M: Final = [0.5, -0.25]
_V: Final = [1.5, 0.75]
_BETA: Final = [0.1, -0.3]
_GAMMA: Final = [2.0, 0.5]
_DY: Final = [[[[0.5, 1.0], [-1.0, 2.0]], [[1.5, -0.5], [0.25, 1.0]]]]
_SCALED: Final = {"variance_epsilon": 0.01, "scale_after_normalization": True}
_UNSCALED: Final = {"variance_epsilon": 0.01, "scale_after_normalization": False}


def _epsilon(k: KernelContext) -> Any:
    dtype = k.output_types[0]
    if not dtype.is_floating:
        raise UnimplementedError(f"{k.op} needs a floating point type, got {dtype.text}", op=k.op, node=k.node_name, source=k.source)
    return k.dtype("T").type(float_attr(k, "variance_epsilon"))


def _gradient(_attrs: Attrs) -> str:
    kept = "T=$T, variance_epsilon=$variance_epsilon, scale_after_normalization=$scale_after_normalization"
    return f"""[T:type, variance_epsilon:float, scale_after_normalization:bool](t:T, m:T, v:T, beta:T, gamma:T, dresult:T) ->
        (dt:T, dm:T, dv:T, dbeta:T, dgamma:T) {{
      dt, dm, dv, dbeta, dgamma = BatchNormWithGlobalNormalizationGrad[{kept}](t, m, v, gamma, dresult)
    }}"""


def _second_gradient(attrs: Attrs) -> str:
    """The derivative of the gradients, for incoming gx, gm, gv, gb and gg.

    With c = t - m, r = 1 / sqrt(v + epsilon), s = r gamma (or r), S for a sum over all but the channels, A = S[gx dy] - gm S[dy], B = S[dy
    c], h = r^2 / 2 and w = gg r - gv s h, the derivatives by dy, t, m and gamma are (gx - gm) s + gb + c w, dy w, -S[dy] w and r (A - gv B
    h), and that by v is h (3 gv B s h - s A - gg r B). If gamma is left out, gg is not used, since the gradient of gamma is zero.
    """
    scaled = bool(attrs.get("scale_after_normalization"))
    return f"""[T:type, variance_epsilon:float, scale_after_normalization:bool](t:T, m:T, v:T, gamma:T, dy:T, gx:T, gm:T, gv:T, gb:T, gg:T) ->
        (dt:T, dm:T, dv:T, dgamma:T, ddy:T) {{
      epsilon_float = {scalar("float", attrs.get("variance_epsilon", 0.0))}
      epsilon = Cast[SrcT=float, DstT=$T](epsilon_float)
      half_float = {scalar("float", 0.5)}
      half = Cast[SrcT=float, DstT=$T](half_float)
      three_float = {scalar("float", 3.0)}
      three = Cast[SrcT=float, DstT=$T](three_float)
      axes = {vector("int32", 0, 1, 2)}
      shifted = AddV2[T=$T](v, epsilon)
      r = Rsqrt[T=$T](shifted)
      rr = Mul[T=$T](r, r)
      h = Mul[T=$T](half, rr)
      s = {"Mul[T=$T](r, gamma)" if scaled else "Identity[T=$T](r)"}
      c = Sub[T=$T](t, m)
      sh = Mul[T=$T](s, h)
      gv_sh = Mul[T=$T](gv, sh)
      gg_r = {"Mul[T=$T](gg, r)" if scaled else "ZerosLike[T=$T](gg)"}
      w = Sub[T=$T](gg_r, gv_sh)
      dt = Mul[T=$T](dy, w)
      sum_dy = Sum[T=$T](dy, axes)
      minus_w = Neg[T=$T](w)
      dm = Mul[T=$T](sum_dy, minus_w)
      gx_gm = Sub[T=$T](gx, gm)
      through_s = Mul[T=$T](gx_gm, s)
      through_w = Mul[T=$T](c, w)
      without_gb = AddV2[T=$T](through_s, through_w)
      ddy = AddV2[T=$T](without_gb, gb)
      gx_dy = Mul[T=$T](gx, dy)
      sum_gx_dy = Sum[T=$T](gx_dy, axes)
      gm_sum_dy = Mul[T=$T](gm, sum_dy)
      A = Sub[T=$T](sum_gx_dy, gm_sum_dy)
      dy_c = Mul[T=$T](dy, c)
      B = Sum[T=$T](dy_c, axes)
      gv_B = Mul[T=$T](gv, B)
      gv_B_h = Mul[T=$T](gv_B, h)
      left = Sub[T=$T](A, gv_B_h)
      dgamma = {"Mul[T=$T](r, left)" if scaled else "ZerosLike[T=$T](gamma)"}
      three_gv_B_h = Mul[T=$T](three, gv_B_h)
      inner = Sub[T=$T](three_gv_B_h, A)
      s_inner = Mul[T=$T](s, inner)
      gg_r_B = Mul[T=$T](gg_r, B)
      both = Sub[T=$T](s_inner, gg_r_B)
      dv = Mul[T=$T](h, both)
    }}"""


@op
class BatchNormWithGlobalNormalization(Total):
    """`(t - m) / sqrt(v + variance_epsilon) * gamma + beta` by channel; newer graphs: FusedBatchNormV3.

    t: [batch, rows, columns, depth]
    m: the means, [depth]
    v: the variances, [depth]
    beta: the offset, [depth]
    gamma: the scale, [depth]
    scale_after_normalization: if false, gamma is left out.
    """

    signature = f"BatchNormWithGlobalNormalization[{_ATTRS}](t:T, m:T, v:T, beta:T, gamma:T) -> (result:T) {_REMOVED}"
    gradient = _gradient
    examples = (Example([_T, _M, _V, _BETA, _GAMMA], _SCALED), Example([_T, _M, _V, _BETA, _GAMMA], _UNSCALED))

    def shape(c: InferenceContext) -> None:
        t = c.with_rank(c.input(0), 4)
        depth = c.dim(t, 3)
        for i in range(1, 5):
            depth = c.merge_dim(depth, c.dim(c.with_rank(c.input(i), 1), 0))
        c.set_output(0, c.replace_dim(t, 3, depth))

    def kernel(k: KernelContext) -> Kernel:
        epsilon, scaled, xp = _epsilon(k), k.attr("scale_after_normalization"), k.xp

        def normalise(t: Any, m: Any, v: Any, beta: Any, gamma: Any) -> Any:
            factor = 1 / xp.sqrt(v + epsilon)
            return ((t - m) * (factor * gamma if scaled else factor) + beta).astype(t.dtype, copy=False)

        return normalise


@op
class BatchNormWithGlobalNormalizationGrad(Total):
    """The gradients of BatchNormWithGlobalNormalization.

    t: [batch, rows, columns, depth]
    m: the means, [depth]
    v: the variances, [depth]
    gamma: the scale, [depth]
    backprop: the gradient of the result, like t
    dx: that of t
    dm: that of m
    dv: that of v
    db: that of beta
    dg: that of gamma; zeros if it was left out
    scale_after_normalization: if false, gamma was left out.
    """

    signature = (
        f"BatchNormWithGlobalNormalizationGrad[{_ATTRS}](t:T, m:T, v:T, gamma:T, backprop:T) -> (dx:T, dm:T, dv:T, db:T, dg:T) {_REMOVED}"
    )
    gradient = _second_gradient
    examples = (Example([_T, _M, _V, _GAMMA, _DY], _SCALED), Example([_T, _M, _V, _GAMMA, _DY], _UNSCALED))

    def shape(c: InferenceContext) -> None:
        t = c.merge(c.with_rank(c.input(0), 4), c.with_rank(c.input(4), 4))
        depth = c.dim(t, 3)
        for i in range(1, 4):
            depth = c.merge_dim(depth, c.dim(c.with_rank(c.input(i), 1), 0))
        c.set_output(0, c.replace_dim(t, 3, depth))
        for i in range(1, 5):
            c.set_output(i, c.vector(depth))

    def kernel(k: KernelContext) -> Kernel:
        epsilon, scaled, xp = _epsilon(k), k.attr("scale_after_normalization"), k.xp
        wide = np.promote_types(k.dtype("T"), np.float32)

        def total(x: Any, dtype: np.dtype[Any]) -> Any:
            return xp.add.reduce(x, (0, 1, 2), wide).astype(dtype, copy=False)

        def gradients(t: Any, m: Any, v: Any, gamma: Any, backprop: Any) -> Any:
            factor = 1 / xp.sqrt(v + epsilon)
            by_beta, by_normal = total(backprop, t.dtype), total(backprop * (t - m), t.dtype)
            scale = factor * gamma if scaled else factor
            by_gamma = by_normal * factor if scaled else xp.zeros_like(gamma)
            results = backprop * scale, -by_beta * scale, by_normal * scale / (v + epsilon) * t.dtype.type(-0.5), by_beta, by_gamma
            return tuple([value.astype(t.dtype, copy=False) for value in results])

        return gradients
