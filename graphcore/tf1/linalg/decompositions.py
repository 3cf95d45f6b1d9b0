"""`tf.linalg`: decompositions and solutions; and `tf.setdiff1d`, which has several outputs, too."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from graphcore.dtypes import DType, float64, int32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor, get_default_graph
from graphcore.shapes import Shape
from graphcore.tf1.arrays.layout import expand_dims, shape, squeeze
from graphcore.tf1.arrays.matrices import matrix_diag_part, matrix_transpose
from graphcore.tf1.arrays.ranges import eye
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import constant, convert_to_tensor, name_scope
from graphcore.tf1.math.elementwise import cast, matmul, real, where
from graphcore.tf1.math.reductions import reduce_sum, reduction

__all__ = [
    "LinearOperatorLowerTriangular",
    "ListDiff",
    "LogMatrixDeterminant",
    "adjoint",
    "cholesky_solve",
    "logdet",
    "lstsq",
    "matrix_rank",
    "matvec",
    "pinv",
    "self_adjoint_eig",
    "self_adjoint_eigvals",
    "setdiff1d",
    "slogdet",
    "svd",
    "tridiagonal_solve",
]


class ListDiff(NamedTuple):
    """The values that are only in the first list, and their places there."""

    out: Tensor
    idx: Tensor


def setdiff1d(x: Any, y: Any, index_dtype: Any = int32, name: str | None = None) -> ListDiff:
    """The values of `x` that are not in `y`, in their order, and their places. x: [n], y: [m] -> out: [k], idx: [k]."""
    return ListDiff(*get_default_graph().apply_op("ListDiff", [x, y], {"out_idx": index_dtype}, name).outputs)


def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """Singular values, and the left and right singular vectors. tensor: [..., m, n] -> s: [..., p], u: [..., m, p], v: [..., n, p].

    Args:
        tensor: the matrices.
        full_matrices: give all vectors, u: [..., m, m] and v: [..., n, n].
        compute_uv: False for the values alone.
        name: the name of the node.
    """
    attrs = {"compute_uv": compute_uv, "full_matrices": full_matrices}
    values, left, right = get_default_graph().apply_op("Svd", [tensor], attrs, name).outputs
    return (values, left, right) if compute_uv else values


def self_adjoint_eig(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues, ascending, and eigenvectors of symmetric matrices. tensor: [..., n, n] -> e: [..., n], v: [..., n, n]."""
    values, vectors = get_default_graph().apply_op("SelfAdjointEigV2", [tensor], {"compute_v": True}, name).outputs
    return values, vectors


def self_adjoint_eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """Eigenvalues of symmetric matrices, ascending. tensor: [..., n, n] -> e: [..., n]."""
    return get_default_graph().apply_op("SelfAdjointEigV2", [tensor], {"compute_v": False}, name).outputs[0]


class LogMatrixDeterminant(NamedTuple):
    """The signs of determinants, and the logarithms of their magnitudes."""

    sign: Tensor
    log_abs_determinant: Tensor


def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """Conjugate transposes. matrix: [..., m, n] -> [..., n, m]."""
    return matrix_transpose(matrix, name or "adjoint", conjugate=True)


def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Products of matrices and vectors. a: [..., m, n], b: [..., n] -> [..., m].

    Args:
        a: the matrices.
        b: the vectors.
        transpose_a, adjoint_a: take the transposes of the matrices, or their conjugate transposes.
        a_is_sparse, b_is_sparse: hints of TensorFlow, without effect.
        name: the name scope of the nodes.
    """
    del a_is_sparse, b_is_sparse
    with name_scope(name or "MatVec"):
        return squeeze(matmul(a, expand_dims(b, -1), transpose_a=transpose_a, adjoint_a=adjoint_a), [-1])


def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """The logarithms of the determinants of positive definite matrices. matrix: [..., n, n] -> [...], real."""
    with name_scope(name or "logdet"):
        factor = apply_one("Cholesky", [convert_to_tensor(matrix)], None)
        return 2.0 * reduce_sum(apply_one("Log", [real(matrix_diag_part(factor))], None), [-1])


def slogdet(input: Any, name: str | None = None) -> LogMatrixDeterminant:
    """The signs of determinants, and the logarithms of their magnitudes. input: [..., n, n] -> both [...]."""
    return LogMatrixDeterminant(*get_default_graph().apply_op("LogMatrixDeterminant", [input], {}, name).outputs)


def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The pseudoinverses of matrices. a: [..., m, n] -> [..., n, m].

    Args:
        a: the matrices, with known sizes.
        rcond: singular values below this part of the largest one count as 0; 10 max(m, n) roundings by default.
        validate_args: without effect.
        name: the name scope.
    """
    del validate_args
    with name_scope(name or "pinv"):
        matrix = convert_to_tensor(a)
        values, left, right = svd(matrix)
        sizes = [size or 1 for size in matrix.shape.as_list()[-2:]]
        part = 10.0 * max(sizes) * float(np.finfo(matrix.dtype.real_dtype.as_numpy).eps) if rcond is None else rcond
        largest = reduction("Max", values, [-1], True)
        used = apply_one("Greater", [values, largest * part], None)
        inverse = where(used, 1.0 / values, apply_one("ZerosLike", [values], None))
        return matmul(right * cast(expand_dims(inverse, -2), matrix.dtype), left, adjoint_b=True)


