"""Shape inference over a graph: runs each op's shape function on what is known of its inputs."""

from __future__ import annotations

from graphcore.attrs import Array
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.graph.constant_values import constant_value
from graphcore.graph.node import Node, Tensor
from graphcore.inference import InferenceContext, ShapeHandle, shape_of_sizes
from graphcore.shapes import Shape


class ShapeRefiner:
    """Infers and keeps the shapes of nodes.

    Args:
        graph_def_version: the GraphDef version the shape functions see.
    """

    def __init__(self, graph_def_version: int) -> None:
        self.graph_def_version = graph_def_version
        self.require_shape_inference_fns = True
        self.disable_constant_propagation = False

    def add_node(self, node: Node) -> None:
        """Infer the outputs of `node` from its inputs and keep them on it.

        Raises:
            InvalidArgumentError: its op has no shape function, or the inputs do not fit. The node is as before then.
        """
        context = self.get_context(node)
        shape_fn = node.registration.shape_fn
        if shape_fn is not None:
            context.run(shape_fn)
        elif self.require_shape_inference_fns:
            raise InvalidArgumentError(
                f"No shape inference function exists for op '{node.op}', did you forget to define it?", op=node.op, node=node.name
            )
        handles = [ShapeHandle() if handle is None else handle for handle in context.outputs]
        for index, other in node.like.items():
            handles[index] = _refined(context, handles[index], other.node.output_handles[other.index])
        node.output_handles = handles
        node.constants = None

    def get_context(self, node: Node) -> InferenceContext:
        """A context on the present shapes of the node's inputs; its outputs are those last inferred."""

        def value_of(index: int) -> Array | None:
            node.asked_values = True
            return None if self.disable_constant_propagation else constant_value(node.inputs[index])

        def partial_value_of(index: int) -> ShapeHandle | None:
            node.asked_values = True
            return None if self.disable_constant_propagation else partial_value(node.inputs[index])

        shapes = [tensor.node.output_handles[tensor.index] for tensor in node.inputs]
        return InferenceContext(
            node.name,
            node.op_def,
            node.node_def.attr,
            shapes,
            graph_def_version=self.graph_def_version,
            input_tensor=value_of,
            input_partial_shape=partial_value_of,
            num_outputs=len(node.outputs),
        )

    def set_shape(self, node: Node, index: int, shape: Shape) -> bool:
        """Merge `shape` into what is known of output `index`. True iff something new was learned.

        Raises:
            InvalidArgumentError: no such output, or the shapes are incompatible.
        """
        if not 0 <= index < len(node.output_handles):
            raise InvalidArgumentError(
                f"output_port '{index}' is out of range, node '{node.name}' has {len(node.outputs)} outputs", node=node.name, op=node.op
            )
        context = self.get_context(node)
        known = node.output_handles[index]
        merged = context.merge(known, context.make_shape_from_shape(shape))
        if merged is known:
            return False
        node.output_handles = [*node.output_handles[:index], merged, *node.output_handles[index + 1 :]]
        return True


def _refined(context: InferenceContext, inferred: ShapeHandle, like: ShapeHandle) -> ShapeHandle:
    """`inferred` with what `like` adds; `like` itself where it says it all. While a changed graph does not fit, `inferred` alone."""
    try:
        return context.merge(like, inferred)
    except GraphError:
        return inferred


def partial_value(tensor: Tensor) -> ShapeHandle | None:
    """What is known of a value that is used as a shape."""
    value = constant_value(tensor)
    return None if value is None or value.ndim != 1 else shape_of_sizes([int(size) for size in value])
