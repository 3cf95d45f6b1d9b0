"""Reductions: sums, products, extremes along axes.

The axes are an input. Constant axes are bound when the kernel is made; others are read at each run.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.attrs import Attrs
from graphcore.definitions.types import FunctionDef
from graphcore.inference import partial_rules
from graphcore.inference.shape_fns.common_shape_fns import reduction_shape
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.families import Reduction
from graphcore.opset.framework.gradient_text import INDEX_TYPE, axes_reduction_grad, index_typed, is_complex, scalar, vector
from graphcore.opset.framework.kernels import constant_ints, ints, narrow, reduction
from graphcore.opset.framework.type_sets import INDEX, NUMBER, ORDERED
from graphcore.registry import GradientCreator, KernelFactory
from graphcore.traits import FailsOn

_X: Final = [[-3.0, -2.0, -1.0], [1.0, 2.0, 3.5]]
_EXAMPLES: Final = (
    Example([_X, [1]]),
    Example([_X, 0]),
    Example([_X, [0, -1]], {"keep_dims": True}),
    Example([[_X, [[4.0, 5.0, -6.0], [0.5, -7.0, 8.0]]], [-2, 0]]),
    Example([_X, np.zeros(0, np.int32)]),
)


def reduction_kernel(name: str) -> KernelFactory:
    """The kernel that reduces with the ufunc `name`: inputs (input, reduction_indices)."""

    def kernel(k: KernelContext) -> Kernel:
        reduce, keep_dims, dtype = reduction(k.xp, name), k.attr("keep_dims"), k.output_types[0].as_numpy
        constant_axes = constant_ints(k, 1)
        if dtype is not None and narrow(dtype):
            return lambda x, axes: reduce(x, ints(axes) if constant_axes is None else constant_axes, np.float32, None, keep_dims).astype(
                dtype
            )
        if constant_axes is not None:
            return lambda x, _: reduce(x, constant_axes, dtype, None, keep_dims)
        return lambda x, axes: reduce(x, ints(axes), dtype, None, keep_dims)

    return kernel


@op
class Sum(Reduction):
    """The sum of the elements along the reduced axes.

    input: [...]
    reduction_indices: the axes, each in [-rank, rank); none at all gives the input.
    """

    signature = f"Sum[keep_dims:bool = false, T:{NUMBER}, Tidx:{INDEX} = int32](input:T, reduction_indices:Tidx) -> (output:T)"
    shape = reduction_shape
    kernel = reduction_kernel("add")
    gradient = axes_reduction_grad("""
        dy_reshaped = Reshape[T=$T](dy, y_shape:merged:0)
        dx = Tile[T=$T](dy_reshaped:output:0, tile_scaling:z:0)
    """)
    examples = _EXAMPLES
    failures = (Example([[[-3.0, -2.0, -1.0], [1.0, 2.0, 3.5]], [99]]),)


@op
class Mean(Reduction):
    """The mean of the elements along the reduced axes; integer results are truncated."""

    signature = f"Mean[keep_dims:bool = false, T:{NUMBER}, Tidx:{INDEX} = int32](input:T, reduction_indices:Tidx) -> (output:T)"
    layer = "pooling"
    shape = reduction_shape
    gradient = axes_reduction_grad("""
        factor = Prod[T=int32](tile_scaling:z:0, zero:output:0)
        factor_T = Cast[DstT=$T, SrcT=int32](factor:output:0)
        dy_scaled = Div[T=$T](dy, factor_T:y:0)
        dy_reshaped = Reshape[T=$T](dy_scaled:z:0, y_shape:merged:0)
        dx = Tile[T=$T](dy_reshaped:output:0, tile_scaling:z:0)
    """)
    examples = (*_EXAMPLES, Example([[-3, -4], 0], outputs=[-3]))
    failures = (Example([[[-3.0, -2.0, -1.0], [1.0, 2.0, 3.5]], [99]]),)

    def kernel(k: KernelContext) -> Kernel:
        reduce, keep_dims, dtype = k.xp.add.reduce, k.attr("keep_dims"), k.dtype("T")
        constant_axes = constant_ints(k, 1)
        wide = np.dtype(np.float32) if narrow(dtype) else dtype
        if dtype.kind in "iu":
            return _integer_mean(k)

        def mean(x: Any, axes: Any) -> Any:
            total = reduce(x, ints(axes) if constant_axes is None else constant_axes, wide, None, keep_dims)
            count = x.size // total.size if total.size else 1
            if count or dtype.kind != "c":  # without complex elements, TensorFlow returns 0
                total /= count
            return total

        return mean if wide is dtype else lambda x, axes: mean(x, axes).astype(dtype)


def _integer_mean(k: KernelContext) -> Kernel:
    """The sum, in 64 bits as in TensorFlow, divided and rounded towards 0."""
    reduce, keep_dims, dtype = k.xp.add.reduce, k.attr("keep_dims"), k.dtype("T")
    wide = np.dtype(np.uint64 if dtype.kind == "u" else np.int64)

    def mean(x: Any, axes: Any) -> Any:
        total = reduce(x, ints(axes), wide, None, keep_dims)
        count = x.size // total.size if total.size else 0
        if count:
            quotient = total // wide.type(count)
            total = quotient + ((quotient < 0) & (quotient * wide.type(count) != total))
        return total.astype(dtype)

    return mean


def _prod_grad_text(conjugate: str) -> GradientCreator:
    """The derivative of a product by one element: the product of those before and after it.

    This needs no division, so zeros are harmless.
    """
    return axes_reduction_grad(f"""
        flat = {vector("int32", -1)}
        i_flat = Reshape[T=int32](i, flat:output:0)
        i_shifted = AddV2[T=int32](i_flat:output:0, x_rank:output:0)
        reduced = FloorMod[T=int32](i_shifted:z:0, x_rank:output:0)
        others, others_idx = ListDiff[T=int32](stitch_idx0:output:0, reduced:z:0)
        perm = ConcatV2[N=2, T=int32](reduced:z:0, others:out:0, zero:output:0)
        reduced_dims = GatherV2[Taxis=int32, Tindices=int32, Tparams=int32](x_shape:output:0, reduced:z:0, zero:output:0)
        reduced_size = Prod[T=int32](reduced_dims:output:0, zero:output:0)
        other_dims = GatherV2[Taxis=int32, Tindices=int32, Tparams=int32](x_shape:output:0, others:out:0, zero:output:0)
        other_size = Prod[T=int32](other_dims:output:0, zero:output:0)
        matrix_shape = Pack[N=2, T=int32](reduced_size:output:0, other_size:output:0)
        permuted = Transpose[T=$T](x, perm:output:0)
        permuted_shape = Shape[T=$T](permuted:y:0)
        matrix = Reshape[T=$T](permuted:y:0, matrix_shape:output:0)
        before = Cumprod[T=$T, exclusive=true](matrix:output:0, zero:output:0)
        after = Cumprod[T=$T, exclusive=true, reverse=true](matrix:output:0, zero:output:0)
        rest_matrix = Mul[T=$T](before:out:0, after:out:0)
        rest_permuted = Reshape[T=$T](rest_matrix:z:0, permuted_shape:output:0)
        inverse = InvertPermutation[T=int32](perm:output:0)
        rest = Transpose[T=$T](rest_permuted:output:0, inverse:y:0)
        dy_reshaped = Reshape[T=$T](dy, y_shape:merged:0)
        derivative = {conjugate}[T=$T](rest:y:0)
        product = Mul[T=$T](derivative:output:0, dy_reshaped:output:0)
        dx = Reshape[T=$T](product:z:0, x_shape:output:0)
    """)


_REAL_PROD_GRAD: Final = _prod_grad_text("Identity")
_COMPLEX_PROD_GRAD: Final = _prod_grad_text("Conj")


def _prod_grad(attrs: Attrs) -> FunctionDef:
    return (_COMPLEX_PROD_GRAD if is_complex(attrs) else _REAL_PROD_GRAD)(attrs)


@op
class Prod(Reduction):
    """The product of the elements along the reduced axes."""

    signature = f"Prod[keep_dims:bool = false, T:{NUMBER}, Tidx:{INDEX} = int32](input:T, reduction_indices:Tidx) -> (output:T)"
    shape = reduction_shape
    partial_rule = partial_rules.PRODUCT
    kernel = reduction_kernel("multiply")
    gradient = _prod_grad
    examples = (*_EXAMPLES, Example([[[2.0, 0.0, 3.0], [0.0, 0.0, 5.0]], [1]]))
    failures = (Example([[[-3.0, -2.0, -1.0], [1.0, 2.0, 3.5]], [99]]),)


def _extreme(name: str, *, largest: bool) -> KernelFactory:
    """Max and Min: for no elements, the least or greatest value of the type."""

    def kernel(k: KernelContext) -> Kernel:
        xp, reduce, keep_dims, dtype = k.xp, reduction(k.xp, name), k.attr("keep_dims"), k.dtype("T")
        constant_axes = constant_ints(k, 1)

        def extreme(x: Any, axes: Any) -> Any:
            where = ints(axes) if constant_axes is None else constant_axes
            if x.size:
                return reduce(x, where, None, None, keep_dims)
            return xp.full(xp.add.reduce(x, where, dtype, None, keep_dims).shape, _bound(dtype, lowest=largest), dtype)

        return extreme

    return kernel


def _bound(dtype: np.dtype[Any], *, lowest: bool) -> Any:
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if lowest else np.iinfo(dtype).max
    return -np.inf if lowest else np.inf


def _extreme_grad(name: str) -> Any:
    def gradient(attrs: Attrs) -> str:
        keep = "keep_dims=true, " if attrs.get("keep_dims") else ""
        return index_typed(
            "Tidx",
            f"""[T:{{half, float, double}}](x:T, i:{INDEX_TYPE}, dy:T) -> (dx:T, di:{INDEX_TYPE}) {{
  y = {name}[Tidx={INDEX_TYPE}, T=$T, keep_dims=true](x, i)
  mask = Equal[T=$T](x, y)
  mask_cast = Cast[SrcT=bool, DstT=$T](mask)
  mask_sum = Sum[{keep}Tidx={INDEX_TYPE}, T=$T](mask_cast, i)
  norm_dy = Div[T=$T](dy, mask_sum)
  sy = Shape[T=$T](y)
  norm_dy_reshaped = Reshape[T=$T](norm_dy, sy)
  dx = Mul[T=$T](mask_cast, norm_dy_reshaped)
  di = ZerosLike[T={INDEX_TYPE}](i)
}}""",
        )(attrs).replace("Tidx=int32, ", "")

    return gradient


@op
class Max(Reduction):
    """The largest element along the reduced axes. The gradient is shared evenly among equal ones."""

    signature = f"Max[keep_dims:bool = false, T:{ORDERED}, Tidx:{INDEX} = int32](input:T, reduction_indices:Tidx) -> (output:T)"
    shape = reduction_shape
    kernel = _extreme("maximum", largest=True)
    gradient = _extreme_grad("Max")
    examples = _EXAMPLES
    failures = (Example([[[-3.0, -2.0, -1.0], [1.0, 2.0, 3.5]], [99]]),)


@op
class Min(Reduction):
    """The smallest element along the reduced axes. The gradient is shared evenly among equal ones."""

    signature = f"Min[keep_dims:bool = false, T:{ORDERED}, Tidx:{INDEX} = int32](input:T, reduction_indices:Tidx) -> (output:T)"
    shape = reduction_shape
    kernel = _extreme("minimum", largest=False)
    gradient = _extreme_grad("Min")
    examples = _EXAMPLES
    failures = (Example([[[-3.0, -2.0, -1.0], [1.0, 2.0, 3.5]], [99]]),)


def _euclidean_norm_grad(length: str, arriving: str) -> GradientCreator:
    return axes_reduction_grad(f"""
        y = EuclideanNorm[T=$T, keep_dims=true](x, i)
        {length}
        dy_reshaped = Reshape[T=$T]({arriving}, y_shape:merged:0)
        ratio = DivNoNan[T=$T](x, y:output:0)
        product = Mul[T=$T](ratio:z:0, dy_reshaped:output:0)
        dx = Reshape[T=$T](product:z:0, x_shape:output:0)
    """)


_REAL_NORM_GRAD: Final = _euclidean_norm_grad("", "dy")
# The result is real, so only the real part of the incoming gradient counts.
_COMPLEX_NORM_GRAD: Final = _euclidean_norm_grad(
    f"""const = {scalar("float", 0.5)}
        half = Cast[SrcT=float, DstT=$T](const:output:0)
        conj_dy = Conj[T=$T](dy)
        twice_real = AddV2[T=$T](dy, conj_dy:output:0)
        real = Mul[T=$T](twice_real:z:0, half:y:0)""",
    "real:z:0",
)


def _norm_grad(attrs: Attrs) -> FunctionDef:
    return (_COMPLEX_NORM_GRAD if is_complex(attrs) else _REAL_NORM_GRAD)(attrs)


@op
class EuclideanNorm:
    """The square root of the sum of squared magnitudes along the reduced axes."""

    pure = True
    signature = f"EuclideanNorm[keep_dims:bool = false, T:{NUMBER}, Tidx:{INDEX} = int32](input:T, reduction_indices:Tidx) -> (output:T)"
    shape = reduction_shape
    can_fail = FailsOn(values=("reduction_indices",))
    gradient = _norm_grad
    examples = _EXAMPLES
    failures = (Example([[[-3.0, -2.0, -1.0], [1.0, 2.0, 3.5]], [99]]),)

    def kernel(k: KernelContext) -> Kernel:
        xp, keep_dims, dtype = k.xp, k.attr("keep_dims"), k.dtype("T")
        constant_axes = constant_ints(k, 1)
        wide = np.dtype(np.float32) if narrow(dtype) else dtype

        def norm(x: Any, axes: Any) -> Any:
            x = x.astype(wide)
            total = xp.add.reduce(x * x.conj(), ints(axes) if constant_axes is None else constant_axes, wide, None, keep_dims)
            return xp.sqrt(total).astype(dtype)

        return norm
