"""Arithmetic on the values of sparse tensors."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.attrs import Attrs
from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import Example, Kernel, KernelContext, define_op, no_registered_gradient
from graphcore.opset.framework.gradient_text import is_complex
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.framework.type_sets import NUMBER, REAL
from graphcore.opset.numerics.sparse_values import checked, indices_at
from graphcore.opset.sparse.sparse_conversion import INDICES, OUTSIDE, SIZES, VALUES
from graphcore.opset.sparse.sparse_products import merged
from graphcore.support.memory_limits import check_allocation

_DENSE: Final = [[1.0, 2.0], [-3.0, 0.5], [4.0, -1.0]]
_WIDE: Final = [[1.0, 2.0, -3.0], [0.5, 4.0, -1.0]]


def _cwise_product_gradient(attrs: Attrs) -> str:
    return _CWISE_MUL.replace("FACTOR", "Conj" if is_complex(attrs) else "Identity")


_CWISE_MUL: Final = """[T:type](indices:int64, values:T, sizes:int64, dense:T, dy:T) -> (dindices:int64, dvalues:T, dsizes:int64, ddense:T) {
      factor = FACTOR[T=$T](dense)
      dvalues = SparseDenseCwiseMul[T=$T](indices, dy, sizes, factor)
      dense_sizes = Shape[T=$T, out_type=int64](dense)
      count = Size[T=int64](sizes)
      rank = Rank[T=$T](dense)
      extra = Sub[T=int32](count, rank)
      flat = Const[dtype=int32, value=Tensor<type: int32 shape: [1] values: -1>]()
      one = Const[dtype=int32, value=Tensor<type: int32 shape: [1] values: 1>]()
      lead = Reshape[T=int32](extra, one)
      one_64 = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: 1>]()
      ones = Fill[T=int64](lead, one_64)
      zero = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 0>]()
      aligned = ConcatV2[N=2, T=int64](ones, dense_sizes, zero)
      scaling = FloorDiv[T=int64](sizes, aligned)
      other = FACTOR[T=$T](values)
      products = Mul[T=$T](dy, other)
      wrapped = FloorDiv[T=int64](indices, scaling)
      summed = ScatterNd[T=$T, Tindices=int64](wrapped, products, aligned)
      ddense = Reshape[T=$T, Tshape=int64](summed, dense_sizes)
      dindices = ZerosLike[T=int64](indices)
      dsizes = ZerosLike[T=int64](sizes)
    }"""


def _with_dense(name: str, ufunc: Any, summary: str, gradient: Any) -> None:
    def kernel(k: KernelContext) -> Kernel:
        def combine(indices: Any, values: Any, shape: Any, dense: Any) -> Any:
            sizes = checked(k, indices, values, shape)
            try:
                wide = np.broadcast_to(dense, sizes)
            except ValueError:
                raise invalid(
                    k, f"SparseDenseBinaryOpShared broadcasts dense to sparse only; got sparse {list(sizes)}, dense {list(dense.shape)}"
                ) from None
            with np.errstate(all="ignore"):
                return ufunc(values, wide[tuple(indices.T)]).astype(values.dtype, copy=False)

        return combine

    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.vector(c.dim(c.with_rank(c.input(0), 2), 0)))

    define_op(
        name,
        f"""{summary}

        sp_indices: [n, rank]
        sp_values: [n]
        sp_shape: [rank]
        dense: broadcast to the shape of the sparse tensor
        output: [n], the new values
        """,
        signature=f"{name}[T:{NUMBER}](sp_indices:int64, sp_values:T, sp_shape:int64, dense:T) -> (output:T)",
        shape=shape,
        kernel=kernel,
        gradient=gradient,
        examples=(Example([INDICES, VALUES, SIZES, _WIDE]), Example([INDICES, VALUES, SIZES, [2.0, 4.0, -8.0]])),
        failures=(Example([OUTSIDE, VALUES, SIZES, _WIDE]),),
        device_types=("CPU",),
    )


_NO_GRADIENT: Final = no_registered_gradient("TensorFlow has no gradient of this op")
_with_dense("SparseDenseCwiseAdd", np.add, "The values of a sparse tensor plus the elements of a dense one at their places.", _NO_GRADIENT)
_with_dense(
    "SparseDenseCwiseMul",
    np.multiply,
    "The values of a sparse tensor times the elements of a dense one at their places.",
    _cwise_product_gradient,
)
_with_dense("SparseDenseCwiseDiv", np.divide, "The values of a sparse tensor divided by the elements of a dense one.", _NO_GRADIENT)


def _chosen(name: str, ufunc: Any, types: str, summary: str) -> None:
    def kernel(k: KernelContext) -> Kernel:
        def choose(ai: Any, av: Any, ashape: Any, bi: Any, bv: Any, bshape: Any) -> Any:
            union, in_a, in_b, sizes = merged(k, (ai, av, ashape), (bi, bv, bshape))
            check_allocation((len(union),), av.dtype)
            both = np.zeros((2, len(union)), av.dtype)
            both[0, in_a], both[1, in_b] = av, bv
            return indices_at(union, sizes), ufunc(both[0], both[1])

        return choose

    def shape(c: InferenceContext) -> None:
        for i, rank in enumerate((2, 1, 1) * 2):
            c.with_rank(c.input(i), rank)
        c.set_output(0, c.matrix(c.unknown_dim(), c.unknown_dim()))
        c.set_output(1, c.vector(c.unknown_dim()))

    define_op(
        name,
        f"""{summary} of two sparse tensors; missing ones are 0.

        a_indices: [n, rank]
        a_values: [n]
        a_shape: [rank]
        b_indices: [m, rank]
        b_values: [m]
        b_shape: [rank]
        """,
        signature=f"{name}[T:{types}](a_indices:int64, a_values:T, a_shape:int64, b_indices:int64, b_values:T, b_shape:int64) -> "
        "(output_indices:int64, output_values:T)",
        shape=shape,
        kernel=kernel,
        gradient=_NO_GRADIENT,
        examples=(Example([INDICES, VALUES, SIZES, np.array([[0, 0], [1, 0]]), [5.0, 2.0], SIZES]),),
        failures=(Example([OUTSIDE, VALUES, SIZES, np.array([[0, 0], [1, 0]]), [5.0, 2.0], SIZES]),),
        device_types=("CPU",),
    )


_chosen("SparseSparseMaximum", np.maximum, REAL, "The greater values")
_chosen("SparseSparseMinimum", np.minimum, NUMBER, "The smaller values")
