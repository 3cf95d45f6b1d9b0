"""The sources of elements of computed values, by the rules for partial values."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from graphcore.graph.model.node import Tensor
from graphcore.inference import DimensionHandle, ShapeHandle
from graphcore.inference.partial_types import MAX_ITEMS, PartialValue, Rule, ValueView
from graphcore.inference.partial_values import partial_value


class Element(msgspec.Struct, frozen=True):
    """A part of an input: an element of its value, a dimension, or its rank."""

    kind: Literal["element", "dimension", "rank"]
    slot: int
    index: int = -1


def element_sources(tensor: Tensor, index: int) -> list[Element] | None:
    """The sources of element `index` of the value of `tensor` (0 for a scalar), None without a rule."""
    node = tensor.node
    rule = node.registration.traits.partial_rule
    if rule is None:
        return None
    marks: dict[int, tuple[DimensionHandle, Element]] = {}
    refiner = node.graph.refiner

    def mark(value: int, element: Element) -> DimensionHandle:
        dim = DimensionHandle(value)
        marks[id(dim)] = dim, element
        return dim

    def shape_of(producer: Any, output: int) -> ShapeHandle:
        shape = refiner.output_shape(producer, output)
        slot = next((i for i, other in enumerate(node.inputs) if other.node is producer and other.index == output), None)
        if slot is None or producer is node or shape.dims is None or rule.reads_values:
            return shape
        return ShapeHandle(tuple([mark(dim.value, Element("dimension", slot, i)) for i, dim in enumerate(shape.dims)]))

    values: dict[tuple[int, int], PartialValue | None] = {}
    for slot, other in enumerate(node.inputs):
        parts = (
            partial_value(other.node, other.index, refiner.output_shape, refiner.evaluate_constant_tensor) if rule.reads_values else None
        )
        if parts is None or len(parts.items) > MAX_ITEMS:
            continue
        items = [mark(item if isinstance(item, int) else item.value, Element("element", slot, i)) for i, item in enumerate(parts.items)]
        values[id(other.node), other.index] = PartialValue(tuple(items), parts.is_scalar)
    result = rule.apply(ValueView(node, tensor.index, values, shape_of, refiner.evaluate_constant_tensor))
    if rule.reads_rank:
        return [Element("rank", 0)]
    position = max(index, 0)
    if result is None or position >= len(result.items):
        return None
    item = result.items[position]
    hit = marks.get(id(item))
    if hit is not None:
        return [hit[1]]
    return _operands(rule, [element for _, element in marks.values()], position, len(result.items))


def _operands(rule: Rule, elements: list[Element], position: int, count: int) -> list[Element]:
    """The operand elements of a computed one: those at its position for elementwise ops, else all."""
    if rule.combines:
        return elements
    lengths = {slot: sum(element.slot == slot for element in elements) for slot in {element.slot for element in elements}}
    return [element for element in elements if lengths[element.slot] < count or lengths[element.slot] == 1 or element.index == position]