def matrix_rank(a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The ranks of matrices: the numbers of singular values above `tol`. a: [..., m, n] -> [...], int32.

    Args:
        a: the matrices, with known sizes.
        tol: the limit; max(m, n) roundings of the largest singular value by default.
        validate_args: without effect.
        name: the name scope.
    """
    del validate_args
    with name_scope(name or "matrix_rank"):
        matrix = convert_to_tensor(a)
        values = svd(matrix, compute_uv=False)
        if tol is None:
            sizes = [size or 1 for size in matrix.shape.as_list()[-2:]]
            tol = reduction("Max", values, [-1], True) * (max(sizes) * float(np.finfo(matrix.dtype.real_dtype.as_numpy).eps))
        return reduce_sum(cast(apply_one("Greater", [values, tol], None), int32), [-1])


def tridiagonal_solve(
    diagonals: Any,
    rhs: Any,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
) -> Tensor:
    """The solutions of systems of equations with three diagonals. rhs: [..., n] or [..., n, k] -> like rhs.

    Args:
        diagonals: [..., 3, n], the diagonal above, the main one and the one below; or, in the format "sequence", a list of the three.
        rhs: the right sides; their rank is known.
        diagonals_format: "compact" or "sequence".
        transpose_rhs, conjugate_rhs: transpose or conjugate the right sides first.
        name: the name scope.
        partial_pivoting: exchange rows where that is more precise.
    """
    if diagonals_format not in {"compact", "sequence"}:
        raise InvalidArgumentError(f"tridiagonal_solve: required the format 'compact' or 'sequence', got {diagonals_format!r}")
    with name_scope(name or "tridiagonal_solve"):
        matrix = convert_to_tensor(diagonals) if diagonals_format == "compact" else apply_one("Pack", [list(diagonals)], None, {"axis": -2})
        right = convert_to_tensor(rhs, matrix.dtype)
        is_vector = right.shape.rank == (matrix.shape.rank or 0) - 1
        if is_vector:
            right = expand_dims(right, -1)
        elif transpose_rhs:
            right = matrix_transpose(right)
        if conjugate_rhs and matrix.dtype.is_complex:
            right = apply_one("Conj", [right], None)
        solution = apply_one("TridiagonalSolve", [matrix, right], None, {"partial_pivoting": partial_pivoting})
        return squeeze(solution, [-1]) if is_vector else solution


class LinearOperatorLowerTriangular:
    """The lower triangle of matrices as a linear operator; what is above the diagonal does not count.

    Args:
        tril: [..., n, n].
        name: the name scope.
        kwargs: hints of TensorFlow, without effect.
    """

    def __init__(self, tril: Any, *, name: str = "LinearOperatorLowerTriangular", **kwargs: Any) -> None:
        del kwargs
        self.name = name
        with name_scope(name):
            self._matrix = apply_one("MatrixBandPart", [convert_to_tensor(tril), constant(-1), constant(0)], None)

    @property
    def dtype(self) -> DType:
        """The dtype of the matrices."""
        return self._matrix.dtype

    @property
    def shape(self) -> Shape:
        """The shape of the matrices."""
        return self._matrix.shape

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """The matrices, with zeros above the diagonal."""
        return apply_one("Identity", [self._matrix], name)

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Tensor:
        """The products with matrices. x: [..., n, k] -> [..., n, k]."""
        with name_scope(name):
            return matmul(self._matrix, x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Tensor:
        """The products with vectors. x: [..., n] -> [..., n]."""
        return matvec(self._matrix, x, adjoint_a=adjoint, name=name)

    def solve(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Tensor:
        """The solutions x of L x = rhs. rhs: [..., n, k] -> [..., n, k]."""
        return apply_one("MatrixTriangularSolve", [self._matrix, rhs], name, {"lower": True, "adjoint": adjoint})

    def diag_part(self, name: str = "diag_part") -> Tensor:
        """The diagonals: [..., n]."""
        return matrix_diag_part(self._matrix, name)

    def determinant(self, name: str = "det") -> Tensor:
        """The determinants: [...]."""
        return reduction("Prod", self.diag_part(), [-1], name=name)


def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """The solutions x of A x = rhs, by the Cholesky factors of A. chol: [..., n, n], rhs: [..., n, k] -> [..., n, k]."""
    with name_scope(name or "cholesky_solve"):
        half = apply_one("MatrixTriangularSolve", [chol, rhs], None, {"lower": True, "adjoint": False})
        return apply_one("MatrixTriangularSolve", [chol, half], None, {"lower": True, "adjoint": True})


def lstsq(matrix: Any, rhs: Any, l2_regularizer: float = 0.0, fast: bool = True, name: str | None = None) -> Tensor:
    """Least-squares solutions x of matrix x = rhs, of the least norm where there are several.

    Args:
        matrix: the matrices, [..., m, n], of full rank if `fast`.
        rhs: the right-hand sides, [..., m, k]; solutions are [..., n, k].
        l2_regularizer: the weight of the squares of x.
        fast: by the normal equations, which have a gradient where the shape is known; else by an orthogonal decomposition, without regularisation.
        name: the name scope of the nodes.
    """
    a, b = convert_to_tensor(matrix), convert_to_tensor(rhs)
    rank = a.shape.rank
    rows, columns = (None, None) if rank is None else a.shape.as_list()[-2:]
    with name_scope(name or "matrix_solve_ls"):
        if not fast or rows is None or columns is None:
            return apply_one("MatrixSolveLs", [a, b, constant(l2_regularizer, float64)], None, {"fast": fast})
        tall = rows >= columns
        gram = matmul(a, a, adjoint_a=tall, adjoint_b=not tall)
        side, batch = min(rows, columns), shape(a)[:-2]
        if l2_regularizer:
            gram = gram + cast(constant(l2_regularizer, float64), a.dtype) * eye(side, batch_shape=batch, dtype=a.dtype)
        factor = apply_one("Cholesky", [gram], None)
        if tall:
            return cholesky_solve(factor, matmul(a, b, adjoint_a=True))
        return matmul(a, cholesky_solve(factor, b), adjoint_a=True)
