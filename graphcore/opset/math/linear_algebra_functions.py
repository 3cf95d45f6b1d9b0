"""Square roots, logarithms and triangular factors of the matrices in the last two dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from graphcore.attrs import Attrs
from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import Example, Kernel, KernelContext, no_registered_gradient, op
from graphcore.opset.framework.gradient_text import is_complex, scalar
from graphcore.opset.framework.kernels import invalid, on_host
from graphcore.opset.math.linear_algebra_factors import NOT_SQUARE, TYPES, check_square, square_shape, widened
from graphcore.opset.numerics.matrix_functions import logarithm, square_root

_A: Final = np.array(
    [[[4.0, 1.0, 0.5], [2.0, 3.0, -0.5], [0.5, -1.0, 2.0]], [[2.0, 1.0, 0.0], [-1.0, 2.0, 0.25], [0.0, 0.5, 3.0]]], np.float32
)
_BLOCK: Final = np.array([[4.0, 1.0, 0.0], [0.0, 4.0, 1.0], [0.0, 0.0, 4.0]])


def _square_output(c: InferenceContext) -> None:
    c.set_output(0, square_shape(c))


def _matrix_function(k: KernelContext, function: Callable[[Any], Any]) -> Kernel:
    dtype = k.dtype("T")

    def call(a: Any) -> Any:
        check_square(k, a)
        try:
            return function(on_host(a)).astype(dtype, copy=False)
        except np.linalg.LinAlgError as e:
            raise invalid(k, f"the Schur form was not found: {e}") from None

    return call


@op
class MatrixSquareRoot:
    """The principal square root of each matrix: its eigenvalues have no negative real parts.

    A real matrix with a negative eigenvalue has no such real root, nor have some singular matrices; their results are NaN.

    input: [..., n, n]
    """

    signature = f"MatrixSquareRoot[{TYPES}](input:T) -> (output:T)"
    shape = _square_output
    cost = "cubic"
    device_types = ("CPU",)
    examples = (Example([_A]), Example([_BLOCK]), Example([[[4.0, 4.0], [0.0, 9.0]]], outputs=[[[2.0, 0.8], [0.0, 3.0]]]))
    failures = (NOT_SQUARE.format(op="MatrixSquareRoot"),)

    def kernel(k: KernelContext) -> Kernel:
        return _matrix_function(k, square_root)

    def gradient(attrs: Attrs) -> str:
        """The solution dx of y* dx + dx y* = dy, a system of n * n equations. TensorFlow's leaves out the conjugates."""
        conjugate = "Conj" if is_complex(attrs) else "Identity"
        return f"""[T:type](x:T, dy:T) -> (dx:T) {{
          y = MatrixSquareRoot[T=$T](x)
          diagonal = MatrixDiagPart[T=$T](y)
          ones = OnesLike[T=$T](diagonal)
          eye = MatrixDiag[T=$T](ones)
          adjoint = BatchMatMulV2[T=$T, adj_x=true, adj_y=false](y, eye)
          conjugate = {conjugate}[T=$T](y)
          last = {scalar("int32", -1)}
          before = {scalar("int32", -2)}
          third = {scalar("int32", -3)}
          fourth = {scalar("int32", -4)}
          left_column = ExpandDims[T=$T](adjoint, last)
          left = ExpandDims[T=$T](left_column, third)
          eye_column = ExpandDims[T=$T](eye, last)
          eye_left = ExpandDims[T=$T](eye_column, third)
          right_row = ExpandDims[T=$T](conjugate, before)
          right = ExpandDims[T=$T](right_row, fourth)
          eye_row = ExpandDims[T=$T](eye, before)
          eye_right = ExpandDims[T=$T](eye_row, fourth)
          by_left = Mul[T=$T](left, eye_right)
          by_right = Mul[T=$T](eye_left, right)
          equations = AddV2[T=$T](by_left, by_right)
          shape = Shape[T=$T](y)
          rank = Rank[T=$T](y)
          zero = {scalar("int32", 0)}
          one = {scalar("int32", 1)}
          two = {scalar("int32", 2)}
          axes = Sub[T=int32](rank, two)
          lead_axes = Range(zero, axes, one)
          lead = GatherV2[Taxis=int32, Tindices=int32, Tparams=int32](shape, lead_axes, zero)
          side_axis = Sub[T=int32](rank, one)
          side = GatherV2[Taxis=int32, Tindices=int32, Tparams=int32](shape, side_axis, zero)
          count = Mul[T=int32](side, side)
          square = Pack[T=int32, N=2, axis=0](count, count)
          column = Pack[T=int32, N=2, axis=0](count, one)
          square_shape = ConcatV2[N=2, T=int32, Tidx=int32](lead, square, zero)
          column_shape = ConcatV2[N=2, T=int32, Tidx=int32](lead, column, zero)
          matrix = Reshape[T=$T](equations, square_shape)
          rhs = Reshape[T=$T](dy, column_shape)
          solution = MatrixSolve[T=$T](matrix, rhs)
          dx = Reshape[T=$T](solution, shape)
        }}"""


