"""Repeated shape inference of one node with some inputs hidden, to find dependencies.

Nothing is recorded while a graph is built. Hiding inputs one after the other finds those needed for a result, for every op and any shape
function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import msgspec

from graphcore.attrs import Array
from graphcore.errors import GraphError
from graphcore.graph.model.node import Node
from graphcore.graph.shapes.live_refiner import LiveContext
from graphcore.inference import DimensionHandle, HandleData, ShapeAndType, ShapeHandle

_MOST_ELEMENTS = 32
"""Of longer values the elements are not looked at one by one."""


class KnownPart(msgspec.Struct, frozen=True):
    """A fact that a shape function may use: rank or size of an input, its value, or an element of it."""

    kind: Literal["rank", "dimension", "held", "value", "element"]
    slot: int
    index: int = -1


class Result(msgspec.Struct, frozen=True, eq=False):
    """The result of a run: shapes and handle data by output; or the error."""

    shapes: tuple[ShapeHandle, ...]
    held: tuple[ShapeHandle | None, ...]
    context: ReplayContext
    error: GraphError | None = None


class ReplayContext(LiveContext):
    """The context of such a run: inputs have new handles, which identify the origins of dimensions."""

    __slots__ = ("_hidden", "_sizes", "copies", "places")

    def __init__(self, node: Node, hidden: frozenset[KnownPart], sizes: dict[KnownPart, int]) -> None:
        self._hidden = hidden
        self._sizes = sizes
        self.copies: dict[int, DimensionHandle] = {}
        self.places: dict[
            int, tuple[DimensionHandle, list[KnownPart]]
        ] = {}  # the handles themselves too: an id is unique only while its handle lives
        present = [_present_shape(node, slot) for slot in range(len(node.inputs))]
        super().__init__(node.graph.refiner, node, [self._copy(shape, "dimension", slot) for slot, shape in enumerate(present)])

    def evaluate_input(self, index: int) -> Array | None:
        """The constant value, unless it or a part of it is hidden."""
        if any(part.slot == index and part.kind in {"value", "element"} for part in self._hidden):
            return None
        tensor = self.node.inputs[index]
        return self.refiner.evaluate_constant_tensor(tensor.node, tensor.index)

    def evaluate_input_as_partial_shape(self, index: int) -> ShapeHandle | None:
        """The value as a shape, without hidden parts."""
        if KnownPart("value", index) in self._hidden:
            return None
        tensor = self.node.inputs[index]
        shape = self.refiner.constant_partial_shape(tensor.node, tensor.index)
        return None if shape is None else self._copy(shape, "element", index)

    def input_handle_shapes_and_types(self, index: int) -> HandleData | None:
        """The handle data, with new handles."""
        data = super().input_handle_shapes_and_types(index)
        return None if data is None else [ShapeAndType(self._copy(entry.shape, "held", index), entry.dtype) for entry in data]

    def places_of(self, dim: DimensionHandle) -> list[KnownPart]:
        """The positions of a dimension among the inputs, dimensions of shapes first."""
        entry = self.places.get(id(dim))
        return (
            []
            if entry is None
            else sorted(entry[1], key=lambda known_part: (known_part.kind != "dimension", known_part.slot, known_part.index))
        )

    def _copy(self, shape: ShapeHandle, kind: Literal["dimension", "held", "element"], slot: int) -> ShapeHandle:
        if shape.dims is None or (kind == "dimension" and KnownPart("rank", slot) in self._hidden):
            return ShapeHandle()
        dims: list[DimensionHandle] = []
        for index, dim in enumerate(shape.dims):
            part = KnownPart(kind, slot, index)
            if part in self._hidden:
                copied = DimensionHandle()
            elif part in self._sizes:
                copied = DimensionHandle(self._sizes[part])
            else:
                copied = self.copies.setdefault(id(dim), DimensionHandle(dim.value, dim.origin))
            self.places.setdefault(id(copied), (copied, []))[1].append(part)
            dims.append(copied)
        return ShapeHandle(tuple(dims))


def _present_shape(node: Node, slot: int) -> ShapeHandle:
    tensor = node.inputs[slot]
    handles = tensor.node.output_handles
    return handles[tensor.index] if tensor.index < len(handles) else ShapeHandle()


def replay(node: Node, hidden: Iterable[KnownPart] = (), sizes: dict[KnownPart, int] | None = None) -> Result:
    """Infer `node` again without changing it.

    Args:
        node: the node.
        hidden: the facts to hide.
        sizes: dimensions with other sizes.
    """
    context = ReplayContext(node, frozenset(hidden), sizes or {})
    error: GraphError | None = None
    try:
        node.graph.refiner.infer(context)
    except GraphError as raised:
        error = raised
    shapes = tuple([ShapeHandle() if handle is None else handle for handle in context.outputs])
    data = context.all_output_handles or {}
    held = tuple([data[index][0].shape if data.get(index) else None for index in range(len(shapes))])
    return Result(shapes, held, context, error)


def needed(node: Node, holds: Callable[[Result], bool]) -> list[KnownPart]:
    """A smallest set of facts about the inputs that implies the result recognised by `holds`.

    Args:
        node: the node.
        holds: true of the result to be explained.
    """
    hidden: set[KnownPart] = set()

    def try_to_hide(part: KnownPart) -> bool:
        if not holds(replay(node, hidden | {part})):
            return False
        hidden.add(part)
        return True

    def look_at(slots: Sequence[int], facts: Callable[[int], list[KnownPart]], one: Callable[[int], None]) -> None:
        """Hide the facts of several slots at once if none is needed.

        Otherwise look at each half, and at last at `one` slot.
        """
        if len(slots) == 1:
            one(slots[0])
            return
        together = {part for slot in slots for part in facts(slot)}
        if not together or holds(replay(node, hidden | together)):
            hidden.update(together)
            return
        half = len(slots) // 2
        look_at(slots[:half], facts, one)
        look_at(slots[half:], facts, one)

    def facts_of_input(slot: int) -> list[KnownPart]:
        return [KnownPart("value", slot), KnownPart("rank", slot)]

    def look_at_input(slot: int) -> None:
        rank, value = KnownPart("rank", slot), KnownPart("value", slot)
        if not try_to_hide(value):
            parts.extend(_needed_elements(node, slot, try_to_hide) or [value])
        dims = _present_shape(node, slot).dims
        if dims is None or try_to_hide(rank):
            return
        sizes = [KnownPart("dimension", slot, i) for i, dim in enumerate(dims) if dim.value >= 0]
        # Shape functions check the first facts first; hidden last, these are kept.
        parts.extend([part for part in reversed(sizes) if not try_to_hide(part)][::-1] or [rank])

    def held_facts(slot: int) -> list[KnownPart]:
        tensor = node.inputs[slot]
        data = (tensor.node.handle_data or {}).get(tensor.index)
        dims = data[0].shape.dims if data else None
        return [KnownPart("held", slot, i) for i, dim in enumerate(dims or ()) if dim.value >= 0]

    def look_at_held(slot: int) -> None:
        parts.extend([part for part in held_facts(slot) if not try_to_hide(part)])

    parts: list[KnownPart] = []
    slots = range(len(node.inputs))
    if slots:
        look_at(slots, facts_of_input, look_at_input)
        look_at(slots, held_facts, look_at_held)
    return parts


def _needed_elements(node: Node, slot: int, try_to_hide: Callable[[KnownPart], bool]) -> list[KnownPart]:
    tensor = node.inputs[slot]
    try:
        partial = node.graph.refiner.constant_partial_shape(tensor.node, tensor.index)
    except GraphError:
        return []  # not the value of a shape: it is treated as a whole
    if partial is None or partial.dims is None or len(partial.dims) > _MOST_ELEMENTS:
        return []
    elements = [KnownPart("element", slot, i) for i in range(len(partial.dims))]
    return [part for part in reversed(elements) if not try_to_hide(part)][::-1]
