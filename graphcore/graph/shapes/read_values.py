"""Values read for shape inference during construction: axes, shapes, permutations.

Their consequences are part of the graph.
"""

from __future__ import annotations

from typing import Any

from graphcore.attrs import Array
from graphcore.graph.model.node import Node, Tensor
from graphcore.graph.shapes.constant_values import constant_value
from graphcore.inference.partial_values import partial_value


def value_read(node: Node, tensor: Tensor) -> Array | None:
    """The value of an input of `node` read by its shape function, None if it was not, or not constant."""
    requested = node.requested_values
    if any(requested >> slot & 1 for slot, source in enumerate(node.inputs) if source is tensor):
        return constant_value(tensor)
    return None


def value_kept(tensor: Tensor) -> tuple[Node, list[Any]] | None:
    """A node that has read the value of `tensor`, with the known elements; None if there is none.

    Unknown elements are None.
    """
    reader = _reader_of(tensor) if _is_known(tensor) else None
    if reader is None:
        return None
    value = constant_value(tensor)
    return reader, (_known_elements(tensor) or []) if value is None else value.reshape(-1).tolist()


def _known_elements(tensor: Tensor) -> list[int | None] | None:
    """The elements of a partly known int scalar or vector; None if none is known."""
    if not tensor.dtype.base.is_integer or tensor.shape.rank not in {0, 1} or tensor.node.error is not None:
        return None
    refiner = tensor.graph.refiner
    value = partial_value(tensor.node, tensor.index, refiner.output_shape, refiner.evaluate_constant_tensor)
    if value is None:
        return None
    sizes = [item if isinstance(item, int) else item.value for item in value.items]
    elements = [size if isinstance(item, int) or size >= 0 else None for item, size in zip(value.items, sizes, strict=True)]
    return elements if any(size is not None for size in elements) else None


def _reader_of(tensor: Tensor) -> Node | None:
    """A node whose shapes depend on the value of `tensor`, directly or not; None if there is none."""
    seen = {tensor}
    pending = [tensor]
    while pending:
        current = pending.pop()
        for node, slot in current.graph.tensor_consumers(current):
            if slot < 0:
                continue
            if node.requested_values >> slot & 1:
                return node
            if node.registration.traits.numbers_from_shapes is not None:
                continue
            readers = [output for output in node.outputs if output not in seen and _is_known(output)]
            seen.update(readers)
            pending += readers
    return None


def _is_known(tensor: Tensor) -> bool:
    return constant_value(tensor) is not None or (
        tensor.node.registration.traits.partial_rule is not None and _known_elements(tensor) is not None
    )
