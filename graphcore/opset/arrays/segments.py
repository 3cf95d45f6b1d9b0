"""Reductions of the rows of a tensor by segment: rows with equal ids. Ids are sorted here."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.inference.shape_fns.common_shape_fns import segment_reduction_shape
from graphcore.opset.framework.block import Example, Kernel, KernelContext, define_op
from graphcore.opset.framework.gradient_text import scalar
from graphcore.opset.framework.kernels import combining_at, invalid, narrow
from graphcore.opset.framework.type_sets import INDEX, NUMBER, REAL
from graphcore.registry import KernelFactory
from graphcore.support.memory_limits import check_allocation

_X: Final = [[1.0, -2.0], [3.0, 0.5], [-4.0, 2.0], [5.0, 7.0]]
_EXAMPLES: Final = (Example([_X, [0, 0, 1, 3]]), Example([[2.0, 5.0, 3.0], np.array([0, 1, 1])]))
_HEAD: Final = "[T:{half, float, double}, Tindices:{int32, int64}](x:T, ids:Tindices, dy:T) -> (dx:T, dids:Tindices)"


def counted_rows(k: KernelContext, data: Any, ids: Any) -> int:
    """The number of segments of sorted ids.

    Raises:
        InvalidArgumentError: the ids are not one per row, or not sorted from 0 on.
    """
    if ids.ndim != 1 or data.shape[:1] != ids.shape:
        raise invalid(
            k, f"segment_ids should be the same size as dimension 0 of input. (data {list(data.shape)}, segment_ids {list(ids.shape)})"
        )
    if not ids.size:
        return 0
    if int(ids[0]) < 0 or (ids[1:] < ids[:-1]).any():
        raise invalid(k, "segment ids are not increasing from 0 on")
    return int(ids[-1]) + 1


def wide_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type for sums."""
    return np.dtype(np.float32) if narrow(dtype) else dtype


def counts_of(xp: Any, ids: Any, rows: int, rank: int, dtype: Any) -> Any:
    """The number of rows of each segment, at least 1, shaped to divide rows of a tensor of that rank."""
    counts = xp.bincount(ids, minlength=rows)[:rows]
    return xp.maximum(counts, 1).astype(dtype).reshape((-1,) + (1,) * (rank - 1))


def combined(xp: Any, name: str, data: Any, ids: Any, rows: int, start: Any) -> Any:
    """The rows of each segment combined by the ufunc `name`, with the initial value `start`."""
    dtype = wide_type(data.dtype)
    check_allocation((rows, *data.shape[1:]), data.dtype)
    result = xp.full((rows, *data.shape[1:]), start, dtype)
    combining_at(xp, name)(result, ids, data.astype(dtype, copy=False))
    return result


def _segments(name: str, start: float) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        xp, dtype = k.xp, k.dtype("T")

        def reduce(data: Any, ids: Any) -> Any:
            return combined(xp, name, data, ids, counted_rows(k, data, ids), start).astype(dtype, copy=False)

        return reduce

    return kernel


def _extreme(name: str) -> KernelFactory:
    """The kernel of an extreme by segment; segments without rows give 0."""

    def kernel(k: KernelContext) -> Kernel:
        xp, dtype = k.xp, k.dtype("T")

        def reduce(data: Any, ids: Any) -> Any:
            rows = counted_rows(k, data, ids)
            check_allocation((rows, *data.shape[1:]), dtype)
            result = xp.zeros((rows, *data.shape[1:]), dtype)
            result[ids] = data
            combining_at(xp, name)(result, ids, data)
            return result

        return reduce

    return kernel


def _mean(k: KernelContext) -> Kernel:
    xp, dtype = k.xp, k.dtype("T")
    whole = dtype.kind in "iu"

    def mean(data: Any, ids: Any) -> Any:
        rows = counted_rows(k, data, ids)
        total = combined(xp, "add", data, ids, rows, 0)
        counts = counts_of(xp, ids, rows, data.ndim, total.dtype)
        if not whole:
            return (total / counts).astype(dtype, copy=False)
        quotient = total // counts
        return quotient + ((quotient < 0) & (quotient * counts != total))

    return mean


def _extreme_grad(name: str) -> str:
    """The gradient of a segment is shared evenly among its extremes."""
    return f"""{_HEAD} {{
      y = {name}[T=$T, Tindices=$Tindices](x, ids)
      gathered = Gather[Tindices=$Tindices, Tparams=$T](y, ids)
      selected = Equal[T=$T](x, gathered)
      selected_T = Cast[DstT=$T, SrcT=bool](selected)
      count = SegmentSum[T=$T, Tindices=$Tindices](selected_T, ids)
      weighted = Div[T=$T](dy, count)
      gathered_grad = Gather[Tindices=$Tindices, Tparams=$T](weighted, ids)
      zeros = ZerosLike[T=$T](gathered_grad)
      dx = Select[T=$T](selected, gathered_grad, zeros)
      dids = ZerosLike[T=$Tindices](ids)
    }}"""