@op
class MatrixLogarithm:
    """The principal logarithm of each matrix: its eigenvalues have imaginary parts from -pi to pi.

    Singular matrices have none; their results are NaN.

    input: [..., n, n], complex
    """

    signature = "MatrixLogarithm[T:{complex64, complex128}](input:T) -> (output:T)"
    shape = _square_output
    cost = "cubic"
    device_types = ("CPU",)
    gradient = no_registered_gradient("the gradient of this logarithm is not available, in TensorFlow neither")
    examples = (Example([_A.astype(np.complex64)]), Example([(_BLOCK * (1 + 2j))]))
    failures = (
        """
        three = Const[dtype=complex64, value=Tensor<type: complex64 shape: [1,3] values: (0,0) (1,0) (2,0)>]()
        hidden = PlaceholderWithDefault[dtype=complex64, shape=<unknown>](three)
        it = MatrixLogarithm[T=complex64](hidden)
        """,
    )

    def kernel(k: KernelContext) -> Kernel:
        return _matrix_function(k, logarithm)


@op
class Lu:
    """The factors of each matrix by elimination with row exchanges, and the order of the rows.

    input: [..., n, n], invertible
    lu: [..., n, n], the upper factor on and above the diagonal, the lower one below; the ones on its diagonal are left out
    p: [..., n]; row i of the product of the factors is row p[i] of the matrix
    """

    signature = f"Lu[{TYPES}, output_idx_type:{{int32, int64}} = int32](input:T) -> (lu:T, p:output_idx_type)"
    cost = "cubic"
    device_types = ("CPU",)
    gradient = no_registered_gradient(
        "the gradient of these factors is not available, in TensorFlow neither; MatrixSolve and MatrixDeterminant have one"
    )
    examples = (
        Example([_A]),
        Example([[[1.0, 2.0], [4.0, 4.0]]], {"output_idx_type": np.dtype(np.int64)}, outputs=[[[4.0, 4.0], [0.25, 1.0]], [1, 0]]),
    )
    failures = (Example([np.ones((2, 2), np.float32)]),)

    def shape(c: InferenceContext) -> None:
        in_shape = square_shape(c)
        c.set_output(0, in_shape)
        c.set_output(1, c.subshape(in_shape, 0, -1) if c.rank_known(in_shape) else c.unknown_shape())

    def kernel(k: KernelContext) -> Kernel:
        dtype, order_type = k.dtype("T"), k.dtype("output_idx_type")

        def factor(a: Any) -> Any:
            check_square(k, a)
            work = widened(k, a).reshape(math.prod(a.shape[:-2]), *a.shape[-2:]).copy()
            order = _eliminate(k, work).reshape(a.shape[:-1])
            return work.reshape(a.shape).astype(dtype, copy=False), order.astype(order_type)

        return factor


def _eliminate(k: KernelContext, a: Any) -> Any:
    """Replace matrices [count, n, n] by their factors, all at once. Returns the order of rows, [count, n]."""
    rows, n = np.arange(len(a)), a.shape[-1]
    order = np.tile(np.arange(n), (len(a), 1))
    for i in range(n):
        pivot = i + np.abs(a[:, i:, i]).argmax(1)
        a[rows, i], a[rows, pivot] = a[rows, pivot], a[rows, i]
        order[rows, i], order[rows, pivot] = order[rows, pivot], order[rows, i]
        if not (np.abs(a[:, i, i]) > 0).all():
            raise invalid(k, "Input is not invertible.")
        a[:, i + 1 :, i] /= a[:, i, i, None]
        a[:, i + 1 :, i + 1 :] -= a[:, i + 1 :, i, None] * a[:, i, None, i + 1 :]
    return order
