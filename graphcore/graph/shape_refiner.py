"""Shape inference over a graph: runs each op's shape function on what is known of its inputs."""

from __future__ import annotations

from graphcore.attrs import Array
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.graph.constant_values import inferred_value
from graphcore.graph.node import Node
from graphcore.inference import InferenceContext, ShapeHandle
from graphcore.inference.partial_values import partial_shape
from graphcore.shapes import Shape


class ExtendedInferenceContext(InferenceContext):
    """The inference context of a graph's node: values are looked up in the graph when a shape function asks."""

    __slots__ = ("_constants", "node")

    def __init__(self, refiner: ShapeRefiner, node: Node) -> None:
        super().__init__(
            node.name,
            node.op_def,
            node.node_def.attr,
            [tensor.node.output_handles[tensor.index] for tensor in node.inputs],
            graph_def_version=refiner.graph_def_version,
            num_outputs=len(node.output_types),
        )
        self.node = node
        self._constants = not refiner.disable_constant_propagation

    def evaluate_input(self, index: int) -> Array | None:
        """The constant value of input `index`, None if it has none."""
        self.node.asked_values = True
        return inferred_value(self.node.inputs[index]) if self._constants else None

    def evaluate_input_as_partial_shape(self, index: int) -> ShapeHandle | None:
        """What is known of input `index` as a shape, None if nothing is."""
        self.node.asked_values = True
        if not self._constants:
            return None
        tensor = self.node.inputs[index]
        return partial_shape(tensor.node, tensor.index, _shape_of, _constant_of)


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
        node.output_handles = tuple(handles)
        node.constants = None

    def get_context(self, node: Node) -> ExtendedInferenceContext:
        """A context on the present shapes of the node's inputs, without outputs."""
        return ExtendedInferenceContext(self, node)

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
        node.output_handles = (*node.output_handles[:index], merged, *node.output_handles[index + 1 :])
        return True


def _refined(context: InferenceContext, inferred: ShapeHandle, like: ShapeHandle) -> ShapeHandle:
    """`inferred` with what `like` adds; `like` itself where it says it all. While a changed graph does not fit, `inferred` alone."""
    try:
        return context.merge(like, inferred)
    except GraphError:
        return inferred


def _shape_of(node: Node, index: int) -> ShapeHandle:
    return node.output_handles[index]


def _constant_of(node: Node, index: int) -> Array | None:
    return inferred_value(node.outputs[index])
