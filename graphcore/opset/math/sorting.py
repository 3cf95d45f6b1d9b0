"""Sorting and selection: largest elements, positions, partitions, histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from graphcore.attrs import Array, Attrs
from graphcore.inference.shape_fns.common_shape_fns import dynamic_partition_shape, in_top_k_shape, top_k_shape
from graphcore.opset.arrays.gathering import checked_indices
from graphcore.opset.framework.block import NO_GRADIENT, Example, InferenceContext, Kernel, KernelContext, op
from graphcore.opset.framework.families import Total
from graphcore.opset.framework.gradient_text import required_int, scalar, vector
from graphcore.opset.framework.kernels import constant_int, in_proportion, invalid, one_int
from graphcore.opset.framework.type_sets import INDEX, NUMBER, REAL
from graphcore.support.memory_limits import check_allocation, memory_limit
from graphcore.traits import FailsOn

_INT64: Final = np.dtype(np.int64)
_X: Final = [[3.0, 1.0, 4.0, 1.5], [-5.0, 9.0, 2.0, 6.0]]


_TOP_K_GRADIENT: Final = f"""[T:{{half, float, double}}, Tk:type, index_type:type](x:T, k:Tk, dvalues:T, dindices:index_type) -> (dx:T, dk:Tk) {{
  values, indices = TopKV2[T=$T, Tk=$Tk, index_type=$index_type](x, k)
  indices_32 = Cast[DstT=int32, SrcT=$index_type](indices)
  zero = {scalar("int32", 0)}
  one = {scalar("int32", 1)}
  flat = {vector("int32", -1)}
  found = Size[T=int32](indices_32)
  x_shape = Shape[T=$T](x)
  size = Size[T=$T](x)
  rank = Rank[T=$T](x)
  last = Sub[T=int32](rank, one)
  width = GatherV2[Taxis=int32, Tindices=int32, Tparams=int32](x_shape, last, zero)
  outer_rank = ExpandDims[T=int32](last, zero)
  zeros = ZerosLike[T=int32](outer_rank)
  rows_shape = Slice[Index=int32, T=int32](x_shape, zeros, outer_rank)
  rows = Prod[T=int32](rows_shape, zero)
  row = Range(zero, rows, one)
  starts = Mul[T=int32](row, width)
  one_column = {vector("int32", 1)}
  starts_shape = ConcatV2[N=2, T=int32](rows_shape, one_column, zero)
  starts_wide = Reshape[T=int32](starts, starts_shape)
  places = AddV2[T=int32](indices_32, starts_wide)
  column_shape = Pack[N=2, T=int32](found, one)
  column = Reshape[T=int32](places, column_shape)
  found_vector = Reshape[T=int32](found, flat)
  updates = Reshape[T=$T](dvalues, found_vector)
  size_vector = Reshape[T=int32](size, flat)
  sum = ScatterNd[T=$T, Tindices=int32](column, updates, size_vector)
  dx = Reshape[T=$T](sum, x_shape)
  dk = ZerosLike[T=$Tk](k)
}}"""


def sortable(x: Any) -> Any:
    """The values in a type that NumPy sorts with NaN at the end, which it does not do for bfloat16."""
    return x.astype(np.float32) if x.dtype.kind == "V" else x


def _largest(k: KernelContext, x: Any, count: int, dtype: Any) -> tuple[Any, Any]:
    if not 0 <= count <= x.shape[-1]:
        raise invalid(k, f"input must have at least k columns. Had {x.shape[-1]}, needed {count}")
    # Sorted and read backwards, so that the first of equal elements comes first.
    order = sortable(x)[..., ::-1].argsort(-1, kind="stable")[..., ::-1][..., :count]
    indices = x.shape[-1] - 1 - order
    return k.xp.take_along_axis(x, indices, -1), indices.astype(dtype)


@op
class TopKV2:
    """The k largest elements along the last dimension, in descending order, with their indices.

    k: the number of elements, a scalar
    sorted: if false, any order is allowed.
    """

    pure = True
    signature = (
        f"TopKV2[sorted:bool = true, T:{REAL}, Tk:{{int16, int32, int64}} = int32, index_type:{{int16, int32, int64}} = int32]"
        "(input:T, k:Tk) -> (values:T, indices:index_type)"
    )
    shape = top_k_shape
    cost = "sort"
    can_fail = FailsOn(values=("k",))
    # The gradient of each value goes to its source.
    gradient = _TOP_K_GRADIENT
    examples = (
        Example([_X, 2], outputs=[[[4.0, 3.0], [9.0, 6.0]], [[2, 0], [1, 3]]]),
        Example([[2, 7, 7, 1], 3], outputs=[[7, 7, 2], [1, 2, 0]]),
        Example([[_X, _X], 1]),
    )
    failures = (Example([_X, -1]),)

    def kernel(k: KernelContext) -> Kernel:
        dtype, constant_count = k.dtype("index_type"), constant_int(k, 1)
        return lambda x, count: _largest(k, x, one_int(k, count) if constant_count is None else constant_count, dtype)


def _in_top_k(k: KernelContext, predictions: Any, targets: Any, count: int) -> Any:
    """True if fewer than `count` predictions exceed the target's; False if it is not finite or no class."""
    xp, classes = k.xp, predictions.shape[1]
    inside = (targets >= 0) & (targets < classes)
    own = predictions[xp.arange(len(targets)), xp.where(inside, targets, 0)]
    larger = xp.add.reduce(predictions > own[:, None], 1)
    return inside & xp.isfinite(own) & xp.isfinite(predictions).all(1) & (larger < count)


