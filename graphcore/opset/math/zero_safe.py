"""Products and quotients that are 0 for x = 0 and any y; and clipping."""

from __future__ import annotations

from typing import Any, Final

from graphcore.functions import binary_grad
from graphcore.inference.shape_fns.common_shape_fns import broadcast_binary_op_shape_fn, unchanged_shape
from graphcore.opset.framework.block import NO_GRADIENT, Example, InferenceContext, Kernel, KernelContext, op
from graphcore.opset.framework.families import Elementwise
from graphcore.opset.framework.gradient_text import ONE, holomorphic
from graphcore.opset.framework.kernels import float_attr
from graphcore.opset.framework.type_sets import NUMBER

_TYPES: Final = "{half, bfloat16, float, double, complex64, complex128}"
_IS_X_ZERO: Final = """zeros = ZerosLike(x)
        is_x_zero = NotEqual(x, zeros)
        is_zero_cast = Cast[SrcT=bool, DstT=$T](is_x_zero)"""
_EXAMPLES: Final = (
    Example([[1.0, -2.0, 0.5], [[2.0], [0.5]]]),
    Example([[0.0, 1.0], [0.0, 3.0]], differentiable=False),
)


@op
class Xlogy(Elementwise):
    """`x * log(y)`, and 0 where x is 0."""

    signature = f"Xlogy[T:{_TYPES}](x:T, y:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    gradient = holomorphic(
        binary_grad(f"""
        {_IS_X_ZERO}
        safe_logy = Xlogy(is_zero_cast, y)
        xlogygrad = Xdivy(x, y)
        gx = Mul(safe_logy, dz)
        gy = Mul(xlogygrad, dz)
    """)
    )
    examples = _EXAMPLES

    def kernel(k: KernelContext) -> Kernel:
        where, log, zero = k.xp.where, k.xp.log, k.dtype("T").type(0)
        return lambda x, y: where(x == 0, zero, x * log(y))


@op
class Xlog1py(Elementwise):
    """`x * log(1 + y)`, and 0 where x is 0."""

    signature = f"Xlog1py[T:{_TYPES}](x:T, y:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    gradient = holomorphic(
        binary_grad(f"""
        {ONE}
        zeros = ZerosLike(x)
        yp1 = Add(y, one)
        is_x_zero = NotEqual(x, zeros)
        is_zero_cast = Cast[SrcT=bool, DstT=$T](is_x_zero)
        safe_log1py = Xlog1py(is_zero_cast, y)
        xlog1pygrad = Xdivy(x, yp1)
        gx = Mul(safe_log1py, dz)
        gy = Mul(xlog1pygrad, dz)
    """)
    )
    examples = _EXAMPLES

    def kernel(k: KernelContext) -> Kernel:
        where, log1p, zero = k.xp.where, k.xp.log1p, k.dtype("T").type(0)
        return lambda x, y: where(x == 0, zero, x * log1p(y))


@op
class Xdivy(Elementwise):
    """`x / y`, and 0 where x is 0."""

    signature = f"Xdivy[T:{_TYPES}](x:T, y:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    gradient = holomorphic(
        binary_grad(f"""
        {_IS_X_ZERO}
        safe_divy = Xdivy(is_zero_cast, y)
        y2 = Square(y)
        negy2 = Neg(y2)
        xdivygrad = Xdivy(x, negy2)
        gx = Mul(safe_divy, dz)
        gy = Mul(xdivygrad, dz)
    """)
    )
    examples = _EXAMPLES

    def kernel(k: KernelContext) -> Kernel:
        where, zero = k.xp.where, k.dtype("T").type(0)
        return lambda x, y: where(x == 0, zero, x / y)


@op
class ApproximateEqual(Elementwise):
    """True where x and y differ by less than the tolerance."""

    signature = f"ApproximateEqual[T:{NUMBER}, tolerance:float = 9.999999747378752e-06](x:T, y:T) -> (z:bool)"
    commutative = True
    gradient = NO_GRADIENT
    examples = (Example([[1.0, 2.0], [1.0000001, 2.1]], outputs=[[True, False]]), Example([[1.0, 2.0], [1.05, 2.2]], {"tolerance": 0.1}))

    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.merge(c.input(0), c.input(1)))

    def kernel(k: KernelContext) -> Kernel:
        absolute, tolerance = k.xp.absolute, float_attr(k, "tolerance")
        return lambda x, y: absolute(x - y) < tolerance


@op
class ClipByValue(Elementwise):
    """The elements of t, limited to the minimum and maximum.

    clip_value_min: a scalar, or like t
    clip_value_max: a scalar, or like t
    """

    pure = True
    signature = f"ClipByValue[T:{NUMBER}](t:T, clip_value_min:T, clip_value_max:T) -> (output:T)"
    shape = unchanged_shape
    memory = "unknown"
    # The gradient of a clipped element goes to the bound that clips it.
    gradient = """[T:{half, float, double}](t:T, low:T, high:T, dz:T) -> (dt:T, dlow:T, dhigh:T) {
      zeros = ZerosLike[T=$T](dz)
      below = Less[T=$T](t, low)
      above = Greater[T=$T](t, high)
      outside = LogicalOr(below, above)
      dt = SelectV2[T=$T](outside, zeros, dz)
      glow = SelectV2[T=$T](below, dz, zeros)
      ghigh = SelectV2[T=$T](above, dz, zeros)
      st = Shape[T=$T](t)
      slow = Shape[T=$T](low)
      shigh = Shape[T=$T](high)
      rt_low, rlow = BroadcastGradientArgs(st, slow)
      rt_high, rhigh = BroadcastGradientArgs(st, shigh)
      sum_low = Sum[T=$T](glow, rlow)
      dlow = Reshape[T=$T](sum_low, slow)
      sum_high = Sum[T=$T](ghigh, rhigh)
      dhigh = Reshape[T=$T](sum_high, shigh)
    }"""
    examples = (Example([[[-3.0, -1.0, 0.5], [1.0, 2.0, 3.5]], -1.5, 2.5]), Example([[-3.0, 2.0, 5.0], [-1.0, 0.0, 1.0], [0.0, 3.0, 4.0]]))

    def kernel(k: KernelContext) -> Kernel:
        minimum, maximum = k.xp.minimum, k.xp.maximum

        def clip(t: Any, low: Any, high: Any) -> Any:
            return maximum(minimum(t, high), low)

        def clip_parts(t: Any, low: Any, high: Any) -> Any:
            return clip(t.real, low.real, high.real) + 1j * clip(t.imag, low.imag, high.imag)

        return clip_parts if k.dtype("T").kind == "c" else clip
