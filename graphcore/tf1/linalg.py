"""`tf.linalg`: decompositions and solutions; and `tf.setdiff1d`, which has several outputs, too."""

from __future__ import annotations

from typing import Any, NamedTuple

from graphcore.api.apply_one import apply_one
from graphcore.api.arrays import expand_dims, shape, squeeze
from graphcore.api.framework import constant, convert_to_tensor, name_scope
from graphcore.api.math import cast, matmul, reduce_sum
from graphcore.dtypes import float64, int32
from graphcore.graph import Tensor, get_default_graph
from graphcore.tf1.arrays import eye, matrix_diag_part, matrix_transpose
from graphcore.tf1.math import real

__all__ = [
    "ListDiff",
    "LogMatrixDeterminant",
    "adjoint",
    "cholesky_solve",
    "logdet",
    "lstsq",
    "matvec",
    "self_adjoint_eig",
    "self_adjoint_eigvals",
    "setdiff1d",
    "slogdet",
    "svd",
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
