"""The shapes of imported nodes, merged from file and inference."""

from __future__ import annotations

from typing import Final

import msgspec

from graphcore.attrs import NoValue
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.graph.model.node import Node
from graphcore.graph.shapes.live_refiner import LiveRefiner
from graphcore.graph.shapes.shape_refiner import ShapeRefiner
from graphcore.inference import ShapeHandle
from graphcore.shapes import Shape

_OUTPUT_SHAPES: Final = "_output_shapes"


def forget_shapes(node: Node) -> None:
    """Make the shapes of the node's outputs unknown."""
    node.output_handles = tuple([ShapeHandle() for _ in node.outputs])


def check_output_shapes(refiner: LiveRefiner, other: ShapeRefiner | None, node: Node) -> None:
    """Merge the shapes in attr `_output_shapes` into the inferred ones, and remove the attr.

    Later changes would make it wrong. An opaque node keeps it as the only source of its shapes.

    Raises:
        InvalidArgumentError: the attr has too few or invalid shapes.
    """
    shapes = node.node_def.attr[_OUTPUT_SHAPES]
    if isinstance(shapes, NoValue):
        shapes = ()  # an empty list equals an unset one
    if not isinstance(shapes, tuple) or not all(isinstance(shape, Shape) for shape in shapes):
        return
    if len(shapes) < len(node.outputs):
        raise InvalidArgumentError(
            f"Node '{node.name}' has {len(node.outputs)} outputs but the {_OUTPUT_SHAPES} attribute specifies shapes for "
            f"{len(shapes)} outputs",
            op=node.op,
            node=node.name,
            attr=_OUTPUT_SHAPES,
        )
    for index in range(len(node.outputs)):
        try:
            refiner.set_shape(node, index, shapes[index])
            if other is not None:
                other.set_shape(node, index, shapes[index])
        except GraphError as error:
            raise InvalidArgumentError(
                f"Node '{node.name}' has an {_OUTPUT_SHAPES} attribute inconsistent with the GraphDef for output #{index}: {error.message}",
                op=node.op,
                node=node.name,
                attr=_OUTPUT_SHAPES,
            ) from None
    if not node.is_opaque:
        attrs = {name: value for name, value in node.node_def.attr.items() if name != _OUTPUT_SHAPES}
        node.node_def = msgspec.structs.replace(node.node_def, attr=attrs)
