"""Triangular factors of matrices, and systems of equations, in the last two dimensions."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.attrs import Attrs
from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import broadcast_shapes
from graphcore.opset.framework.block import Example, Kernel, KernelContext, no_registered_gradient, op
from graphcore.opset.framework.gradient_text import is_complex, required_type
from graphcore.opset.framework.kernels import invalid, on_host

TYPES: Final = "T:{double, float, half, complex64, complex128}"
_P: Final = np.array(
    [[[4.0, 1.0, 0.5], [1.0, 3.0, -0.5], [0.5, -0.5, 2.0]], [[2.0, 0.5, 0.0], [0.5, 1.0, 0.25], [0.0, 0.25, 3.0]]], np.float32
)
_TALL: Final = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.25]], np.float32)
_B: Final = np.array([[[1.0, 2.0], [-1.0, 0.5], [0.25, 3.0]], [[0.0, 1.0], [2.0, -3.0], [1.0, 1.0]]], np.float32)
NOT_SQUARE: Final = """
    three = Const[dtype=float, value=Tensor<type: float shape: [1,3] values: 0 1 2>]()
    hidden = PlaceholderWithDefault[dtype=float, shape=<unknown>](three)
    it = {op}[T=float](hidden)
"""


def square_shape(c: InferenceContext, index: int = 0) -> Any:
    """The shape of an input of square matrices."""
    in_shape = c.with_rank_at_least(c.input(index), 2)
    if in_shape.dims is None:
        return in_shape
    side = c.merge_dim(c.dim(in_shape, -2), c.dim(in_shape, -1))
    return c.concatenate(c.subshape(in_shape, 0, -2), c.matrix(side, side))


def check_square(k: KernelContext, a: Any) -> None:
    """Check that an array has square matrices in its last two dimensions.

    Raises:
        InvalidArgumentError: it has not.
    """
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise invalid(k, f"Input matrix must be square, got shape {list(a.shape)}")


def widened(k: KernelContext, a: Any) -> Any:
    """The matrices on the host, half precision converted, which LAPACK does not have."""
    return on_host(a).astype(np.float32 if k.dtype("T").itemsize == 2 else k.dtype("T"), copy=False)


@op
class Cholesky:
    """The lower triangular factors of positive definite matrices.

    The product of a factor and its conjugate transpose is the matrix.

    input: [..., n, n]; only the lower half is read
    """

    signature = f"Cholesky[{TYPES}](input:T) -> (output:T)"
    cost = "cubic"
    device_types = ("CPU",)
    examples = (Example([_P], differentiable=False), Example([[[9.0]]], outputs=[[[3.0]]], differentiable=False))
    failures = (Example([[[-1.0]]]),)

    def shape(c: InferenceContext) -> None:
        c.set_output(0, square_shape(c))

    def kernel(k: KernelContext) -> Kernel:
        dtype = k.dtype("T")

        def factor(a: Any) -> Any:
            check_square(k, a)
            lower = np.tril(widened(k, a))
            try:
                return np.linalg.cholesky(lower + np.tril(lower, -1).swapaxes(-1, -2).conj()).astype(dtype, copy=False)
            except np.linalg.LinAlgError:
                raise invalid(k, "Cholesky decomposition was not successful. The input might not be valid.") from None

        return factor

    # As in TensorFlow the gradient of a symmetric matrix, though the kernel reads one half.
    gradient = """[T:type](x:T, dl:T) -> (dx:T) {
      l = Cholesky[T=$T](x)
      inverse = MatrixInverse[T=$T, adjoint=true](l)
      product = BatchMatMulV2[T=$T, adj_x=true, adj_y=false](l, dl)
      all = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: -1>]()
      none = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: 0>]()
      lower = MatrixBandPart[T=$T, Tindex=int64](product, all, none)
      diagonal = MatrixDiagPart[T=$T](product)
      half_float = Const[dtype=float, value=Tensor<type: float shape: [] values: 0.5>]()
      half = Cast[SrcT=float, DstT=$T](half_float)
      halves = Mul[T=$T](diagonal, half)
      middle = MatrixSetDiag[T=$T](lower, halves)
      left = BatchMatMulV2[T=$T, adj_x=false, adj_y=false](inverse, middle)
      both = BatchMatMulV2[T=$T, adj_x=false, adj_y=true](left, inverse)
      rank = Rank[T=$T](both)
      two = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 2>]()
      one = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 1>]()
      zero = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 0>]()
      before = Sub[T=int32](rank, two)
      last = Sub[T=int32](rank, one)
      lead = Range[Tidx=int32](zero, before, one)
      swapped = Pack[N=2, T=int32, axis=0](last, before)
      perm = ConcatV2[N=2, T=int32](lead, swapped, zero)
      turned = ConjugateTranspose[T=$T, Tperm=int32](both, perm)
      sum = Add[T=$T](both, turned)
      dx = Mul[T=$T](sum, half)
    }"""


def _triangle(a: Any, *, lower: bool) -> Any:
    return np.tril(a) if lower else np.triu(a)


@op
class MatrixTriangularSolve:
    """The solutions x of matrix x = rhs for triangular matrices.

    matrix: [..., n, n]; only one half is read
    rhs: [..., n, m]
    output: [..., n, m]
    lower: the matrices are lower triangular.
    adjoint: take the conjugate transposes of the matrices.
    """

    signature = (
        "MatrixTriangularSolve[lower:bool = true, adjoint:bool = false, T:{bfloat16, double, float, half, complex64, complex128}]"
        "(matrix:T, rhs:T) -> (output:T)"
    )
    cost = "cubic"
    device_types = ("CPU",)
    examples = (
        Example([_P, _B]),
        Example([_P, _B], {"lower": False}),
        Example([_P, _B], {"adjoint": True}),
        Example([_P[0], _B], {"lower": False, "adjoint": True}),
    )
    failures = (Example([np.zeros((3, 3), np.float32), np.ones((3, 1), np.float32)]),)

    def shape(c: InferenceContext) -> None:
        matrix, rhs = square_shape(c, 0), c.with_rank_at_least(c.input(1), 2)
        if not c.rank_known(matrix) or not c.rank_known(rhs):
            c.set_output(0, c.unknown_shape())
            return
        rows = c.merge_dim(c.dim(matrix, -1), c.dim(rhs, -2))
        batch = broadcast_shapes(c.subshape(matrix, 0, -2), c.subshape(rhs, 0, -2))
        c.set_output(0, c.concatenate(batch, c.matrix(rows, c.dim(rhs, -1))))

    def kernel(k: KernelContext) -> Kernel:
        dtype, lower, adjoint = k.dtype("T"), bool(k.attr("lower")), bool(k.attr("adjoint"))

        def solve(a: Any, b: Any) -> Any:
            check_square(k, a)
            if b.ndim < 2 or b.shape[-2] != a.shape[-1]:
                raise invalid(k, f"rhs {list(b.shape)} does not fit matrix {list(a.shape)}")
            half = _triangle(widened(k, a), lower=lower)
            if not half.diagonal(0, -2, -1).all():
                raise invalid(k, "Input matrix is not invertible.")
            return np.linalg.solve(half.swapaxes(-1, -2).conj() if adjoint else half, widened(k, b)).astype(dtype, copy=False)

        return solve

    def gradient(attrs: Attrs) -> str:
        lower, adjoint = bool(attrs.get("lower", True)), bool(attrs.get("adjoint"))
        first, second = ("x", "db_all") if adjoint else ("db_all", "x")
        band = ("all", "none") if lower else ("none", "all")
        return f"""[lower:bool, adjoint:bool, T:type](a:T, b:T, dx:T) -> (da:T, db:T) {{
          x = MatrixTriangularSolve[lower=$lower, adjoint=$adjoint, T=$T](a, b)
          db_all = MatrixTriangularSolve[lower=$lower, adjoint={str(not adjoint).lower()}, T=$T](a, dx)
          product = BatchMatMulV2[T=$T, adj_x=false, adj_y=true]({first}, {second})
          negative = Neg[T=$T](product)
          all = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: -1>]()
          none = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: 0>]()
          da_all = MatrixBandPart[T=$T, Tindex=int64](negative, {band[0]}, {band[1]})
          a_shape = Shape[T=$T](a)
          b_shape = Shape[T=$T](b)
          da_shape = Shape[T=$T](da_all)
          db_shape = Shape[T=$T](db_all)
          of_a, _a = BroadcastGradientArgs[T=int32](a_shape, da_shape)
          of_b, _b = BroadcastGradientArgs[T=int32](b_shape, db_shape)
          da_sum = Sum[T=$T, Tidx=int32](da_all, of_a)
          db_sum = Sum[T=$T, Tidx=int32](db_all, of_b)
          da = Reshape[T=$T](da_sum, a_shape)
          db = Reshape[T=$T](db_sum, b_shape)
        }}"""


@op
class LogMatrixDeterminant:
    """The sign of the determinant of each matrix, and the logarithm of its magnitude.

    input: [n..., side, side]
    sign: [n...]
    log_abs_determinant: [n...]
    """

    signature = "LogMatrixDeterminant[T:{half, float, double, complex64, complex128}](input:T) -> (sign:T, log_abs_determinant:T)"
    cost = "cubic"
    device_types = ("CPU",)
    examples = (Example([_P]), Example([[[-2.0]]]))
    failures = (NOT_SQUARE.format(op="LogMatrixDeterminant"),)

    def shape(c: InferenceContext) -> None:
        in_shape = c.with_rank_at_least(c.input(0), 2)
        if c.rank_known(in_shape):
            c.merge_dim(c.dim(in_shape, -2), c.dim(in_shape, -1))
        batch = c.subshape(in_shape, 0, -2) if c.rank_known(in_shape) else c.unknown_shape()
        c.set_output(0, batch)
        c.set_output(1, batch)

    def kernel(k: KernelContext) -> Kernel:
        dtype = k.dtype("T")

        def logarithm(a: Any) -> Any:
            check_square(k, a)
            sign, value = np.linalg.slogdet(widened(k, a))
            return np.asarray(sign).astype(dtype, copy=False), np.asarray(value).astype(dtype, copy=False)

        return logarithm

    def gradient(attrs: Attrs) -> str:
        """The sign is constant almost everywhere for real matrices; for complex ones it turns."""
        turning = ""
        if is_complex(attrs):
            real = {"complex64": "float", "complex128": "double"}[required_type(attrs).text]
            turning = f"""
              sign, log = LogMatrixDeterminant[T=$T](x)
              back = Conj[T=$T](sign)
              turned = Mul[T=$T](ds, back)
              angle = Imag[T=$T, Tout={real}](turned)
              size = Real[T=$T, Tout={real}](dy)
              factor = Complex[T={real}, Tout=$T](size, angle)"""
        return f"""[T:type](x:T, ds:T, dy:T) -> (dx:T) {{{turning}
              inverse = MatrixInverse[T=$T, adjoint=true](x)
              last = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: -1>]()
              column = ExpandDims[T=$T]({"factor" if turning else "dy"}, last)
              matrix = ExpandDims[T=$T](column, last)
              dx = Mul[T=$T](matrix, inverse)
            }}"""


@op
class MatrixSolveLs:
    """The least-squares solutions x of matrix x = rhs, by the normal equations.

    matrix: [..., m, n]
    rhs: [..., m, k]
    l2_regularizer: the weight of the squares of x, a scalar
    output: [..., n, k]
    fast: if false, a complete orthogonal decomposition, without regularisation.
    """

    signature = "MatrixSolveLs[T:{double, float, half, complex64, complex128}, fast:bool = true](matrix:T, rhs:T, l2_regularizer:double) -> (output:T)"
    cost = "cubic"
    device_types = ("CPU",)
    gradient = no_registered_gradient("the gradient of this solution is not available; differentiate through Cholesky or MatrixSolve")
    examples = (Example([_TALL, _B[0], np.float64(0.1)]), Example([_TALL, _B[0], np.float64(0.0)], {"fast": False}))
    failures = (Example([np.zeros((3, 2), np.float32), _B[0], np.float64(0.0)]),)

    def shape(c: InferenceContext) -> None:
        c.with_rank(c.input(2), 0)
        matrix, rhs = c.with_rank_at_least(c.input(0), 2), c.with_rank_at_least(c.input(1), 2)
        batch = c.merge(c.subshape(matrix, 0, -2), c.subshape(rhs, 0, -2))
        c.merge_dim(c.dim(matrix, -2), c.dim(rhs, -2))
        c.set_output(0, c.concatenate(batch, c.matrix(c.dim(matrix, -1), c.dim(rhs, -1))))

    def kernel(k: KernelContext) -> Kernel:
        dtype, fast = k.dtype("T"), bool(k.attr("fast"))

        def solve(a: Any, b: Any, weight: Any) -> Any:
            if a.ndim < 2 or a.shape[:-1] != b.shape[:-1]:
                raise invalid(k, f"matrix {list(a.shape)} and rhs {list(b.shape)} do not fit")
            wide, rhs = widened(k, a), widened(k, b)
            if not fast:
                return (np.linalg.pinv(wide) @ rhs).astype(dtype, copy=False)
            turned = wide.swapaxes(-1, -2).conj()
            ridge = wide.dtype.type(float(weight))
            try:
                if a.shape[-2] >= a.shape[-1]:
                    return np.linalg.solve(turned @ wide + ridge * np.eye(a.shape[-1], dtype=wide.dtype), turned @ rhs).astype(
                        dtype, copy=False
                    )
                inner = wide @ turned + ridge * np.eye(a.shape[-2], dtype=wide.dtype)
                return (turned @ np.linalg.solve(inner, rhs)).astype(dtype, copy=False)
            except np.linalg.LinAlgError:
                raise invalid(
                    k, "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a larger l2_regularizer > 0."
                ) from None

        return solve
