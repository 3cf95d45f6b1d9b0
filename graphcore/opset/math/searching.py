"""Searches: in sorted rows, between boundaries, by rank, and of coordinates."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import unchanged_shape
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.families import Elementwise, Total
from graphcore.opset.framework.gradient_text import scalar
from graphcore.opset.framework.kernels import ints, invalid, one_int
from graphcore.opset.framework.type_sets import INDEX, INTEGER, REAL
from graphcore.opset.math.sorting import sortable
from graphcore.registry import KernelFactory

_SORTED: Final = [[1.0, 2.0, 2.0, 5.0], [0.0, 1.0, 7.0, 8.0]]
_VALUES: Final = [[2.0, 0.0, 9.0], [1.0, 7.5, -1.0]]


def _bound_shape(c: InferenceContext) -> None:
    rows, values = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 2)
    c.merge_dim(c.dim(rows, 0), c.dim(values, 0))
    c.set_output(0, c.input(1))


def _bound(side: str) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        xp, dtype = k.xp, k.dtype("out_type")

        def search(rows: Any, values: Any) -> Any:
            if rows.ndim != 2 or values.ndim != 2 or len(rows) != len(values):
                raise invalid(k, f"required two matrices of equally many rows, got shapes {list(rows.shape)} and {list(values.shape)}")
            result = xp.zeros(values.shape, dtype)
            for i in range(len(rows)):
                result[i] = rows[i].searchsorted(values[i], side)
            return result

        return search

    return kernel


@op
class LowerBound(Total):
    """The number of smaller elements in the sorted row of each value.

    sorted_inputs: [rows, n], each row sorted
    values: [rows, m]
    """

    pure = True
    signature = f"LowerBound[T:type, out_type:{INDEX} = int32](sorted_inputs:T, values:T) -> (output:out_type)"
    shape = _bound_shape
    kernel = _bound("left")
    gradient = NO_GRADIENT
    examples = (Example([_SORTED, _VALUES], outputs=[[[1, 0, 4], [1, 3, 0]]]),)


@op
class UpperBound(Total):
    """The number of elements not larger in the sorted row of each value.

    sorted_inputs: [rows, n], each row sorted
    values: [rows, m]
    """

    pure = True
    signature = f"UpperBound[T:type, out_type:{INDEX} = int32](sorted_inputs:T, values:T) -> (output:out_type)"
    shape = _bound_shape
    kernel = _bound("right")
    gradient = NO_GRADIENT
    examples = (Example([_SORTED, _VALUES], outputs=[[[3, 0, 4], [2, 3, 0]]]),)


@op
class Bucketize(Elementwise):
    """The number of boundaries not larger than each element.

    boundaries: sorted.
    """

    pure = True
    signature = "Bucketize[T:{int32, int64, float, double}, boundaries:list(float)](input:T) -> (output:int32)"
    shape = unchanged_shape
    gradient = NO_GRADIENT
    examples = (Example([[[-5.0, 10000.0], [150.0, 10.0]]], {"boundaries": [0.0, 10.0, 100.0]}, outputs=[[[0, 3], [3, 2]]]),)

    def kernel(k: KernelContext) -> Kernel:
        xp, limits = k.xp, k.attr("boundaries")
        assert isinstance(limits, tuple)
        boundaries = np.array(limits, np.float32)
        if (boundaries[1:] < boundaries[:-1]).any():
            raise invalid(k, f"Expected sorted boundaries, got {list(limits)}")
        edges = xp.asarray(boundaries)
        return lambda x: xp.searchsorted(edges, x.reshape(-1), "right").astype(np.int32).reshape(x.shape)


@op
class NthElement:
    """The n-th smallest element of each row, counted from 0.

    n: a scalar
    reverse: the n-th largest.
    """

    pure = True
    signature = f"NthElement[reverse:bool = false, T:{REAL}](input:T, n:int32) -> (values:T)"
    cost = "sort"
    # Equal elements share the gradient.
    gradient = f"""[reverse:bool, T:{{half, float, double}}](input:T, n:int32, dy:T) -> (dx:T, dn:int32) {{
      last = {scalar("int32", -1)}
      y = NthElement[T=$T, reverse=$reverse](input, n)
      y_column = ExpandDims[T=$T](y, last)
      is_equal = Equal[T=$T](input, y_column)
      equal = Cast[SrcT=bool, DstT=$T](is_equal)
      count = Sum[T=$T, Tidx=int32, keep_dims=true](equal, last)
      share = Div[T=$T](equal, count)
      dy_column = ExpandDims[T=$T](dy, last)
      dx = Mul[T=$T](share, dy_column)
      dn = ZerosLike[T=int32](n)
    }}"""
    examples = (
        Example([[[3.0, 1.0, 2.0], [9.0, 7.0, 8.0]], 1], outputs=[[2.0, 8.0]]),
        Example([[4, 1, 5], 0], {"reverse": True}, outputs=[5]),
    )
    failures = (Example([[[3.0, 1.0, 2.0], [9.0, 7.0, 8.0]], -1]),)

    def shape(c: InferenceContext) -> None:
        in_shape = c.with_rank_at_least(c.input(0), 1)
        c.with_rank(c.input(1), 0)
        c.set_output(0, c.subshape(in_shape, 0, -1))

    def kernel(k: KernelContext) -> Kernel:
        xp, reverse = k.xp, k.attr("reverse")

        def nth(x: Any, n: Any) -> Any:
            at = one_int(k, n)
            if x.ndim < 1 or not 0 <= at < x.shape[-1]:
                raise invalid(k, f"Input must have at least n+1 = {at + 1} columns, got shape {list(x.shape)}")
            return xp.sort(sortable(x))[..., x.shape[-1] - 1 - at if reverse else at].astype(x.dtype, copy=False)

        return nth


@op
class UnravelIndex:
    """The coordinates of flat indices.

    indices: a scalar or vector
    dims: the sizes of the tensor
    output: [rank] or [rank, n]
    """

    pure = True
    signature = f"UnravelIndex[Tidx:{INDEX} = int32](indices:Tidx, dims:Tidx) -> (output:Tidx)"
    gradient = NO_GRADIENT
    examples = (Example([[2, 5, 7], [3, 3]], outputs=[[[0, 1, 2], [2, 2, 1]]]), Example([5, [3, 3]], outputs=[[1, 2]]))
    failures = (Example([[-1, -1, -1], [3, 3]]),)

    def shape(c: InferenceContext) -> None:
        indices, dims = c.input(0), c.with_rank(c.input(1), 1)
        if c.rank(indices) == 0:
            c.set_output(0, dims)
        elif c.rank(indices) == 1:
            c.set_output(0, c.matrix(c.dim(dims, 0), c.dim(indices, 0)))
        else:
            c.set_output(0, c.matrix(c.dim(dims, 0), c.num_elements(indices)) if c.rank_known(indices) else c.unknown_shape())

    def kernel(k: KernelContext) -> Kernel:
        xp, dtype = k.xp, k.dtype("Tidx")

        def unravel(indices: Any, dims: Any) -> Any:
            sizes = ints(dims)
            if indices.ndim > 1:
                raise invalid(k, "The indices can only be scalar or vector.")
            if 0 in sizes:
                raise invalid(
                    k, f"dims[0] is zero: {list(sizes)}" if not sizes[0] else f"Input dims cannot contain a dim of zero: {list(sizes)}"
                )
            total = int(np.prod(sizes, dtype=np.int64))
            if indices.size and not (indices.min() >= 0 and indices.max() < total):
                raise invalid(k, f"index is out of bound as with dims {list(sizes)}")
            steps = [int(np.prod(sizes[i + 1 :], dtype=np.int64)) for i in range(len(sizes))]
            return xp.stack([(indices // step) % size for step, size in zip(steps, sizes, strict=True)]).astype(dtype)

        return unravel


@op
class PopulationCount(Elementwise):
    """The number of 1 bits of each number."""

    pure = True
    signature = f"PopulationCount[T:{INTEGER}](x:T) -> (y:uint8)"
    shape = unchanged_shape
    gradient = NO_GRADIENT
    examples = (Example([[0, 1, 7, -1]], outputs=[[0, 1, 3, 32]]), Example([np.array([255, 128], np.uint8)], outputs=[[8, 1]]))

    def kernel(k: KernelContext) -> Kernel:
        dtype, count = k.dtype("T"), k.xp.bitwise_count
        unsigned = np.dtype(f"u{dtype.itemsize}")
        return lambda x: count(x.astype(dtype, copy=False).view(unsigned)).astype(np.uint8)
