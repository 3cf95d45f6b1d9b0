"""`tf.svd`, `tf.self_adjoint_eig` and `tf.setdiff1d`: ops with several outputs."""

from __future__ import annotations

from typing import Any, NamedTuple

from graphcore.dtypes import int32
from graphcore.graph import Tensor, get_default_graph

__all__ = ["ListDiff", "self_adjoint_eig", "self_adjoint_eigvals", "setdiff1d", "svd"]


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
