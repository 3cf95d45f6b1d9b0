"""Inverses, determinants and systems of equations, of the matrices in the last two dimensions."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.attrs import Attrs
from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.families import Total
from graphcore.opset.framework.gradient_text import is_complex
from graphcore.opset.framework.kernels import invalid

_TYPES: Final = "T:{double, float, half, complex64, complex128}"
_A: Final = np.array([[[2.0, 1.0], [-1.0, 3.0]], [[1.0, 0.5], [0.25, -2.0]]], np.float32)
_B: Final = np.array([[[1.0, 2.0, 3.0], [-1.0, 0.5, 2.0]], [[0.0, 1.0, 4.0], [2.0, -3.0, 1.0]]], np.float32)


def _square(c: InferenceContext) -> None:
    in_shape = c.with_rank_at_least(c.input(0), 2)
    if in_shape.dims is None:
        c.set_output(0, in_shape)
        return
    side = c.merge_dim(c.dim(in_shape, -2), c.dim(in_shape, -1))
    c.set_output(0, c.concatenate(c.subshape(in_shape, 0, -2), c.matrix(side, side)))


def _checked(k: KernelContext, a: Any) -> None:
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise invalid(k, f"Input matrix must be square, got shape {list(a.shape)}")


def _turned(x: Any, *, adjoint: bool) -> Any:
    return x.swapaxes(-1, -2).conj() if adjoint else x


def _wide(k: KernelContext) -> np.dtype[Any]:
    """Convert half precision, which LAPACK does not have."""
    dtype = k.dtype("T")
    return np.dtype(np.float32) if dtype.itemsize == 2 else dtype


@op
class MatrixInverse:
    """The inverse of each matrix.

    input: [..., n, n]
    adjoint: the inverse of the conjugate transpose.
    """

    signature = f"MatrixInverse[adjoint:bool = false, {_TYPES}](input:T) -> (output:T)"
    shape = _square
    cost = "cubic"
    examples = (Example([_A]), Example([_A], {"adjoint": True}))
    failures = (Example([np.full((2, 2, 2), 0.0, np.float32)]),)

    def gradient(attrs: Attrs) -> str:
        if attrs.get("adjoint"):
            first, second = "false, adj_y=true](inverse, dy)", "false, adj_y=false](part, inverse)"
        else:
            first, second = "false, adj_y=true](dy, inverse)", "true, adj_y=false](inverse, part)"
        return f"""[T:type, adjoint:bool](x:T, dy:T) -> (dx:T) {{
          inverse = MatrixInverse[T=$T, adjoint=$adjoint](x)
          part = BatchMatMulV2[T=$T, adj_x={first}
          both = BatchMatMulV2[T=$T, adj_x={second}
          dx = Neg[T=$T](both)
        }}"""

    def kernel(k: KernelContext) -> Kernel:
        inv, adjoint, dtype, wide = k.xp.linalg.inv, bool(k.attr("adjoint")), k.dtype("T"), _wide(k)

        def inverse(a: Any) -> Any:
            _checked(k, a)
            try:
                return inv(_turned(a.astype(wide, copy=False), adjoint=adjoint)).astype(dtype, copy=False)
            except np.linalg.LinAlgError:
                raise invalid(k, "Input is not invertible.") from None

        return inverse


@op
class MatrixDeterminant(Total):
    """The determinant of each matrix.

    input: [..., n, n]
    output: [...]
    """

    signature = "MatrixDeterminant[T:{half, float, double, complex64, complex128}](input:T) -> (output:T)"
    cost = "cubic"
    examples = (Example([_A], outputs=[[7.0, -2.125]]), Example([[[2.0]]], outputs=[2.0]))

    def shape(c: InferenceContext) -> None:
        in_shape = c.with_rank_at_least(c.input(0), 2)
        if in_shape.dims is not None:
            c.merge_dim(c.dim(in_shape, -2), c.dim(in_shape, -1))
        c.set_output(0, c.subshape(in_shape, 0, -2) if in_shape.dims is not None else c.unknown_shape())

    def kernel(k: KernelContext) -> Kernel:
        det, array, dtype, wide = k.xp.linalg.det, k.xp.asarray, k.dtype("T"), _wide(k)

        def determinant(a: Any) -> Any:
            _checked(k, a)
            return array(det(a.astype(wide, copy=False))).astype(dtype, copy=False)

        return determinant

    def gradient(attrs: Attrs) -> str:
        conjugate = "Conj" if is_complex(attrs) else "Identity"
        return f"""[T:type](x:T, dy:T) -> (dx:T) {{
          det = MatrixDeterminant[T=$T](x)
          inverse = MatrixInverse[T=$T, adjoint=true](x)
          conjugate = {conjugate}[T=$T](det)
          scaled = Mul[T=$T](dy, conjugate)
          last = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: -1>]()
          column = ExpandDims[T=$T](scaled, last)
          matrix = ExpandDims[T=$T](column, last)
          dx = Mul[T=$T](matrix, inverse)
        }}"""


def _solution_shape(c: InferenceContext) -> None:
    matrix, rhs = c.with_rank_at_least(c.input(0), 2), c.with_rank_at_least(c.input(1), 2)
    if matrix.dims is None:
        c.set_output(0, rhs)
        return
    side = c.merge_dim(c.dim(matrix, -2), c.dim(matrix, -1))
    if rhs.dims is None:
        c.set_output(0, c.concatenate(c.subshape(matrix, 0, -2), c.matrix(side, c.unknown_dim())))
        return
    side = c.merge_dim(side, c.dim(rhs, -2))
    batch = c.merge(c.subshape(matrix, 0, -2), c.subshape(rhs, 0, -2))
    c.set_output(0, c.concatenate(batch, c.matrix(side, c.dim(rhs, -1))))


@op
class MatrixSolve:
    """The solution x of matrix @ x = rhs, for each matrix and right-hand side.

    matrix: [..., n, n]
    rhs: [..., n, m]
    output: [..., n, m]
    adjoint: solve with the conjugate transpose of the matrix.
    """

    signature = f"MatrixSolve[adjoint:bool = false, {_TYPES}](matrix:T, rhs:T) -> (output:T)"
    shape = _solution_shape
    cost = "cubic"
    examples = (Example([_A, _B]), Example([_A, _B], {"adjoint": True}))
    failures = (Example([np.full((2, 2, 2), 0.0, np.float32), _B]),)

    def gradient(attrs: Attrs) -> str:
        adjoint = bool(attrs.get("adjoint"))
        factors = "x, drhs" if adjoint else "drhs, x"
        return f"""[T:type, adjoint:bool](matrix:T, rhs:T, dy:T) -> (dmatrix:T, drhs:T) {{
          x = MatrixSolve[T=$T, adjoint=$adjoint](matrix, rhs)
          drhs = MatrixSolve[T=$T, adjoint={str(not adjoint).lower()}](matrix, dy)
          product = BatchMatMulV2[T=$T, adj_x=false, adj_y=true]({factors})
          dmatrix = Neg[T=$T](product)
        }}"""

    def kernel(k: KernelContext) -> Kernel:
        solve, adjoint, dtype, wide = k.xp.linalg.solve, bool(k.attr("adjoint")), k.dtype("T"), _wide(k)

        def solution(a: Any, b: Any) -> Any:
            _checked(k, a)
            if b.ndim != a.ndim or b.shape[:-1] != a.shape[:-1]:
                raise invalid(k, f"Input matrix and rhs are incompatible: {list(a.shape)} and {list(b.shape)}")
            try:
                return solve(_turned(a.astype(wide, copy=False), adjoint=adjoint), b.astype(wide, copy=False)).astype(dtype, copy=False)
            except np.linalg.LinAlgError:
                raise invalid(k, "Input matrix is not invertible.") from None

        return solution
