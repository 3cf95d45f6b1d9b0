"""Comparisons of static shapes."""

from __future__ import annotations

from graphcore.graph import Tensor
from graphcore.inference import DimensionHandle, ShapeHandle


def handle_of(tensor: Tensor) -> ShapeHandle:
    """The shape handle of `tensor`."""
    return tensor.node.output_handles[tensor.index]


def known_sizes(tensor: Tensor) -> list[int | None] | None:
    """The known sizes, None for an unknown rank."""
    dims = handle_of(tensor).dims
    return None if dims is None else [dim.value if dim.value >= 0 else None for dim in dims]


def _equal(a: DimensionHandle, b: DimensionHandle) -> bool:
    return a is b or (a.value >= 0 and a.value == b.value)


def same_shape(a: Tensor, b: Tensor) -> bool:
    """True iff both certainly have the same shape, with identical unknown sizes."""
    first, second = handle_of(a), handle_of(b)
    if first.dims is None or second.dims is None:
        return first is second
    return len(first.dims) == len(second.dims) and all(_equal(x, y) for x, y in zip(first.dims, second.dims, strict=True))


def broadcast_axes(a: ShapeHandle, b: ShapeHandle) -> tuple[list[int], list[int]] | None:
    """The axes over which the gradients of `a` and `b` are summed after broadcasting; None if unknown.

    An unknown axis that matters only at size 1 does not make them unknown: summing such an axis changes nothing.
    """
    first, second = a.dims, b.dims
    if first is None or second is None:
        return None
    rank = max(len(first), len(second))
    result: tuple[list[int], list[int]] = ([], [])
    for axis in range(rank):
        x = first[axis - rank] if axis >= rank - len(first) else None
        y = second[axis - rank] if axis >= rank - len(second) else None
        if x is None or y is None:
            result[0 if x is None else 1].append(axis)
        elif _equal(x, y):
            continue
        elif x.value == 1 and y.value >= 0:
            result[0].append(axis)
        elif y.value == 1 and x.value >= 0:
            result[1].append(axis)
        elif 1 in (x.value, y.value):
            result[0 if x.value == 1 else 1].append(axis)
        else:
            return None
    return result
