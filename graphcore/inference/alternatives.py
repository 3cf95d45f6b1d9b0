"""Shapes common to alternatives: to the branches of a conditional, to the iterations of a loop."""

from __future__ import annotations

from collections.abc import Sequence

from graphcore.inference.handles import DimensionHandle, ShapeHandle


def common_shape(shapes: Sequence[ShapeHandle]) -> ShapeHandle:
    """The most specific shape that all alternatives have, shared unknown dimensions included.

    This is the first shape itself if the others agree with it.
    """
    out = shapes[0]
    for shape in shapes[1:]:
        if out is shape:
            continue
        if out.dims is None or shape.dims is None or len(shape.dims) != len(out.dims):
            return ShapeHandle()
        pairs = list(zip(out.dims, shape.dims, strict=True))
        dims = tuple([a if a is b or (a.value == b.value and (a.value >= 0 or _same_name(a, b))) else DimensionHandle() for a, b in pairs])
        if any(a is not b for a, b in zip(out.dims, dims, strict=True)):
            out = ShapeHandle(dims)
    return out


def _same_name(a: DimensionHandle, b: DimensionHandle) -> bool:
    """True iff both unknown dimensions have the same name."""
    return a.origin is not None and a.origin == b.origin


def relaxed_shape(shape: ShapeHandle, again: ShapeHandle, first: Sequence[ShapeHandle]) -> ShapeHandle:
    """Relax a loop variable's shape: `shape` if `again` agrees with it, else their common part.

    Args:
        shape: the shape so far.
        again: the shape that comes around the loop.
        first: the shapes of the first iteration. Their unknown dimensions have a fixed size; other unknown dimensions may have any size.
    """
    if shape.dims is None or shape is again:
        return shape
    if again.dims is None or len(again.dims) != len(shape.dims):
        return ShapeHandle()
    theirs = {id(dim) for shape in first for dim in shape.dims or ()}
    dims = tuple([_relaxed_dim(a, b, id(a) in theirs) for a, b in zip(shape.dims, again.dims, strict=True)])
    return shape if all(a is b for a, b in zip(shape.dims, dims, strict=True)) else ShapeHandle(dims)


def _relaxed_dim(dim: DimensionHandle, again: DimensionHandle, is_certain: bool) -> DimensionHandle:
    if dim is again:
        return dim
    holds = dim.value == again.value if dim.value >= 0 else not is_certain
    return dim if holds else DimensionHandle()
