"""Products and sums of sparse tensors."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.attrs import Attrs
from graphcore.inference import InferenceContext
from graphcore.opset.arrays.segments import combined
from graphcore.opset.framework.block import Example, Kernel, KernelContext, not_differentiable, op
from graphcore.opset.framework.gradient_text import is_complex, scalar
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.framework.type_sets import NUMBER, REAL
from graphcore.opset.numerics.sparse_values import checked, indices_at, places
from graphcore.opset.sparse.sparse_conversion import INDICES, OUTSIDE, SIZES, VALUES
from graphcore.support.memory_limits import check_allocation

_DENSE: Final = [[1.0, 2.0], [-3.0, 0.5], [4.0, -1.0]]
_WIDE: Final = [[1.0, 2.0, -3.0], [0.5, 4.0, -1.0]]


def _product_gradient(attrs: Attrs) -> str:
    by_a, by_b = bool(attrs.get("adjoint_a")), bool(attrs.get("adjoint_b"))
    rows, columns = ("second", "first") if by_a else ("first", "second")
    flip = str(not by_a).lower()
    turned = "\n      perm = Const[dtype=int32, value=Tensor<type: int32 shape: [2] values: 1 0>]()\n      {} = ConjugateTranspose[T=$T, Tperm=int32]({}, perm)"
    left, right, conjugate = "parts_of_dy", "parts_of_b", ""
    if is_complex(attrs):
        conjugate = f"      other = Conj[T=$T]({left if by_a else right})\n"
        left, right = ("other", right) if by_a else (left, "other")
    of_b = turned.format("rows_of_b", "b") if by_b else "\n      rows_of_b = Identity[T=$T](b)"
    product = f"SparseTensorDenseMatMul[T=$T, Tindices=$Tindices, adjoint_a={flip}, adjoint_b=false](indices, values, sizes, dy)"
    of_db = f"\n      product = {product}{turned.format('db', 'product')}" if by_b else f"\n      db = {product}"
    if by_b:
        of_db = of_db.replace("\n      perm = Const[dtype=int32, value=Tensor<type: int32 shape: [2] values: 1 0>]()", "")
    return f"""[T:type, Tindices:{{int32, int64}}, adjoint_a:bool, adjoint_b:bool](indices:Tindices, values:T, sizes:int64, b:T, dy:T) -> (dindices:Tindices, dvalues:T, dsizes:int64, db:T) {{
      first, second = Unpack[num=2, T=$Tindices, axis=1](indices)
      zero = {scalar("int32", 0)}
      one = {scalar("int32", 1)}{of_b}
      parts_of_dy = GatherV2[Tparams=$T, Tindices=$Tindices, Taxis=int32](dy, {rows}, zero)
      parts_of_b = GatherV2[Tparams=$T, Tindices=$Tindices, Taxis=int32](rows_of_b, {columns}, zero)
{conjugate}      products = Mul[T=$T]({left}, {right})
      dvalues = Sum[T=$T, Tidx=int32](products, one)
      dindices = ZerosLike[T=$Tindices](indices)
      dsizes = ZerosLike[T=int64](sizes){of_db}
    }}"""


@op
class SparseTensorDenseMatMul:
    """The product of a sparse and a dense matrix.

    a_indices: [n, 2]
    a_values: [n]
    a_shape: [2]
    b: a matrix
    adjoint_a: transpose and conjugate the sparse matrix.
    adjoint_b: transpose and conjugate the dense matrix.
    """

    signature = (
        "SparseTensorDenseMatMul[T:type, Tindices:{int32, int64} = int64, adjoint_a:bool = false, adjoint_b:bool = false]"
        "(a_indices:Tindices, a_values:T, a_shape:int64, b:T) -> (product:T)"
    )
    device_types = ("CPU",)
    layer = "product"
    gradient = _product_gradient
    examples = (
        Example([INDICES, VALUES, SIZES, _DENSE]),
        Example([INDICES, VALUES, SIZES, [[1.0, 2.0], [3.0, 4.0]]], {"adjoint_a": True, "adjoint_b": True}),
        Example([INDICES.astype(np.int32), VALUES, SIZES, _WIDE], {"adjoint_b": True}),
    )
    failures = (Example([OUTSIDE, VALUES, SIZES, _DENSE]),)

    def shape(c: InferenceContext) -> None:
        c.with_rank(c.input(0), 2)
        c.with_rank(c.input(1), 1)
        a = c.with_rank(c.make_shape_from_shape_tensor(2), 2)
        b = c.with_rank(c.input(3), 2)
        by_a, by_b = c.int_attr("adjoint_a"), c.int_attr("adjoint_b")
        c.merge_dim(c.dim(a, 0 if by_a else 1), c.dim(b, 1 if by_b else 0))
        c.set_output(0, c.matrix(c.dim(a, 1 if by_a else 0), c.dim(b, 0 if by_b else 1)))

    def kernel(k: KernelContext) -> Kernel:
        by_a, by_b = bool(k.attr("adjoint_a")), bool(k.attr("adjoint_b"))

        def multiply(indices: Any, values: Any, shape: Any, b: Any) -> Any:
            sizes = checked(k, indices, values, shape)
            right = b.conj().T if by_b else b
            if len(sizes) != 2 or right.ndim != 2 or sizes[0 if by_a else 1] != right.shape[0]:
                raise invalid(k, f"Cannot multiply A {list(sizes)} and B {list(b.shape)} because inner dimensions do not match")
            rows, columns = (indices[:, 1], indices[:, 0]) if by_a else (indices[:, 0], indices[:, 1])
            factors = (values.conj() if by_a else values)[:, None]
            return combined(np, "add", factors * right[columns], rows, sizes[1 if by_a else 0], 0).astype(b.dtype, copy=False)

        return multiply


def _sum_shape(c: InferenceContext) -> None:
    sizes = c.with_rank(c.input(2), 1)
    c.set_output(0, c.matrix(c.unknown_dim(), c.dim(sizes, 0)))
    c.set_output(1, c.vector(c.unknown_dim()))
    c.set_output(2, sizes)


def merged(k: KernelContext, a: tuple[Any, Any, Any], b: tuple[Any, Any, Any]) -> tuple[Any, Any, Any, tuple[int, ...]]:
    """The places of both tensors, sorted and without repetition.

    Also returns, for each tensor, the position of its values among them, and the sizes.
    """
    sizes, others = checked(k, *a), checked(k, *b)
    if sizes != others:
        raise invalid(k, f"Operands' shapes do not match: {list(sizes)} and {list(others)}")
    first, second = places(a[0], sizes), places(b[0], sizes)
    union = np.union1d(first, second)
    return union, np.searchsorted(union, first), np.searchsorted(union, second), sizes


@op
class SparseAdd:
    """The sum of two sparse tensors, without the sums of two values below a threshold.

    a_indices: [n, rank]
    a_values: [n]
    a_shape: [rank]
    b_indices: [m, rank]
    b_values: [m]
    b_shape: [rank]
    thresh: a scalar; sums of smaller magnitude are left out. Values at places of one tensor only are kept
    """

    signature = (
        f"SparseAdd[T:{NUMBER}, Treal:{REAL}](a_indices:int64, a_values:T, a_shape:int64, b_indices:int64, b_values:T, b_shape:int64, "
        "thresh:Treal) -> (sum_indices:int64, sum_values:T, sum_shape:int64)"
    )
    shape = _sum_shape
    device_types = ("CPU",)
    gradient = """[T:type, Treal:type](ai:int64, av:T, as:int64, bi:int64, bv:T, bs:int64, thresh:Treal, di:int64, dv:T, ds:int64) -> (dai:int64, dav:T, das:int64, dbi:int64, dbv:T, dbs:int64, dthresh:Treal) {
      si, sv, ss = SparseAdd[T=$T, Treal=$Treal](ai, av, as, bi, bv, bs, thresh)
      dav, dbv = SparseAddGrad[T=$T](dv, ai, bi, si)
      dai = ZerosLike[T=int64](ai)
      das = ZerosLike[T=int64](as)
      dbi = ZerosLike[T=int64](bi)
      dbs = ZerosLike[T=int64](bs)
      dthresh = ZerosLike[T=$Treal](thresh)
    }"""
    examples = (
        Example([INDICES, VALUES, SIZES, np.array([[0, 0], [1, 0]]), [5.0, 2.0], SIZES, 0.0]),
        Example([INDICES, VALUES, SIZES, np.array([[0, 0], [1, 0]]), [5.0, 2.0], SIZES, 0.5]),
        Example(
            [[[0, 0], [0, 1], [1, 0]], np.array([1, -1, 2]), [2, 2], [[0, 1], [1, 0], [1, 1]], np.array([-1, -5, 1]), [2, 2], np.int64(3)],
            outputs=[[[0, 0], [1, 0], [1, 1]], [1, -3, 1], [2, 2]],
        ),
    )
    failures = (Example([OUTSIDE, VALUES, SIZES, np.array([[0, 0], [1, 0]]), [5.0, 2.0], SIZES, 0.0]),)

    def kernel(k: KernelContext) -> Kernel:
        def add(ai: Any, av: Any, ashape: Any, bi: Any, bv: Any, bshape: Any, thresh: Any) -> Any:
            union, in_a, in_b, sizes = merged(k, (ai, av, ashape), (bi, bv, bshape))
            check_allocation((len(union),), av.dtype)
            total = np.zeros(len(union), av.dtype)
            np.add.at(total, in_a, av)
            np.add.at(total, in_b, bv)
            in_both = np.isin(np.arange(len(union)), in_a) & np.isin(np.arange(len(union)), in_b)
            kept = ~in_both | (abs(total) >= thresh)
            return indices_at(union[kept], sizes), total[kept], ashape

        return add


@op
class SparseAddGrad:
    """The gradient of SparseAdd: for each value the gradient at its place in the sum.

    backprop_val_grad: [s], the gradients of the sums
    a_indices: [n, rank]
    b_indices: [m, rank]
    sum_indices: [s, rank]
    """

    signature = (
        f"SparseAddGrad[T:{NUMBER}](backprop_val_grad:T, a_indices:int64, b_indices:int64, sum_indices:int64) -> "
        "(a_val_grad:T, b_val_grad:T)"
    )
    device_types = ("CPU",)
    gradient = not_differentiable("TensorFlow has no second derivative of this op")
    examples = (
        Example(
            [[5.0, 7.0], INDICES, np.array([[1, 2]]), np.array([[0, 1], [1, 2]])], outputs=[[5.0, 0.0, 7.0], [7.0]], differentiable=False
        ),
    )
    failures = (Example([[5.0], INDICES, np.array([[1, 2]]), np.array([[0, 1], [1, 2]])]),)

    def shape(c: InferenceContext) -> None:
        for i in (1, 2):
            c.set_output(i - 1, c.vector(c.dim(c.with_rank(c.input(i), 2), 0)))

    def kernel(k: KernelContext) -> Kernel:
        def spread(gradients: Any, ai: Any, bi: Any, si: Any) -> Any:
            if si.ndim != 2 or gradients.shape != si.shape[:1]:
                raise invalid(
                    k, f"# elements in backprop_val_grad and # rows in sum_indices should match (got {gradients.shape} vs. {si.shape})"
                )
            at = {tuple(row): i for i, row in enumerate(si.tolist())}
            padded = np.concatenate([gradients, np.zeros(1, gradients.dtype)])
            return tuple(padded[[at.get(tuple(row), -1) for row in rows.tolist()]] if len(rows) else padded[:0] for rows in (ai, bi))

        return spread


@op
class SparseTensorDenseAdd:
    """The sum of a sparse and a dense tensor, as a dense one.

    a_indices: [n, rank]
    a_values: [n]
    a_shape: [rank]
    b: a_shape
    """

    signature = (
        f"SparseTensorDenseAdd[T:{NUMBER}, Tindices:{{int32, int64}}](a_indices:Tindices, a_values:T, a_shape:Tindices, b:T) -> (output:T)"
    )
    device_types = ("CPU",)
    gradient = """[T:type, Tindices:type](indices:Tindices, values:T, sizes:Tindices, b:T, dy:T) -> (dindices:Tindices, dvalues:T, dsizes:Tindices, db:T) {
      dvalues = GatherNd[Tparams=$T, Tindices=$Tindices](dy, indices)
      db = Identity[T=$T](dy)
      dindices = ZerosLike[T=$Tindices](indices)
      dsizes = ZerosLike[T=$Tindices](sizes)
    }"""
    examples = (Example([INDICES, VALUES, SIZES, _WIDE]),)
    failures = (Example([OUTSIDE, VALUES, SIZES, _WIDE]),)

    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.input(3))

    def kernel(k: KernelContext) -> Kernel:
        def add(indices: Any, values: Any, shape: Any, b: Any) -> Any:
            sizes = checked(k, indices, values, shape)
            if sizes != b.shape:
                raise invalid(k, f"Dimensions of a {list(sizes)} and b {list(b.shape)} do not match")
            total = b.copy().reshape(-1)
            np.add.at(total, places(indices, sizes), values)
            return total.reshape(b.shape)

        return add
