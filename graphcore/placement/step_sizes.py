"""The sizes of the tensors of a step: by static shapes, or by those of the last run's feeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from graphcore.errors import GraphError
from graphcore.graph import Node, Tensor
from graphcore.graph.model.search import post_order
from graphcore.graph.shapes.loop_shapes import enters_loop, forward_slots, is_loop_head
from graphcore.graph.shapes.shape_refiner import ShapeRefiner
from graphcore.inference import HandleData, ShapeHandle, handle_to_shape
from graphcore.plumbing import is_back_edge
from graphcore.shapes import Shape

_WITHOUT_ELEMENTS: Final = frozenset({"string", "resource", "variant"})
_MOST_SMALL: Final = 16
"""The most elements of a list of axes or sizes."""


class StepSizes:
    """The shapes and bytes of the tensors of a step.

    Args:
        nodes: the nodes of the step, of one graph.
        fed_shapes: the shapes of tensors, by name, where the graph does not know them; by default those of the feeds of the graph's last runs.
    """

    def __init__(self, nodes: Iterable[Node], fed_shapes: Mapping[str, Shape] | None = None) -> None:
        open_nodes = [node for node in nodes if any(not tensor.shape.is_fully_defined for tensor in node.outputs)]
        graph = open_nodes[0].graph if open_nodes else None
        shapes = (
            {name: Shape(shape) for name, shape in graph.fed_shapes.items()} if fed_shapes is None and graph is not None else fed_shapes
        )
        self._refiner: _FedRefiner | None = None
        if graph is not None and shapes:
            self._refiner = _FedRefiner(open_nodes, shapes)

    def shape_of(self, tensor: Tensor) -> Shape:
        """The shape of a tensor, as far as it is known."""
        shape = tensor.shape
        return (
            shape
            if self._refiner is None or shape.is_fully_defined
            else handle_to_shape(self._refiner.output_shape(tensor.node, tensor.index))
        )

    def elements(self, tensor: Tensor) -> int:
        """The number of elements of a tensor, -1 if unknown."""
        count = self.shape_of(tensor).num_elements
        return 1 if count < 0 and self._is_small(tensor) else count

    def bytes_of(self, tensor: Tensor) -> int | None:
        """The bytes of a tensor, None if unknown; handles take none."""
        dtype, elements = tensor.dtype.base, self.elements(tensor)
        if dtype.name in _WITHOUT_ELEMENTS or not dtype.size:
            return None if dtype.name == "string" else 0
        return None if elements < 0 else elements * dtype.size

    def is_known(self, node: Node) -> bool:
        """True if the sizes of all inputs and outputs of a node are known; handles and strings have none."""
        tensors = (*node.inputs, *node.outputs)
        return all(tensor.dtype.base.name in _WITHOUT_ELEMENTS or self.elements(tensor) >= 0 for tensor in tensors)

    def _is_small(self, tensor: Tensor) -> bool:
        """True for a list of axes or sizes that follows from other such lists: its length hardly matters."""
        if self.shape_of(tensor).rank != 1 or not tensor.dtype.base.is_integer or not tensor.node.inputs:
            return False
        return all(0 <= self.shape_of(input_tensor).num_elements <= _MOST_SMALL for input_tensor in tensor.node.inputs)


class _FedRefiner(ShapeRefiner):
    """Infers the shapes that the graph does not know again, with the given ones.

    The value of a loop variable is assumed to keep the shape that it begins with.
    """

    def __init__(self, nodes: list[Node], fed_shapes: Mapping[str, Shape]) -> None:
        graph = nodes[0].graph
        super().__init__(graph.versions.producer)
        self.function_library = graph.library
        among = set(nodes)
        for node in post_order(nodes, _producers):  # values pass through nodes of known shapes, too
            if node in among:
                self._infer(node, fed_shapes)

    def output_shape(self, node: Node, index: int) -> ShapeHandle:
        """The inferred shape, or else that of the graph."""
        context = self._contexts.get(node)
        if context is not None:
            return context.output(index)
        return node.output_handles[index] if index < len(node.output_handles) else ShapeHandle()

    def output_handle_data(self, node: Node, index: int) -> HandleData | None:
        """The inferred handle data, or else that of the graph."""
        context = self._contexts.get(node)
        return (node.handle_data or {}).get(index) if context is None else context.output_handle_shapes_and_types(index)

    def _infer(self, node: Node, shapes: Mapping[str, Shape]) -> None:
        try:
            self.add_node(node)
            if enters_loop(node) or is_loop_head(node):
                first = node.inputs[forward_slots(node)[0]]
                self._added(node).set_output(0, self.output_shape(first.node, first.index))
            for tensor in node.outputs:
                if tensor.name in shapes:
                    self.set_shape(node, tensor.index, shapes[tensor.name])
        except GraphError:  # such as a feed of another shape before an edit
            self._contexts.pop(node, None)


def _producers(node: Node) -> list[Node]:
    return [tensor.node for tensor in node.inputs if not is_back_edge(tensor.node.op, node.op)]