_PREDICTIONS: Final = [[0.1, 0.5, 0.4], [0.7, 0.2, 0.1], [0.3, 0.3, 0.4]]


@op
class InTopK(Total):
    """True where the target class is among the k largest predictions.

    predictions: [batch, classes]
    targets: [batch]
    precision: [batch]
    k: the number of predictions.
    """

    pure = True
    signature = f"InTopK[k:int, T:{INDEX} = int32](predictions:float, targets:T) -> (precision:bool)"
    shape = in_top_k_shape
    gradient = NO_GRADIENT
    examples = (Example([_PREDICTIONS, [2, 0, 1]], {"k": 2}, outputs=[[True, True, True]]),)

    def kernel(k: KernelContext) -> Kernel:
        count = required_int(k.attrs, "k")
        return lambda predictions, targets: _in_top_k(k, predictions, targets, count)


@op
class InTopKV2(Total):
    """True where the target class is among the k largest predictions.

    predictions: [batch, classes]
    targets: [batch]
    k: the number of predictions, a scalar
    precision: [batch]
    """

    pure = True
    signature = f"InTopKV2[T:{INDEX} = int32](predictions:float, targets:T, k:T) -> (precision:bool)"
    shape = in_top_k_shape
    gradient = NO_GRADIENT
    examples = (Example([_PREDICTIONS, [2, 0, 7], 1], outputs=[[False, True, False]]),)

    def kernel(k: KernelContext) -> Kernel:
        return lambda predictions, targets, count: _in_top_k(k, predictions, targets, one_int(k, count))


@op
class Where:
    """The positions of the elements that are not 0 (or True), in order, one for each row.

    index: [count, rank]
    """

    pure = True
    signature = f"Where[T:{NUMBER[:-1]}, bool}} = bool](input:T) -> (index:int64)"
    can_fail = False
    gradient = NO_GRADIENT
    examples = (Example([[[True, False], [True, True]]], outputs=[[[0, 0], [1, 0], [1, 1]]]), Example([[1.5, 0.0]], outputs=[[[0]]]))

    def shape(c: InferenceContext) -> None:
        rank = c.rank(c.input(0))
        c.set_output(0, c.matrix(c.unknown_dim(), c.unknown_dim() if rank < 0 else c.make_dim(rank)))

    def most_bytes(_attrs: Attrs, inputs: Sequence[Array]) -> int:
        return inputs[0].size * inputs[0].ndim * _INT64.itemsize

    def kernel(k: KernelContext) -> Kernel:
        argwhere, count_nonzero = k.xp.argwhere, k.xp.count_nonzero

        def where(x: Any) -> Any:
            if x.size * x.ndim * _INT64.itemsize > memory_limit():  # it fits into memory otherwise, and counting takes time
                check_allocation((int(count_nonzero(x)), x.ndim), _INT64)
            return argwhere(x).astype(np.int64, copy=False)

        return where


@op
class DynamicPartition:
    """Partitions `data` by number: output i has the parts numbered i, in order.

    data: partitions.shape + [...]
    partitions: any shape, each in [0, num_partitions)
    num_partitions: the number of outputs.
    """

    pure = True
    most_bytes = in_proportion(1)
    signature = "DynamicPartition[num_partitions:int, T:type](data:T, partitions:int32) -> (outputs:num_partitions*T)"
    shape = dynamic_partition_shape
    gradient = f"""[num_partitions:int, T:type](data:T, partitions:int32, dy:num_partitions*T) -> (ddata:T, dpartitions:int32) {{
      zero = {scalar("int32", 0)}
      one = {scalar("int32", 1)}
      size = Size[T=int32](partitions)
      places = Range(zero, size, one)
      places_shape = Shape[T=int32](partitions)
      places_like = Reshape[T=int32](places, places_shape)
      parts = DynamicPartition[T=int32, num_partitions=$num_partitions](places_like, partitions)
      joined = DynamicStitch[N=$num_partitions, T=$T](parts, dy)
      data_shape = Shape[T=$T](data)
      ddata = Reshape[T=$T](joined, data_shape)
      dpartitions = ZerosLike[T=int32](partitions)
    }}"""
    examples = (
        Example([[10.0, 20.0, 30.0, 40.0], [1, 0, 1, 1]], {"num_partitions": 2}, outputs=[[20.0], [10.0, 30.0, 40.0]]),
        Example([[_X, _X], [[0, 2], [0, 0]]], {"num_partitions": 3}),
    )
    failures = (Example([[10.0, 20.0, 30.0, 40.0], [-1, -1, -1, -1]], {"num_partitions": 2}),)

    def kernel(k: KernelContext) -> Kernel:
        count = required_int(k.attrs, "num_partitions")

        def partition(data: Any, partitions: Any) -> Any:
            checked_indices(k, partitions, count)
            flat, numbers = data.reshape((partitions.size, *data.shape[partitions.ndim :])), partitions.reshape(-1)
            parts = tuple([flat[numbers == i] for i in range(count)])
            return parts if count != 1 else parts[0]

        return partition


