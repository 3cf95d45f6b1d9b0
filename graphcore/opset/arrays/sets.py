"""Tensors as sets: distinct elements, differences."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.errors import InvalidArgumentError
from graphcore.inference.shape_fns.common_shape_fns import unique_shape
from graphcore.opset.framework.block import NO_GRADIENT, Example, InferenceContext, Kernel, KernelContext, op
from graphcore.opset.framework.families import Total
from graphcore.opset.framework.kernels import in_proportion, invalid, normal_axis
from graphcore.opset.framework.type_sets import INDEX
from graphcore.registry import KernelFactory
from graphcore.traits import FailsOn

_NARROW: Final = 2
_WITH_INDICES: Final = 24
"""Elements of one byte, each with two indices of eight."""
_X: Final = [1, 1, 2, 4, 4, 4, 7, 8, 8]


def _first_seen(xp: Any, x: Any) -> tuple[Any, Any, Any]:
    """The distinct elements in order of first occurrence, the index of each element, and the counts. Each NaN is distinct."""
    if x.dtype.kind in "fcV":  # numbers of 16 bits are compared as floats: NumPy does not sort those with NaN
        wide = x.astype(np.float32) if x.dtype.itemsize == _NARROW else x
        _, first, inverse, counts = xp.unique(wide, return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
    else:
        _, first, inverse, counts = xp.unique(x, return_index=True, return_inverse=True, return_counts=True)
    order = first.argsort()
    rank = xp.empty_like(order)
    rank[order] = xp.arange(len(order))
    return x[first[order]], rank[inverse], counts[order]


def _unique(outputs: int) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        xp, dtype = k.xp, k.dtype("out_idx")

        def unique(x: Any) -> Any:
            if x.ndim != 1:
                raise invalid(k, f"unique expects a 1D vector, got shape {list(x.shape)}")
            values, index, counts = _first_seen(xp, x)
            return (values, index.astype(dtype), counts.astype(dtype))[:outputs]

        return unique

    return kernel


@op
class Unique(Total):
    """The distinct elements of a vector in order of first occurrence.

    x: [n]
    y: the distinct elements
    idx: [n], x[i] = y[idx[i]]
    """

    pure = True
    most_bytes = in_proportion(_WITH_INDICES)
    signature = f"Unique[T:type, out_idx:{INDEX} = int32](x:T) -> (y:T, idx:out_idx)"
    shape = unique_shape
    cost = "sort"
    kernel = _unique(2)
    gradient = NO_GRADIENT
    examples = (Example([_X], outputs=[[1, 2, 4, 7, 8], [0, 0, 1, 2, 2, 2, 3, 4, 4]]), Example([[3, 1, 3]], outputs=[[3, 1], [0, 1, 0]]))


@op
class UniqueWithCounts:
    """The distinct elements of a vector in order of first occurrence, with counts.

    x: [n]
    y: the distinct elements
    idx: [n], x[i] = y[idx[i]]
    count: the count of each element of y in x
    """

    pure = True
    most_bytes = in_proportion(_WITH_INDICES)
    signature = f"UniqueWithCounts[T:type, out_idx:{INDEX} = int32](x:T) -> (y:T, idx:out_idx, count:out_idx)"
    shape = unique_shape
    cost = "sort"
    kernel = _unique(3)
    gradient = NO_GRADIENT
    examples = (Example([_X], outputs=[[1, 2, 4, 7, 8], [0, 0, 1, 2, 2, 2, 3, 4, 4], [2, 1, 3, 1, 2]]),)
    failures = (Example([0]),)


@op
class ListDiff(Total):
    """The elements of x that are not in y, in their order, repeated as in x.

    x: [n]
    y: the elements to remove
    out: the remaining elements
    idx: the index in x of each element of out
    """

    pure = True
    most_bytes = in_proportion(_WITH_INDICES)
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


def _unique_along_shape(c: InferenceContext) -> None:
    in_shape, axis = c.input(0), c.input_tensor(1)
    index = c.vector(c.unknown_dim())
    output = c.unknown_shape_of_rank(c.rank(in_shape))
    if axis is not None and axis.size > 1:
        raise InvalidArgumentError("axis must have at most one element", op=c.op, node=c.node_name)
    if axis is not None and axis.size == 1:
        at = int(axis.reshape(-1)[0])
        rank = c.rank(in_shape)
        if rank >= 0 and not -rank <= at < rank:
            raise InvalidArgumentError(f"axis expected to be in the range [{-rank}, {rank}), got {at}", op=c.op, node=c.node_name)
        if rank >= 0:
            output = c.replace_dim(in_shape, at, c.unknown_dim())
            index = c.vector(c.dim(in_shape, at))
    elif axis is not None:
        in_shape = c.with_rank(in_shape, 1)
        output, index = c.vector(c.unknown_dim()), in_shape
    c.set_output(0, output)
    c.set_output(1, index)
    if c.num_outputs == 3:
        c.set_output(2, c.vector(c.unknown_dim()))


def _unique_along(outputs: int) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        xp, dtype = k.xp, k.dtype("out_idx")

        def unique(x: Any, axis: Any) -> Any:
            if axis.size > 1:
                raise invalid(k, f"axis must have at most one element, got shape {list(axis.shape)}")
            if axis.size == 0 and x.ndim != 1:
                raise invalid(k, f"without an axis the input must be a vector, got shape {list(x.shape)}")
            at = normal_axis(k, int(axis.reshape(-1)[0]), x.ndim) if axis.size else 0
            rows = xp.moveaxis(x, at, 0).reshape(x.shape[at], x.size // max(x.shape[at], 1))
            _, index, counts = _first_seen(np, _row_numbers(rows))
            first = np.zeros(len(counts), np.int64)
            first[index[::-1]] = np.arange(len(index))[::-1]
            return (x.take(xp.asarray(first), at), xp.asarray(index.astype(dtype)), xp.asarray(counts.astype(dtype)))[:outputs]

        return unique

    return kernel


def _row_numbers(rows: Any) -> Any:
    """A number for each row; equal rows have the same one."""
    numbers: dict[tuple[Any, ...], int] = {}
    return np.array([numbers.setdefault(tuple(row), len(numbers)) for row in rows.tolist()], np.int64)


_V2_ATTRS: Final = f"T:type, Taxis:{INDEX} = int64, out_idx:{INDEX} = int32"
_ROWS: Final = [[1, 0, 0], [1, 0, 0], [2, 0, 0]]


@op
class UniqueV2:
    """The distinct slices of a tensor along an axis, in order of first occurrence.

    x: the tensor
    axis: a vector with the axis; an empty one for a vector x
    y: the distinct slices
    idx: the index in y of each slice of x
    """

    pure = True
    most_bytes = in_proportion(_WITH_INDICES)
    signature = f"UniqueV2[{_V2_ATTRS}](x:T, axis:Taxis) -> (y:T, idx:out_idx)"
    shape = _unique_along_shape
    cost = "sort"
    can_fail = FailsOn(values=("axis",))
    kernel = _unique_along(2)
    gradient = NO_GRADIENT
    examples = (
        Example([_X, np.zeros(0, np.int64)], outputs=[[1, 2, 4, 7, 8], [0, 0, 1, 2, 2, 2, 3, 4, 4]]),
        Example([_ROWS, np.array([0])], outputs=[[[1, 0, 0], [2, 0, 0]], [0, 0, 1]]),
        Example([_ROWS, np.array([-1])], outputs=[[[1, 0], [1, 0], [2, 0]], [0, 1, 1]]),
    )
    failures = (Example([_ROWS, np.array([2])]),)


@op
class UniqueWithCountsV2:
    """The distinct slices of a tensor along an axis, in order of first occurrence, with counts.

    x: the tensor
    axis: a vector with the axis; an empty one for a vector x
    y: the distinct slices
    idx: the index in y of each slice of x
    count: the count of each slice of y in x
    """

    pure = True
    most_bytes = in_proportion(_WITH_INDICES)
    signature = f"UniqueWithCountsV2[{_V2_ATTRS}](x:T, axis:Taxis) -> (y:T, idx:out_idx, count:out_idx)"
    shape = _unique_along_shape
    cost = "sort"
    can_fail = FailsOn(values=("axis",))
    kernel = _unique_along(3)
    gradient = NO_GRADIENT
    examples = (
        Example([_X, np.zeros(0, np.int64)], outputs=[[1, 2, 4, 7, 8], [0, 0, 1, 2, 2, 2, 3, 4, 4], [2, 1, 3, 1, 2]]),
        Example([_ROWS, np.array([0])], outputs=[[[1, 0, 0], [2, 0, 0]], [0, 0, 1], [2, 1]]),
    )
    failures = (Example([_ROWS, np.array([2])]),)
