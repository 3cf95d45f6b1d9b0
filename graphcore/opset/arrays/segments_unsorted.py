"""Reductions of parts of a tensor by segment ids in any order; parts with negative ids are dropped."""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np

from graphcore.inference.shape_fns.common_shape_fns import segment_reduction_with_num_segments_shape
from graphcore.opset.arrays.segments import combined
from graphcore.opset.framework.block import Example, Kernel, KernelContext, define_op
from graphcore.opset.framework.gradient_text import scalar
from graphcore.opset.framework.kernels import constant_int, invalid, one_int
from graphcore.opset.framework.type_sets import INDEX, NUMBER, REAL
from graphcore.registry import KernelFactory

_X: Final = [[1.0, -2.0], [3.0, 0.5], [-4.0, 2.0], [5.0, 7.0]]
_EXAMPLES: Final = (
    Example([_X, [1, 0, -1, 1], 2]),
    Example([_X, [[0, 1], [1, 1], [2, 0], [0, 0]], 3]),
    Example([_X, [2, 0, -1, 2], 4], differentiable=False),
)
_REST: Final = f"Tnumsegments:{INDEX} = int32](data:T, segment_ids:Tindices, num_segments:Tnumsegments) -> (output:T)"
_GATHER: Final = "Gather[Tindices=$Tindices, Tparams=$T]"


def _gradient(body: str, indices: str = "{int32, int64}") -> str:
    """A gradient text around `body`: ids below 0 are treated as 0 and masked.

    The mask `kept` is shaped to broadcast against the data.
    """
    return f"""[T:{{half, float, double}}, Tindices:{indices}, Tnumsegments:type](x:T, ids:Tindices, num:Tnumsegments, dy:T) -> (dx:T, dids:Tindices, dnum:Tnumsegments) {{
      zeros_ids = ZerosLike[T=$Tindices](ids)
      clipped = Maximum[T=$Tindices](ids, zeros_ids)
      not_negative = GreaterEqual[T=$Tindices](ids, zeros_ids)
      zero = {scalar("int32", 0)}
      one = {scalar("int32", 1)}
      rank = Rank[T=$T](x)
      ids_rank = Rank[T=$Tindices](ids)
      columns = Sub[T=int32](rank, ids_rank)
      columns_vector = ExpandDims[T=int32](columns, zero)
      ones_columns = Fill[T=int32](columns_vector, one)
      ids_shape = Shape[T=$Tindices](ids)
      kept_shape = ConcatV2[N=2, T=int32](ids_shape, ones_columns, zero)
      kept = Reshape[T=bool](not_negative, kept_shape)
      zeros = ZerosLike[T=$T](x)
{body}
      dids = ZerosLike[T=$Tindices](ids)
      dnum = ZerosLike[T=$Tnumsegments](num)
    }}"""


def _unsorted(name: str, start: Any) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        xp, dtype, constant_count = k.xp, k.dtype("T"), constant_int(k, 2)
        begin = start(dtype) if callable(start) else start

        def reduce(data: Any, ids: Any, num_segments: Any) -> Any:
            rows = one_int(k, num_segments) if constant_count is None else constant_count
            if rows < 0 or data.shape[: ids.ndim] != ids.shape:
                raise invalid(
                    k,
                    f"required num_segments >= 0 and data.shape = {list(data.shape)} to begin with segment_ids.shape = {list(ids.shape)}, got {rows}",
                )
            if ids.size and ids.max() >= rows:
                raise invalid(k, f"segment_ids must be below num_segments = {rows}, got {ids.max()}")
            flat = data.reshape((ids.size, *data.shape[ids.ndim :]))
            kept = ids.reshape(-1) >= 0
            return combined(xp, name, flat[kept], ids.reshape(-1)[kept], rows, begin).astype(dtype, copy=False)

        return reduce

    return kernel


def _lowest(dtype: np.dtype[Any]) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else _finite(dtype)[0]


def _highest(dtype: np.dtype[Any]) -> Any:
    return np.iinfo(dtype).max if dtype.kind in "iu" else _finite(dtype)[1]