@op
class Bincount:
    """The count of each number below `size`, or the sum of its weights.

    arr: numbers >= 0; others from `size` on are ignored
    size: a scalar
    weights: like arr, or empty for counting
    bins: [size]
    """

    pure = True
    signature = "Bincount[T:{int32, int64, float, double}](arr:int32, size:int32, weights:T) -> (bins:T)"
    gradient = NO_GRADIENT
    examples = (
        Example([[1, 1, 5, 3], 4, np.zeros(0, np.float32)], outputs=[[0.0, 2.0, 0.0, 1.0]]),
        Example([[1, 1, 2], 3, [0.5, 1.0, 2.0]], outputs=[[0.0, 1.5, 2.0]]),
    )
    failures = (Example([[-1, -1, -1, -1], 4, np.zeros(0, np.float32)]),)

    def shape(c: InferenceContext) -> None:
        c.with_rank(c.input(1), 0)
        size = c.input_tensor(1)
        c.set_output(0, c.vector(c.unknown_dim() if size is None else c.make_dim(int(size))))

    def kernel(k: KernelContext) -> Kernel:
        xp, dtype = k.xp, k.dtype("T")

        def count(arr: Any, size: Any, weights: Any) -> Any:
            bins = one_int(k, size)
            if arr.size and arr.min() < 0:
                raise invalid(k, f"Input arr must be non-negative! Got {arr.min()}")
            inside = arr < bins
            factors = weights[inside] if weights.size else None
            return xp.bincount(arr[inside], factors, minlength=bins)[:bins].astype(dtype)

        return count


@op
class HistogramFixedWidth:
    """The number of values in each of `nbins` equal parts of a range; outliers count in the end parts.

    value_range: [2], lower and upper end
    nbins: a scalar
    out: [nbins]
    """

    pure = True
    signature = f"HistogramFixedWidth[T:{{int32, int64, float, double}}, dtype:{INDEX} = int32](values:T, value_range:T, nbins:int32) -> (out:dtype)"
    gradient = NO_GRADIENT
    examples = (Example([[-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], 5], outputs=[[2, 1, 1, 0, 2]]),)
    failures = (Example([[np.nan, np.nan, np.nan, np.nan, np.nan, np.nan], [0.0, 5.0], 5]),)

    def shape(c: InferenceContext) -> None:
        c.with_value(c.dim(c.with_rank(c.input(1), 1), 0), 2)
        c.with_rank(c.input(2), 0)
        size = c.input_tensor(2)
        c.set_output(0, c.vector(c.unknown_dim() if size is None else c.make_dim(int(size))))

    def kernel(k: KernelContext) -> Kernel:
        xp, dtype = k.xp, k.dtype("dtype")

        def histogram(values: Any, value_range: Any, nbins: Any) -> Any:
            bins, (low, high) = one_int(k, nbins), value_range.astype(np.float64).tolist()
            if bins <= 0 or low >= high:
                raise invalid(k, f"required nbins > 0 and value_range[0] < value_range[1], got {bins} and [{low}, {high}]")
            places = xp.floor((values.reshape(-1).astype(np.float64) - low) * (bins / (high - low)))
            return xp.bincount(xp.clip(places, 0, bins - 1).astype(np.int64), minlength=bins).astype(dtype)

        return histogram


@op
class Cross(Total):
    """The cross products of the vectors in the last dimension, which has size 3.

    a: [..., 3]
    b: like a
    """

    pure = True
    signature = f"Cross[T:{REAL}](a:T, b:T) -> (product:T)"
    gradient = """[T:{half, float, double}](a:T, b:T, dy:T) -> (da:T, db:T) {
      da = Cross[T=$T](b, dy)
      db = Cross[T=$T](dy, a)
    }"""
    examples = (Example([[[1.0, 0.0, 0.0], [1.0, 2.0, 3.0]], [[0.0, 1.0, 0.0], [-1.0, 0.5, 2.0]]]),)

    def shape(c: InferenceContext) -> None:
        for shape in c.inputs:
            c.with_value(c.dim(c.with_rank_at_least(shape, 1), -1), 3)
        c.set_output(0, c.merge(c.input(0), c.input(1)))

    def kernel(k: KernelContext) -> Kernel:
        xp = k.xp

        def cross(a: Any, b: Any) -> Any:
            x, y, z = (a[..., i] for i in range(3))
            u, v, w = (b[..., i] for i in range(3))
            return xp.stack([y * w - z * v, z * u - x * w, x * v - y * u], -1)

        return cross
