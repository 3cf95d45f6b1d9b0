"""Tensors as sets: distinct elements, differences."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.inference.common_shape_fns import unique_shape
from graphcore.ops.block import NO_GRADIENT, Example, InferenceContext, Kernel, KernelContext, op
from graphcore.ops.type_sets import INDEX
from graphcore.registry import KernelFactory

_X: Final = [1, 1, 2, 4, 4, 4, 7, 8, 8]


def _first_seen(x: Any) -> tuple[Any, Any, Any]:
    """The distinct elements in the order in which they are first seen, which of them each element is, and how often each occurs."""
    values, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    order = first.argsort()
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return values[order], rank[inverse], counts[order]


def _unique(outputs: int) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        dtype = k.dtype("out_idx")

        def unique(x: Any) -> Any:
            values, index, counts = _first_seen(x)
            return (values, index.astype(dtype), counts.astype(dtype))[:outputs]

        return unique

    return kernel


@op
class Unique:
    """The distinct elements of a vector in the order in which they are first seen.

    x: [n]
    y: the distinct elements
    idx: [n], x[i] = y[idx[i]]
    """

    signature = f"Unique[T:type, out_idx:{INDEX} = int32](x:T) -> (y:T, idx:out_idx)"
    shape = unique_shape
    kernel = _unique(2)
    gradient = NO_GRADIENT
    examples = (Example([_X], outputs=[[1, 2, 4, 7, 8], [0, 0, 1, 2, 2, 2, 3, 4, 4]]), Example([[3, 1, 3]], outputs=[[3, 1], [0, 1, 0]]))


@op
class UniqueWithCounts:
    """The distinct elements of a vector in the order in which they are first seen, and how often each occurs.

    x: [n]
    y: the distinct elements
    idx: [n], x[i] = y[idx[i]]
    count: how often each element of y occurs in x
    """

    signature = f"UniqueWithCounts[T:type, out_idx:{INDEX} = int32](x:T) -> (y:T, idx:out_idx, count:out_idx)"
    shape = unique_shape
    kernel = _unique(3)
    gradient = NO_GRADIENT
    examples = (Example([_X], outputs=[[1, 2, 4, 7, 8], [0, 0, 1, 2, 2, 2, 3, 4, 4], [2, 1, 3, 1, 2]]),)


@op
class ListDiff:
    """The elements of x that are not in y, in their order, repeated as in x.

    x: [n]
    y: what is taken away
    out: what is left
    idx: where in x each element of out is
    """

    signature = f"ListDiff[T:type, out_idx:{INDEX} = int32](x:T, y:T) -> (out:T, idx:out_idx)"
    gradient = NO_GRADIENT
    examples = (Example([[1, 2, 3, 4, 5, 6], [1, 3, 5]], outputs=[[2, 4, 6], [1, 3, 5]]),)

    def shape(c: InferenceContext) -> None:
        c.with_rank(c.input(0), 1)
        c.with_rank(c.input(1), 1)
        left = c.vector(c.unknown_dim())
        c.set_output(0, left)
        c.set_output(1, left)

    def kernel(k: KernelContext) -> Kernel:
        isin, dtype = k.xp.isin, k.dtype("out_idx")

        def difference(x: Any, y: Any) -> Any:
            (index,) = (~isin(x, y)).nonzero()
            return x[index], index.astype(dtype)

        return difference
