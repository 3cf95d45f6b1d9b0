"""Diagonals and transposes of matrices, and products over any dimensions, under TensorFlow 1's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphcore.dtypes import int32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1.arrays.layout import concat, rank, reshape, shape, stack, transpose
from graphcore.tf1.arrays.ranges import range as range_
from graphcore.tf1.arrays.slices import gather
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import constant, convert_to_tensor, name_scope
from graphcore.tf1.math.elementwise import matmul
from graphcore.tf1.math.reductions import reduction


def matrix_diag(diagonal: Any, name: str = "diag", k: Any = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0) -> Tensor:
    """Matrices with given diagonals, from number `k` or `k[0]` to `k[1]`. diagonal: [..., n] -> y: [..., n, n]."""
    if isinstance(k, int) and k == 0 and num_rows == num_cols == -1 and not padding_value:
        return apply_one("MatrixDiag", [diagonal], name)
    diagonal = convert_to_tensor(diagonal)
    return apply_one("MatrixDiagV2", [diagonal, k, num_rows, num_cols, convert_to_tensor(padding_value, diagonal.dtype.base)], name)


def matrix_diag_part(input: Any, name: str = "diag_part", k: Any = 0, padding_value: Any = 0) -> Tensor:
    """The diagonals of matrices, from number `k` or `k[0]` to `k[1]`. input: [..., m, n] -> y: [..., min(m, n)]."""
    if isinstance(k, int) and k == 0 and not padding_value:
        return apply_one("MatrixDiagPart", [input], name)
    matrices = convert_to_tensor(input)
    return apply_one("MatrixDiagPartV2", [matrices, k, convert_to_tensor(padding_value, matrices.dtype.base)], name)


def matrix_set_diag(input: Any, diagonal: Any, name: str = "set_diag", k: Any = 0) -> Tensor:
    """Matrices with other diagonals, from number `k` or `k[0]` to `k[1]`. input: [..., m, n]  diagonal: [..., min(m, n)]."""
    if isinstance(k, int) and k == 0:
        return apply_one("MatrixSetDiag", [input, diagonal], name)
    return apply_one("MatrixSetDiagV2", [input, diagonal, k], name)


def matrix_transpose(a: Any, name: str = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """The last two dimensions exchanged. a: [..., m, n] -> y: [..., n, m]."""
    tensor = convert_to_tensor(a)
    if tensor.shape.rank is None:
        places = concat([range_(rank(tensor) - 2), [rank(tensor) - 1, rank(tensor) - 2]], 0)
    else:
        axes = list(range(tensor.shape.rank))
        places = constant([*axes[:-2], axes[-1], axes[-2]], int32)
    return transpose(tensor, places, name, conjugate)


def _others(length: int, axes: Sequence[int]) -> list[int]:
    """The axes of a tensor of rank `length` besides `axes`."""
    return [axis for axis in range(length) if axis not in axes]


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """The sum of products over pairs of dimensions.

    Args:
        a, b: tensors of known shape, but for one size in each that remains.
        axes: the number of last dimensions of `a` that meet the first of `b`, or the two lists of dimensions that meet.
        name: the name scope.
    """
    with name_scope(name or "Tensordot"):
        a = convert_to_tensor(a)
        b = convert_to_tensor(b, a.dtype.base)
        ranks = [tensor.shape.rank for tensor in (a, b)]
        if ranks[0] is None or ranks[1] is None:
            raise InvalidArgumentError("tensordot: required tensors of known rank")
        if isinstance(axes, int):
            pairs = [list(range(ranks[0] - axes, ranks[0])), list(range(axes))]
        else:
            pairs = [[entry] if isinstance(entry, int) else [int(axis) for axis in entry] for entry in axes]
        pairs = [[axis % length for axis in tensor_axes] for tensor_axes, length in zip(pairs, (ranks[0], ranks[1]), strict=True)]
        free = [_others(length, tensor_axes) for tensor_axes, length in zip(pairs, (ranks[0], ranks[1]), strict=True)]
        sizes = [gather(shape(tensor), constant(kept, int32)) for tensor, kept in zip((a, b), free, strict=True)]
        met = reduction("Prod", gather(shape(a), constant(pairs[0], int32)), [0])
        left = reshape(transpose(a, constant(free[0] + pairs[0], int32)), stack([-1, met]))
        right = reshape(transpose(b, constant(pairs[1] + free[1], int32)), stack([met, -1]))
        result = reshape(matmul(left, right), concat(sizes, 0))
        result.set_shape([*[a.shape[i].value for i in free[0]], *[b.shape[i].value for i in free[1]]])
        return result
