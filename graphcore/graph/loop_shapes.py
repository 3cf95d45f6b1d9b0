"""What is known of a loop variable: the shape of its first value, less what other iterations contradict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from graphcore.graph.node import Node
from graphcore.graph.order import is_back_edge
from graphcore.inference import DimensionHandle, HandleData, ShapeAndType, ShapeHandle

_ENTRIES: Final = frozenset({"Enter", "RefEnter"})
LOOP_HEADS: Final = frozenset({"Merge", "RefMerge"})
"""Where values come around a loop, or two branches meet."""


def enters_loop(node: Node) -> bool:
    """True iff the node takes a value into a loop: into the first iteration, as it is."""
    return node.op in _ENTRIES


def is_loop_head(node: Node) -> bool:
    """True iff values come around a loop into `node`, or are awaited from there."""
    return node.op in LOOP_HEADS and len(forward_slots(node)) < len(node.inputs)


def forward_slots(node: Node) -> list[int]:
    """The inputs of a Merge that do not come around a loop; all if none of them does not."""
    slots = [slot for slot, tensor in enumerate(node.inputs) if tensor.node.id >= 0 and not is_back_edge(tensor.node.op, node.op)]
    return slots or list(range(len(node.inputs)))


def common_shape(shapes: Sequence[ShapeHandle]) -> ShapeHandle:
    """What is the same in all of them, the same unknown dimensions included: the first itself if it differs nowhere."""
    out = shapes[0]
    for shape in shapes[1:]:
        if out is shape:
            continue
        if out.dims is None or shape.dims is None or len(shape.dims) != len(out.dims):
            return ShapeHandle()
        pairs = list(zip(out.dims, shape.dims, strict=True))
        dims = tuple([a if a is b or (a.value == b.value and a.value >= 0) else DimensionHandle() for a, b in pairs])
        if any(a is not b for a, b in zip(out.dims, dims, strict=True)):
            out = ShapeHandle(dims)
    return out


def relaxed_shape(known: ShapeHandle, again: ShapeHandle, first: Sequence[ShapeHandle]) -> ShapeHandle:
    """`known` itself if `again`, which comes around the loop, does not contradict it; else what is left of it.

    Args:
        known: what was known so far.
        again: a later value.
        first: the shapes of the first iteration. An unknown dimension of theirs is a certain number; one that is not theirs was made
            here and stands for any.
    """
    if known.dims is None or known is again:
        return known
    if again.dims is None or len(again.dims) != len(known.dims):
        return ShapeHandle()
    theirs = {id(dim) for shape in first for dim in shape.dims or ()}
    dims = tuple([_relaxed_dim(a, b, id(a) in theirs) for a, b in zip(known.dims, again.dims, strict=True)])
    return known if all(a is b for a, b in zip(known.dims, dims, strict=True)) else ShapeHandle(dims)


def _relaxed_dim(known: DimensionHandle, again: DimensionHandle, is_certain: bool) -> DimensionHandle:
    if known is again:
        return known
    holds = known.value == again.value if known.value >= 0 else not is_certain
    return known if holds else DimensionHandle()


def relaxed_data(known: HandleData, again: HandleData | None, first: Sequence[HandleData]) -> HandleData:
    """What a handle still points to if later iterations have `again`; an empty list if nothing is known of that."""
    if again is None or len(again) != len(known):
        return []
    shapes = [relaxed_shape(a.shape, b.shape, [entry.shape for data in first for entry in data]) for a, b in zip(known, again, strict=True)]
    if any(a.dtype is not b.dtype for a, b in zip(known, again, strict=True)):
        return []
    return [old if shape is old.shape else ShapeAndType(shape, old.dtype) for shape, old in zip(shapes, known, strict=True)]
