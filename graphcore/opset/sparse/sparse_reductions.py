"""Reductions of sparse tensors, and the softmax of their rows."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import unknown_shape
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, define_op, no_registered_gradient, op
from graphcore.opset.framework.gradient_text import scalar
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.framework.type_sets import NUMBER, REAL
from graphcore.opset.numerics.sparse_values import checked, indices_at, places
from graphcore.opset.sparse.sparse_conversion import INDICES, OUTSIDE, SIZES, VALUES, reduced_shape

_DENSE: Final = [[1.0, 2.0], [-3.0, 0.5], [4.0, -1.0]]
_WIDE: Final = [[1.0, 2.0, -3.0], [0.5, 4.0, -1.0]]


def _reductions(name: str, ufunc: Any, types: str, summary: str, gradient: Any) -> None:
    """Register a reduction with a dense result, and with a sparse one."""

    def reduced(k: KernelContext, indices: Any, values: Any, shape: Any, axes: Any) -> tuple[Any, Any, tuple[int, ...]]:
        sizes = checked(k, indices, values, shape)
        keep, rank = bool(k.attr("keep_dims")), len(sizes)
        if any(not -rank <= axis < rank for axis in axes.reshape(-1).tolist()):
            raise invalid(k, f"Invalid reduction dimension in {axes.tolist()}, for input with {rank} dimensions")
        chosen = {axis % rank for axis in axes.reshape(-1).tolist()}
        rest = [axis for axis in range(rank) if axis not in chosen]
        groups, group_of = np.unique(places(indices[:, rest], [sizes[axis] for axis in rest]), return_inverse=True)
        folded = np.zeros(len(groups), values.dtype)
        first = np.ones(len(groups), bool)
        for group, value in zip(group_of.reshape(-1).tolist(), values, strict=True):
            folded[group] = value if first[group] else ufunc(folded[group], value)
            first[group] = False
        return groups, folded, tuple(1 if axis in chosen else sizes[axis] for axis in range(rank) if keep or axis not in chosen)

    def dense_kernel(k: KernelContext) -> Kernel:
        def reduce(indices: Any, values: Any, shape: Any, axes: Any) -> Any:
            groups, folded, new = reduced(k, indices, values, shape, axes)
            dense = np.zeros(int(np.prod(new, dtype=np.int64)), values.dtype)
            dense[groups] = folded
            return dense.reshape(new)

        return reduce

    def sparse_kernel(k: KernelContext) -> Kernel:
        def reduce(indices: Any, values: Any, shape: Any, axes: Any) -> Any:
            groups, folded, new = reduced(k, indices, values, shape, axes)
            return indices_at(groups, new), folded, np.array(new, np.int64)

        return reduce

    attrs = f"keep_dims:bool = false, T:{types}"
    args = "input_indices:int64, input_values:T, input_shape:int64, reduction_axes:int32"
    doc = """

        input_indices: [n, rank]
        input_values: [n]
        input_shape: [rank]
        reduction_axes: the dimensions to reduce
        keep_dims: keep these with size 1."""
    examples = (
        Example([INDICES, VALUES, SIZES, [1]]),
        Example([INDICES, VALUES, SIZES, 0], {"keep_dims": True}),
        Example([INDICES, VALUES, SIZES, [0, -1]]),
    )
    failures = (Example([OUTSIDE, VALUES, SIZES, [1]]),)
    define_op(
        name,
        f"{summary}, as a dense tensor.{doc}",
        signature=f"{name}[{attrs}]({args}) -> (output:T)",
        shape=reduced_shape,
        kernel=dense_kernel,
        gradient=gradient,
        examples=examples,
        failures=failures,
        device_types=("CPU",),
    )
    define_op(
        f"{name}Sparse",
        f"{summary}, as a sparse tensor.{doc}",
        signature=f"{name}Sparse[{attrs}]({args}) -> (output_indices:int64, output_values:T, output_shape:int64)",
        shape=unknown_shape,
        kernel=sparse_kernel,
        gradient=NO_GRADIENT,
        examples=examples,
        failures=failures,
        device_types=("CPU",),
    )


_SUM_GRADIENT: Final = f"""[keep_dims:bool, T:type](indices:int64, values:T, sizes:int64, axes:int32, dy:T) -> (dindices:int64, dvalues:T, dsizes:int64, daxes:int32) {{
      rank = Size[T=int64](sizes)
      axes_in = FloorMod[T=int32](axes, rank)
      narrow = Cast[SrcT=int64, DstT=int32](sizes)
      one = {scalar("int32", 1)}
      zero = {scalar("int32", 0)}
      all_axes = Range[Tidx=int32](zero, rank, one)
      flat = Const[dtype=int32, value=Tensor<type: int32 shape: [1] values: -1>]()
      axes_flat = Reshape[T=int32](axes_in, flat)
      shape_of_axes = Shape[T=int32](axes_flat)
      ones_of_axes = Fill[T=int32](shape_of_axes, one)
      kept = DynamicStitch[N=2, T=int32](all_axes, axes_flat, narrow, ones_of_axes)
      dy_kept = Reshape[T=$T](dy, kept)
      scale = FloorDiv[T=int32](narrow, kept)
      scale_64 = Cast[SrcT=int32, DstT=int64](scale)
      places = FloorDiv[T=int64](indices, scale_64)
      dvalues = GatherNd[Tparams=$T, Tindices=int64](dy_kept, places)
      dindices = ZerosLike[T=int64](indices)
      dsizes = ZerosLike[T=int64](sizes)
      daxes = ZerosLike[T=int32](axes)
    }}"""
_reductions("SparseReduceSum", np.add, NUMBER, "The sum of the values of a sparse tensor along dimensions", _SUM_GRADIENT)
_reductions(
    "SparseReduceMax",
    np.maximum,
    REAL,
    "The greatest of the values of a sparse tensor along dimensions, 0 where there are none",
    no_registered_gradient("TensorFlow has no gradient of this op"),
)


@op
class SparseSoftmax:
    """The softmax of the values in each row of the last dimension.

    sp_indices: [n, rank], in ascending order
    sp_values: [n]
    sp_shape: [rank], of at least rank 2
    output: [n]
    """

    signature = "SparseSoftmax[T:{half, float, double}](sp_indices:int64, sp_values:T, sp_shape:int64) -> (output:T)"
    device_types = ("CPU",)
    gradient = f"""[T:type](indices:int64, values:T, sizes:int64, dy:T) -> (dindices:int64, dvalues:T, dsizes:int64) {{
      y = SparseSoftmax[T=$T](indices, values, sizes)
      product = Mul[T=$T](y, dy)
      minus_one = Const[dtype=int32, value=Tensor<type: int32 shape: [1] values: -1>]()
      sums = SparseReduceSum[T=$T, keep_dims=true](indices, product, sizes, minus_one)
      rank = Size[T=int64](sizes)
      zero = {scalar("int32", 0)}
      one = {scalar("int32", 1)}
      last = Sub[T=int32](rank, one)
      on = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: 0>]()
      off = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: 1>]()
      mask = OneHot[T=int64, TI=int32](last, rank, on, off)
      rows = Mul[T=int64](indices, mask)
      of_rows = GatherNd[Tparams=$T, Tindices=int64](sums, rows)
      centred = Sub[T=$T](dy, of_rows)
      dvalues = Mul[T=$T](centred, y)
      dindices = ZerosLike[T=int64](indices)
      dsizes = ZerosLike[T=int64](sizes)
    }}"""
    examples = (Example([INDICES, VALUES, SIZES]),)
    failures = (Example([np.array([[0, 1], [9, 0], [1, 2]]), VALUES, SIZES]),)

    def shape(c: InferenceContext) -> None:
        c.with_rank(c.input(0), 2)
        c.with_rank(c.input(2), 1)
        c.set_output(0, c.with_rank(c.input(1), 1))

    def kernel(k: KernelContext) -> Kernel:
        def softmax(indices: Any, values: Any, shape: Any) -> Any:
            sizes = checked(k, indices, values, shape)
            if len(sizes) < 2:
                raise invalid(k, f"Input should have rank >= 2, but received shape {list(sizes)}")
            _, row = np.unique(places(indices[:, :-1], sizes[:-1]), return_inverse=True)
            row = row.reshape(-1)
            greatest = np.full(row.max(initial=-1) + 1, -np.inf, values.dtype)
            np.maximum.at(greatest, row, values)
            powers = np.exp(values - greatest[row])
            total = np.zeros(len(greatest), values.dtype)
            np.add.at(total, row, powers)
            return powers / total[row]

        return softmax