def _segment_op(name: str, summary: str, types: str, kernel: KernelFactory, gradient: str) -> None:
    """Register a reduction of rows by sorted segment ids."""
    define_op(
        name,
        f"""{summary}

        data: [n, ...]
        segment_ids: [n], sorted, from 0 on
        output: [last id + 1, ...]
        """,
        signature=f"{name}[T:{types}, Tindices:{INDEX}](data:T, segment_ids:Tindices) -> (output:T)",
        shape=segment_reduction_shape,
        kernel=kernel,
        gradient=gradient,
        examples=_EXAMPLES,
        failures=(Example([[1.0, 2.0], [0, -1]]),),
    )


_segment_op(
    "SegmentSum",
    "The sum of the rows of each segment; 0 for a segment without rows.",
    NUMBER,
    _segments("add", 0),
    gradient=f"""{_HEAD} {{
      dx = Gather[Tindices=$Tindices, Tparams=$T](dy, ids)
      dids = ZerosLike[T=$Tindices](ids)
    }}""",
)
_segment_op(
    "SegmentMean",
    "The mean of the rows of each segment; 0 for a segment without rows.",
    NUMBER,
    _mean,
    gradient=f"""{_HEAD} {{
      zero = {scalar("int32", 0)}
      one = {scalar("int32", 1)}
      rank = Rank[T=$T](x)
      columns = Sub[T=int32](rank, one)
      columns_vector = ExpandDims[T=int32](columns, zero)
      ones_columns = Fill[T=int32](columns_vector, one)
      rows = Shape[T=$Tindices](ids)
      ones_shape = ConcatV2[N=2, T=int32](rows, ones_columns, zero)
      const = {scalar("float", 1)}
      one_T = Cast[DstT=$T, SrcT=float](const)
      ones = Fill[T=$T](ones_shape, one_T)
      counts = SegmentSum[T=$T, Tindices=$Tindices](ones, ids)
      scaled = Div[T=$T](dy, counts)
      dx = Gather[Tindices=$Tindices, Tparams=$T](scaled, ids)
      dids = ZerosLike[T=$Tindices](ids)
    }}""",
)
# The gradient at the only zero of a segment is the product of the other elements; with two zeros, all gradients are 0.
_segment_op(
    "SegmentProd",
    "The product of the rows of each segment; 1 for a segment without rows.",
    NUMBER,
    _segments("multiply", 1),
    gradient=f"""{_HEAD} {{
      zeros = ZerosLike[T=$T](x)
      ones = OnesLike[T=$T](x)
      is_zero = Equal[T=$T](x, zeros)
      zero_count = Cast[DstT=int32, SrcT=bool](is_zero)
      zeros_count = SegmentSum[T=int32, Tindices=$Tindices](zero_count, ids)
      single = {scalar("int32", 1)}
      several = Greater[T=int32](zeros_count, single)
      no_grad = ZerosLike[T=$T](dy)
      grad = Select[T=$T](several, no_grad, dy)
      others = Select[T=$T](is_zero, ones, x)
      others_prod = SegmentProd[T=$T, Tindices=$Tindices](others, ids)
      y = SegmentProd[T=$T, Tindices=$Tindices](x, ids)
      gathered_y = Gather[Tindices=$Tindices, Tparams=$T](y, ids)
      gathered_others = Gather[Tindices=$Tindices, Tparams=$T](others_prod, ids)
      quotient = Div[T=$T](gathered_y, others)
      partial = Select[T=$T](is_zero, gathered_others, quotient)
      gathered_grad = Gather[Tindices=$Tindices, Tparams=$T](grad, ids)
      dx = Mul[T=$T](gathered_grad, partial)
      dids = ZerosLike[T=$Tindices](ids)
    }}""",
)
_segment_op(
    "SegmentMax",
    "The largest element of the rows of each segment; 0 for a segment without rows.",
    REAL,
    _extreme("maximum"),
    _extreme_grad("SegmentMax"),
)
_segment_op(
    "SegmentMin",
    "The smallest element of the rows of each segment; 0 for a segment without rows.",
    REAL,
    _extreme("minimum"),
    _extreme_grad("SegmentMin"),
)
