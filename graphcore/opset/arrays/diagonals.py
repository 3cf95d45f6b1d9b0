"""Diagonals of matrices and of tensors: extracting and setting them, and bands."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.errors import InvalidArgumentError
from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import unchanged_shape_with_rank_at_least
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.families import Total
from graphcore.opset.framework.kernels import invalid, one_int
from graphcore.opset.framework.type_sets import INDEX

_X: Final = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
_DIAG_TYPES: Final = "{bfloat16, half, float, double, int32, int64, complex64, complex128}"


def _converted_gradient(other: str) -> str:
    return f"[T:type](x:T, dy:T) -> (dx:T) {{\n  dx = {other}[T=$T](dy)\n}}"


@op
class Diag(Total):
    """A tensor of zeros with the input as its diagonal: output[i..., i...] = diagonal[i...].

    diagonal: [sizes...]
    output: [sizes..., sizes...]
    """

    pure = True
    signature = f"Diag[T:{_DIAG_TYPES}](diagonal:T) -> (output:T)"
    gradient = _converted_gradient("DiagPart")
    examples = (Example([[1.0, 2.0]], outputs=[[[1.0, 0.0], [0.0, 2.0]]]), Example([_X]))

    def shape(c: InferenceContext) -> None:
        diagonal = c.with_rank_at_least(c.input(0), 1)
        c.set_output(0, c.concatenate(diagonal, diagonal))

    def kernel(k: KernelContext) -> Kernel:
        zeros, dtype = k.xp.zeros, k.dtype("T")

        def diag(x: Any) -> Any:
            flat = zeros((x.size, x.size), dtype)
            flat[range(x.size), range(x.size)] = x.reshape(-1)
            return flat.reshape(x.shape + x.shape)

        return diag


@op
class DiagPart:
    """The diagonal of a tensor: diagonal[i...] = input[i..., i...].

    input: [sizes..., sizes...]
    diagonal: [sizes...]
    """

    pure = True
    signature = f"DiagPart[T:{_DIAG_TYPES}](input:T) -> (diagonal:T)"
    can_fail = False
    gradient = _converted_gradient("Diag")
    examples = (Example([[[1.0, 2.0], [3.0, 4.0]]], outputs=[[1.0, 4.0]]),)

    def shape(c: InferenceContext) -> None:
        in_shape = c.input(0)
        if in_shape.dims is None:
            c.set_output(0, c.unknown_shape())
            return
        half, odd = divmod(len(in_shape.dims), 2)
        if odd or not half:
            raise invalid_rank(c, len(in_shape.dims))
        c.set_output(0, c.merge(c.subshape(in_shape, 0, half), c.subshape(in_shape, half)))

    def kernel(k: KernelContext) -> Kernel:
        def diag_part(x: Any) -> Any:
            half = x.ndim // 2
            if x.ndim != 2 * half or x.shape[:half] != x.shape[half:]:
                raise invalid(k, f"Invalid shape {list(x.shape)}: dimensions i and i + rank / 2 must be equal")
            size = int(np.prod(x.shape[:half], dtype=np.int64))
            return x.reshape(size, size).diagonal().reshape(x.shape[:half])

        return diag_part


def invalid_rank(c: InferenceContext, rank: int) -> InvalidArgumentError:
    """An error for a rank that is odd or 0."""
    return InvalidArgumentError(f"Input must have even and non-zero rank, input rank is {rank}", op=c.op, node=c.node_name)


def _set_diagonal(xp: Any, matrices: Any, diagonal: Any) -> Any:
    result = matrices.copy()
    count = min(matrices.shape[-2:])
    places = xp.arange(count)
    result[..., places, places] = diagonal
    return result


@op
class MatrixDiag(Total):
    """Square matrices of zeros with the vectors of the last dimension as diagonals.

    diagonal: [..., n]
    output: [..., n, n]
    """

    pure = True
    signature = "MatrixDiag[T:type](diagonal:T) -> (output:T)"
    gradient = _converted_gradient("MatrixDiagPart")
    examples = (Example([_X]),)

    def shape(c: InferenceContext) -> None:
        in_shape = c.with_rank_at_least(c.input(0), 1)
        if in_shape.dims is None:
            c.set_output(0, c.unknown_shape())  # not that of the input, which has one dimension less
            return
        c.set_output(0, c.concatenate(in_shape, c.vector(c.dim(in_shape, -1))))

    def kernel(k: KernelContext) -> Kernel:
        xp, dtype = k.xp, k.dtype("T")
        return lambda x: _set_diagonal(xp, xp.zeros((*x.shape, x.shape[-1]), dtype), x)


def _diagonal_size(c: InferenceContext) -> Any:
    in_shape = c.with_rank_at_least(c.input(0), 2)
    if in_shape.dims is None:
        return in_shape, None
    return in_shape, c.min(c.dim(in_shape, -2), c.dim(in_shape, -1))


@op
class MatrixDiagPart:
    """The diagonals of the matrices in the last two dimensions.

    input: [..., m, n]
    diagonal: [..., min(m, n)]
    """

    pure = True
    signature = "MatrixDiagPart[T:type](input:T) -> (diagonal:T)"
    can_fail = False
    gradient = """[T:type](x:T, dy:T) -> (dx:T) {
      zeros = ZerosLike[T=$T](x)
      dx = MatrixSetDiag[T=$T](zeros, dy)
    }"""
    examples = (Example([_X], outputs=[[1.0, 5.0]]), Example([[[[1.0, 2.0], [3.0, 4.0]]] * 2]))

    def shape(c: InferenceContext) -> None:
        in_shape, size = _diagonal_size(c)
        c.set_output(0, in_shape if size is None else c.concatenate(c.subshape(in_shape, 0, -2), c.vector(size)))

    def kernel(k: KernelContext) -> Kernel:
        return lambda x: x.diagonal(0, -2, -1)


@op
class MatrixSetDiag(Total):
    """The input with other diagonals in its last two dimensions.

    input: [..., m, n]
    diagonal: [..., min(m, n)]
    """

    pure = True
    signature = "MatrixSetDiag[T:type](input:T, diagonal:T) -> (output:T)"
    gradient = """[T:type](x:T, d:T, dy:T) -> (dx:T, dd:T) {
      zeros = ZerosLike[T=$T](d)
      dx = MatrixSetDiag[T=$T](dy, zeros)
      dd = MatrixDiagPart[T=$T](dy)
    }"""
    examples = (Example([_X, [-1.0, -2.0]], outputs=[[[-1.0, 2.0, 3.0], [4.0, -2.0, 6.0]]]),)

    def shape(c: InferenceContext) -> None:
        in_shape, size = _diagonal_size(c)
        diagonal = c.with_rank_at_least(c.input(1), 1)
        if size is not None and diagonal.dims is not None:
            c.merge(c.concatenate(c.subshape(in_shape, 0, -2), c.vector(size)), diagonal)
        if in_shape.dims is None and diagonal.dims is not None:
            in_shape = c.concatenate(c.subshape(diagonal, 0, -1), c.matrix(c.unknown_dim(), c.unknown_dim()))
        c.set_output(0, in_shape)

    def kernel(k: KernelContext) -> Kernel:
        xp = k.xp
        return lambda x, diagonal: _set_diagonal(xp, x, diagonal)


def _at_least_matrices(c: InferenceContext) -> None:
    unchanged_shape_with_rank_at_least(c, 2)


@op
class MatrixBandPart:
    """The matrices in the last two dimensions with zeros outside a band around the diagonal.

    num_lower: the number of diagonals kept below the main one; negative for all
    num_upper: the number of diagonals kept above the main one; negative for all
    """

    pure = True
    signature = f"MatrixBandPart[T:type, Tindex:{INDEX} = int64](input:T, num_lower:Tindex, num_upper:Tindex) -> (band:T)"
    shape = _at_least_matrices
    gradient = """[T:type, Tindex:{int32, int64}](x:T, lower:Tindex, upper:Tindex, dy:T) -> (dx:T, dlower:Tindex, dupper:Tindex) {
      dx = MatrixBandPart[T=$T, Tindex=$Tindex](dy, lower, upper)
      dlower = ZerosLike[T=$Tindex](lower)
      dupper = ZerosLike[T=$Tindex](upper)
    }"""
    examples = (
        Example([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]], 1, 0], outputs=[[[1.0, 0.0, 0.0], [4.0, 5.0, 0.0], [0.0, 8.0, 9.0]]]),
        Example([[_X, _X], np.int64(-1), np.int64(1)]),
    )
    failures = (Example([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]], 99, 0]),)

    def kernel(k: KernelContext) -> Kernel:
        xp, dtype = k.xp, k.dtype("T")
        zero = xp.zeros((), dtype)

        def band(x: Any, num_lower: Any, num_upper: Any) -> Any:
            lower, upper = one_int(k, num_lower), one_int(k, num_upper)
            if x.ndim < 2:
                raise invalid(k, f"input must be at least 2-dim, received shape: {list(x.shape)}")
            rows, columns = x.shape[-2:]
            if lower > rows:
                raise invalid(k, f"num_lower must be negative or less or equal to number of rows ({rows}) got: {lower}")
            if upper > columns:
                raise invalid(k, f"num_upper must be negative or less or equal to number of columns ({columns}) got: {upper}")
            below = xp.arange(x.shape[-2])[:, None] - xp.arange(x.shape[-1])
            kept = ((lower < 0) | (below <= lower)) & ((upper < 0) | (-below <= upper))
            return xp.where(kept, x, zero)

        return band