def _finite(dtype: np.dtype[Any]) -> tuple[float, float]:
    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]  # NumPy's finfo, extended to bfloat16; not annotated
    return float(info.min), float(info.max)


def _extreme_grad(name: str) -> str:
    """The gradient of a segment is shared evenly among its extremes."""
    return _gradient(f"""      y = {name}[T=$T, Tindices=$Tindices, Tnumsegments=$Tnumsegments](x, ids, num)
      gathered = {_GATHER}(y, clipped)
      equal = Equal[T=$T](x, gathered)
      selected = LogicalAnd(equal, kept)
      selected_T = Cast[DstT=$T, SrcT=bool](selected)
      count = UnsortedSegmentSum[T=$T, Tindices=$Tindices, Tnumsegments=$Tnumsegments](selected_T, ids, num)
      weighted = Div[T=$T](dy, count)
      gathered_grad = {_GATHER}(weighted, clipped)
      dx = Select[T=$T](selected, gathered_grad, zeros)""")


def _segment_op(name: str, summary: str, types: str, kernel: KernelFactory, gradient: str, index_types: str = INDEX) -> None:
    """Register a reduction of parts by segment ids in any order."""
    define_op(
        name,
        f"""{summary}

        data: segment_ids.shape + [...]
        segment_ids: any shape, below num_segments
        num_segments: the number of segments, a scalar
        output: [num_segments, ...]
        """,
        pure=True,
        signature=f"{name}[T:{types}, Tindices:{index_types}, {_REST}",
        shape=segment_reduction_with_num_segments_shape,
        kernel=kernel,
        gradient=gradient,
        examples=_EXAMPLES,
        failures=(Example([[1.0, 2.0], [0, 99], 2]),),
    )


_segment_op(
    "UnsortedSegmentSum",
    "The sum of the parts of each segment; 0 for a segment without parts.",
    NUMBER,
    _unsorted("add", 0),
    _gradient(f"""      gathered = {_GATHER}(dy, clipped)
      dx = SelectV2[T=$T](kept, gathered, zeros)"""),
    "{int16, int32, int64}",
)
# The gradient at the only zero of a segment is the product of the other elements; with two zeros, all gradients are 0.
_segment_op(
    "UnsortedSegmentProd",
    "The product of the parts of each segment; 1 for a segment without parts.",
    NUMBER,
    _unsorted("multiply", 1),
    _gradient(f"""      ones = OnesLike[T=$T](x)
      is_zero = Equal[T=$T](x, zeros)
      zero_count = Cast[DstT=int32, SrcT=bool](is_zero)
      zeros_count = UnsortedSegmentSum[T=int32, Tindices=$Tindices, Tnumsegments=$Tnumsegments](zero_count, ids, num)
      single = {scalar("int32", 1)}
      several = Greater[T=int32](zeros_count, single)
      no_grad = ZerosLike[T=$T](dy)
      grad = Select[T=$T](several, no_grad, dy)
      others = Select[T=$T](is_zero, ones, x)
      others_prod = UnsortedSegmentProd[T=$T, Tindices=$Tindices, Tnumsegments=$Tnumsegments](others, ids, num)
      y = UnsortedSegmentProd[T=$T, Tindices=$Tindices, Tnumsegments=$Tnumsegments](x, ids, num)
      gathered_y = {_GATHER}(y, clipped)
      gathered_others = {_GATHER}(others_prod, clipped)
      quotient = Div[T=$T](gathered_y, others)
      partial = Select[T=$T](is_zero, gathered_others, quotient)
      gathered_grad = {_GATHER}(grad, clipped)
      product = Mul[T=$T](gathered_grad, partial)
      dx = SelectV2[T=$T](kept, product, zeros)"""),
)
_segment_op(
    "UnsortedSegmentMax",
    "The largest element of each segment; the type's least number for a segment without parts.",
    REAL,
    _unsorted("maximum", _lowest),
    _extreme_grad("UnsortedSegmentMax"),
)
_segment_op(
    "UnsortedSegmentMin",
    "The smallest element of each segment; the type's greatest number for a segment without parts.",
    REAL,
    _unsorted("minimum", _highest),
    _extreme_grad("UnsortedSegmentMin"),
)
