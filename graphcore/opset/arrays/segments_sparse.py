"""Reductions of selected rows by segment: `indices` names the rows, sorted ids the segments."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import (
    sparse_segment_reduction_grad_shape,
    sparse_segment_reduction_shape,
    sparse_segment_reduction_with_num_segments_shape,
)
from graphcore.opset.arrays.gathering import checked_indices
from graphcore.opset.arrays.segments import combined, counted_rows, counts_of
from graphcore.opset.framework.block import Example, Kernel, KernelContext, define_op, no_registered_gradient
from graphcore.opset.framework.gradient_text import scalar
from graphcore.opset.framework.kernels import constant_int, invalid, one_int
from graphcore.opset.framework.type_sets import INDEX, REAL
from graphcore.registry import KernelFactory

_FLOATS: Final = "{bfloat16, half, float, double}"
_X: Final = [[1.0, -2.0], [3.0, 0.5], [-4.0, 2.0]]
_EXAMPLES: Final = (Example([_X, [0, 2, 1, 1], [0, 0, 1, 3]]), Example([_X, np.array([2, 0]), np.array([0, 0])]))
_INDEX_TYPES: Final = f"Tidx:{INDEX} = int32, Tsegmentids:{INDEX} = int32"
_SPARSE: Final = f"{_INDEX_TYPES}, sparse_gradient:bool = false](data:T, indices:Tidx, segment_ids:Tsegmentids) -> (output:T)"
_SPARSE_NUM: Final = (
    f"Tidx:{INDEX} = int32, Tnumsegments:{INDEX} = int32, Tsegmentids:{INDEX} = int32, sparse_gradient:bool = false]"
    "(data:T, indices:Tidx, segment_ids:Tsegmentids, num_segments:Tnumsegments) -> (output:T)"
)
_GRAD_V2: Final = (
    f"{_INDEX_TYPES}](grad:T, indices:Tidx, segment_ids:Tsegmentids, dense_output_dim0:int32) -> (output:T, sorted_unique_indices:Tidx)"
)
_GRAD: Final = f"{_INDEX_TYPES}](grad:T, indices:Tidx, segment_ids:Tsegmentids, output_dim0:int32) -> (output:T)"


def _scaled(k: KernelContext, scale: str, values: Any, ids: Any, rows: int) -> Any:
    """Divide by the number of rows of a segment, or by its square root."""
    if scale == "Sum":
        return values
    counts = counts_of(k.xp, ids, rows, values.ndim, values.dtype)
    return values / (counts if scale == "Mean" else k.xp.sqrt(counts))


def _reduction(scale: str, *, with_count: bool) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        xp, dtype = k.xp, k.dtype("T")
        constant_count = constant_int(k, 3) if with_count else None

        def reduce(data: Any, indices: Any, ids: Any, num_segments: Any = None) -> Any:
            picked = data.take(checked_indices(k, indices, data.shape[0]), 0)
            rows = counted_rows(k, picked, ids)
            if with_count:
                wanted = one_int(k, num_segments) if constant_count is None else constant_count
                if rows > wanted:
                    raise invalid(k, f"segment ids must be below num_segments = {wanted}, got {rows - 1}")
                rows = wanted
            return _scaled(k, scale, combined(xp, "add", picked, ids, rows, 0), ids, rows).astype(dtype, copy=False)

        return reduce

    return kernel


def _reduction_grad_kernel(scale: str) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        xp, dtype, constant_count = k.xp, k.dtype("T"), constant_int(k, 3)

        def spread(grad: Any, indices: Any, ids: Any, output_dim0: Any) -> Any:
            rows = one_int(k, output_dim0) if constant_count is None else constant_count
            checked_indices(k, ids, grad.shape[0])
            parts = _scaled(k, scale, grad, ids, grad.shape[0]).take(ids, 0)
            return combined(xp, "add", parts, checked_indices(k, indices, rows), rows, 0).astype(dtype, copy=False)

        return spread

    return kernel


def _reduction_grad_v2_kernel(scale: str) -> KernelFactory:
    """As the gradient, for the rows with an index only, and these rows."""
    whole = _reduction_grad_kernel(scale)

    def kernel(k: KernelContext) -> Kernel:
        spread, xp, dtype = whole(k), k.xp, k.dtype("Tidx")

        def spread_rows(grad: Any, indices: Any, ids: Any, output_dim0: Any) -> Any:
            rows = xp.unique(indices)
            return spread(grad, indices, ids, output_dim0)[rows], rows.astype(dtype, copy=False)

        return spread_rows

    return kernel


def _gradient_v2_shape(c: InferenceContext) -> None:
    """Rows of an unknown number, and their indices."""
    grad, indices, ids = c.with_rank_at_least(c.input(0), 1), c.with_rank(c.input(1), 1), c.with_rank(c.input(2), 1)
    c.merge(indices, ids)
    c.with_rank(c.input(3), 0)
    c.set_output(0, c.concatenate(c.vector(c.unknown_dim()), c.subshape(grad, 1)))
    c.set_output(1, c.vector(c.unknown_dim()))


def _gradient(scale: str, *, with_count: bool) -> str:
    count = ", Tnumsegments:type", ", num:Tnumsegments", ", dnum:Tnumsegments", "\n      dnum = ZerosLike[T=$Tnumsegments](num)"
    more = count if with_count else ("", "", "", "")
    return f"""[T:{{half, float, double}}, Tidx:{{int32, int64}}, Tsegmentids:{{int32, int64}}{more[0]}](x:T, indices:Tidx, ids:Tsegmentids{more[1]}, dy:T) -> (dx:T, dindices:Tidx, dids:Tsegmentids{more[2]}) {{
      x_shape = Shape[T=$T](x)
      zero = {scalar("int32", 0)}
      dim0 = GatherV2[Taxis=int32, Tindices=int32, Tparams=int32](x_shape, zero, zero)
      dx = SparseSegment{scale}Grad[T=$T, Tidx=$Tidx, Tsegmentids=$Tsegmentids](dy, indices, ids, dim0)
      dindices = ZerosLike[T=$Tidx](indices)
      dids = ZerosLike[T=$Tsegmentids](ids){more[3]}
    }}"""


def _gradient_of_gradient(scale: str) -> str:
    """The gradient is linear in `grad`, and its transpose is the reduction itself."""
    return f"""[T:{{half, float, double}}, Tidx:{{int32, int64}}, Tsegmentids:{{int32, int64}}](grad:T, indices:Tidx, ids:Tsegmentids, dim0:int32, dz:T) -> (dgrad:T, dindices:Tidx, dids:Tsegmentids, ddim0:int32) {{
      grad_shape = Shape[T=$T](grad)
      zero = {scalar("int32", 0)}
      rows = GatherV2[Taxis=int32, Tindices=int32, Tparams=int32](grad_shape, zero, zero)
      dgrad = SparseSegment{scale}WithNumSegments[T=$T, Tidx=$Tidx, Tnumsegments=int32, Tsegmentids=$Tsegmentids](dz, indices, ids, rows)
      dindices = ZerosLike[T=$Tidx](indices)
      dids = ZerosLike[T=$Tsegmentids](ids)
      ddim0 = ZerosLike[T=int32](dim0)
    }}"""


def _sparse_segments(scale: str, summary: str, types: str = _FLOATS) -> None:
    """Register a sum divided by `scale`, its variant with a number of segments, and its gradient."""
    name = f"SparseSegment{scale}"
    rows = """
        data: [m, ...]
        indices: [n], rows of data
        segment_ids: [n], sorted, from 0 on"""
    define_op(
        name,
        f"""{summary}
        {rows}
        output: [last id + 1, ...]
        sparse_gradient: ignored.
        """,
        signature=f"{name}[T:{types}, {_SPARSE}",
        shape=sparse_segment_reduction_shape,
        kernel=_reduction(scale, with_count=False),
        gradient=_gradient(scale, with_count=False),
        examples=_EXAMPLES,
        failures=(Example([_X, [99], [0]]),),
    )
    define_op(
        f"{name}WithNumSegments",
        f"""{summary}
        {rows}
        num_segments: the number of segments, a scalar
        output: [num_segments, ...]
        sparse_gradient: ignored.
        """,
        signature=f"{name}WithNumSegments[T:{types}, {_SPARSE_NUM}",
        shape=sparse_segment_reduction_with_num_segments_shape,
        kernel=_reduction(scale, with_count=True),
        gradient=_gradient(scale, with_count=True),
        examples=(Example([_X, [0, 2, 1, 1], [0, 0, 1, 3], 5]),),
        failures=(Example([_X, [99], [0], 1]),),
    )
    define_op(
        f"{name}Grad",
        f"""The gradient of {name}: the gradient of a segment goes to its rows.

        grad: [segments, ...]
        indices: as of the reduction
        segment_ids: as of the reduction
        output_dim0: the number of rows of the data, a scalar
        output: [output_dim0, ...]
        """,
        signature=f"{name}Grad[T:{_FLOATS}, {_GRAD}",
        shape=sparse_segment_reduction_grad_shape,
        kernel=_reduction_grad_kernel(scale),
        gradient=_gradient_of_gradient(scale),
        examples=(Example([[[1.0, 2.0], [3.0, -4.0]], [0, 2, 1], [0, 0, 1], 3]),),
        failures=(Example([[[1.0, 2.0]], [99], [0], 1]),),
    )
    define_op(
        f"{name}GradV2",
        f"""The gradient of {name}, for the rows with an index only.

        grad: [segments, ...]
        indices: as of the reduction
        segment_ids: as of the reduction
        dense_output_dim0: the number of rows of the data, a scalar
        output: [m, ...]
        sorted_unique_indices: [m], the rows
        """,
        signature=f"{name}GradV2[T:{_FLOATS}, {_GRAD_V2}",
        shape=_gradient_v2_shape,
        kernel=_reduction_grad_v2_kernel(scale),
        gradient=no_registered_gradient("TensorFlow has no second derivative of sparse segments"),
        examples=(Example([[[1.0, 2.0], [3.0, -4.0]], [0, 2, 2], [0, 0, 1], 4], differentiable=False),),
        failures=(Example([[[1.0, 2.0]], [99], [0], 1]),),
    )


_sparse_segments("Sum", "The sum of the chosen rows of each segment; 0 for a segment without rows.", REAL)
_sparse_segments("Mean", "The mean of the chosen rows of each segment; 0 for a segment without rows.")
_sparse_segments("SqrtN", "The sum of the chosen rows of each segment, divided by the square root of their number.")
