"""What is known of a loop variable: the shape of its first value, less what other iterations contradict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from graphcore.graph.node import Node
from graphcore.graph.order import is_back_edge
from graphcore.inference import HandleData, ShapeAndType
from graphcore.inference.alternatives import relaxed_shape

if TYPE_CHECKING:
    from graphcore.graph.reading import GraphReader

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


def relaxed_data(known: HandleData, again: HandleData | None, first: Sequence[HandleData]) -> HandleData:
    """What a handle still points to if later iterations have `again`; an empty list if nothing is known of that."""
    if again is None or len(again) != len(known):
        return []
    shapes = [relaxed_shape(a.shape, b.shape, [entry.shape for data in first for entry in data]) for a, b in zip(known, again, strict=True)]
    if any(a.dtype is not b.dtype for a, b in zip(known, again, strict=True)):
        return []
    return [old if shape is old.shape else ShapeAndType(shape, old.dtype) for shape, old in zip(shapes, known, strict=True)]


def loops_of(graph: GraphReader, heads: Iterable[Node]) -> dict[Node, list[Node]]:
    """The nodes that lie on a loop, each with the heads of the loops it lies on."""
    found: dict[Node, list[Node]] = {}
    for head in heads:
        if head not in graph:
            continue
        back = [tensor.node for tensor in head.inputs if is_back_edge(tensor.node.op, head.op) and tensor in graph]
        for node in _between(graph, head, back):
            found.setdefault(node, []).append(head)
    return found


def _between(graph: GraphReader, head: Node, back: list[Node]) -> set[Node]:
    """What depends on `head` and is needed for `back`."""
    before = {head, *back}
    pending = [*back]
    while pending:
        fresh = [tensor.node for tensor in pending.pop().inputs if tensor.node.rank > head.rank and tensor.node not in before]
        before.update(fresh)
        pending += fresh
    after = {head}
    pending = [head]
    while pending:
        fresh = [other for other in graph.edge_store.consumers_of(pending.pop()) if other in before and other not in after]
        after.update(fresh)
        pending += fresh
    return after - {head}
