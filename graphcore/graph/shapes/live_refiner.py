"""The shapes of a graph under construction, kept on nodes, inferred on addition and after changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final
from weakref import WeakSet

from graphcore.attrs import Array
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph.model.node import Node, Tensor
from graphcore.graph.shapes.constant_values import inferred_value
from graphcore.graph.shapes.loop_shapes import enters_loop, forward_slots, is_loop_head, relaxed_data
from graphcore.graph.shapes.shape_refiner import ExtendedInferenceContext, ShapeInference
from graphcore.inference import HandleData, ShapeHandle, same_handle_data
from graphcore.inference.alternatives import common_shape, relaxed_shape
from graphcore.plumbing import CONST, ENTER, MERGE
from graphcore.shapes import Shape

_LOOP_OPS: Final = ENTER | MERGE
Explainer = Callable[[Node], tuple[Any, ...]]


class LiveContext(ExtendedInferenceContext):
    """The context of a graph's own inference. It records on the node the values that its shapes depend on."""

    __slots__ = ()

    def evaluate_input(self, index: int) -> Array | None:
        """The constant value of input `index`, None if it has none."""
        self.node.requested_values |= 1 << index
        tensor = self.node.inputs[index]
        return self.refiner.evaluate_constant_tensor(tensor.node, tensor.index)

    def evaluate_input_as_partial_shape(self, index: int) -> ShapeHandle | None:
        """The value of input `index` as a partial shape, None if nothing is known."""
        self.node.requested_values |= 1 << index
        return super().evaluate_input_as_partial_shape(index)

    def input_handle_shapes_and_types(self, index: int) -> HandleData | None:
        """The handle data of input `index`, None if unknown."""
        tensor = self.node.inputs[index]
        data = tensor.node.handle_data
        return None if data is None else data.get(tensor.index)


class LiveRefiner(ShapeInference):
    """Infers and keeps the shapes of a graph's nodes.

    Args:
        graph_def_version: the producer version that shape functions see.
        explain: finds the origins of clashing sizes at a node, for errors.
    """

    context_type: type[LiveContext] = LiveContext
    is_direct: ClassVar[bool] = True
    """True if only the shapes of a node are kept, so that these may be found without a context."""

    def __init__(self, graph_def_version: int, explain: Explainer | None = None) -> None:
        super().__init__(graph_def_version)
        self.explain = explain
        self.infers_functions = True
        self.loop_heads: WeakSet[Node] = WeakSet()

    def add_node(self, node: Node) -> None:
        """Infer the outputs of `node` from its inputs and store them on it.

        Raises:
            InvalidArgumentError: its op has no shape function, or the inputs do not fit. The node is unchanged then.
        """
        registration = node.registration
        if registration.direct_shape is not None and self.is_direct and self._infer_directly(node, registration.direct_shape):
            return
        context = self.context_type(self, node, [tensor.node.output_handles[tensor.index] for tensor in node.inputs])
        shape_fn = registration.shape_fn
        try:
            if shape_fn is None or node.op in _LOOP_OPS:
                self.infer(context)
            else:
                context.run(shape_fn)
        except GraphError as error:
            if self.explain is not None:
                error.explained_by(partial(self.explain, node))
            raise
        self.finish(context)

    def _infer_directly(self, node: Node, shape_of: Callable[..., ShapeHandle]) -> bool:
        """Infer a node by a direct shape function, without a context. False if that does not apply."""
        inputs = node.inputs
        handles: list[ShapeHandle] = []
        for tensor in inputs:
            producer = tensor.node
            if producer.handle_data is not None:
                return False
            handles.append(producer.output_handles[tensor.index])
        if node.like:
            return False
        try:
            shape = shape_of(*handles)
        except Exception:  # noqa: BLE001 - a context raises it again, with its place
            return False
        first = inputs[0].node.output_handles
        node.output_handles = first if len(first) == 1 and first[0] is shape else (shape,)
        node.constants = node.handle_data = None
        return True

    def infer(self, context: LiveContext) -> None:
        """Run the inference of a context.

        Raises:
            InvalidArgumentError: its op has no shape function, or the inputs do not fit.
        """
        if context.node.op in _LOOP_OPS:
            self._infer_at_loop(context)
        else:
            self.run_shape_fn(context)

    def finish(self, context: LiveContext) -> None:
        """Store the results on the node."""
        node, outputs = context.node, context.outputs
        handles = tuple([ShapeHandle() if handle is None else handle for handle in outputs])
        if node.like:
            handles = tuple([_refined(context, shape, node.like.get(index)) for index, shape in enumerate(handles)])
        node.output_handles = handles
        node.constants = None
        data = context.all_output_handles
        if data is not None or node.handle_data is not None:
            node.handle_data = data

    def get_context(self, node: Node) -> LiveContext:
        """A context with the current shapes of the node's inputs, without outputs."""
        return self.context_type(self, node, [tensor.node.output_handles[tensor.index] for tensor in node.inputs])

    def key_of_call(self, library: FunctionLibraryDefinition, node: Node, shapes: Sequence[ShapeHandle]) -> tuple[object, ...] | None:
        """See `ShapeInference.key_of_call`: sizes, if all are known and no input is a handle."""
        if not self.is_direct or any(tensor.node.handle_data is not None for tensor in node.inputs):
            return None
        sizes: list[tuple[int, ...]] = []
        for shape in shapes:
            if shape.dims is None:
                return None
            sizes.append(tuple([dim.value for dim in shape.dims]))
            if -1 in sizes[-1]:
                return None
        return (library.version, self.graph_def_version, *sizes)

    def state(self) -> Any:
        """A snapshot for `restore` of the data beside the nodes."""
        return self.graph_def_version

    def restore(self, state: Any) -> None:
        """Return to the snapshot `state`."""
        self.graph_def_version = state

    def copy_from(self, other: LiveRefiner, copies: Mapping[Node, Node]) -> None:
        """Copy the data beside the nodes of another graph for their copies."""
        self.graph_def_version = other.graph_def_version
        self.loop_heads.update([copies[head] for head in other.loop_heads if head in copies])

    def set_shape(self, node: Node, index: int, shape: Shape) -> bool:
        """Merge `shape` into the shape of output `index`, now and after later inferences.

        True iff that changed it.

        Raises:
            InvalidArgumentError: no such output, or the shapes are incompatible.
        """
        if not 0 <= index < len(node.output_handles):
            raise InvalidArgumentError(
                f"output_port '{index}' is out of range, node '{node.name}' has {len(node.outputs)} outputs", node=node.name, op=node.op
            )
        context = self.get_context(node)
        before = node.output_handles[index]
        merged = context.merge(before, context.make_shape_from_shape(shape))
        if merged is before:
            return False
        node.output_handles = (*node.output_handles[:index], merged, *node.output_handles[index + 1 :])
        if not isinstance(node.like.get(index), Tensor):
            node.like = {**node.like, index: merged}
        return True

    # ---- loops: the shapes of the first iteration, relaxed to a fixed point --------------------------------------------------

    def _infer_at_loop(self, context: LiveContext) -> None:
        node = context.node
        if enters_loop(node):
            context.outputs[0] = context.inputs[0]
            data = context.input_handle_shapes_and_types(0)
            if data is not None:
                context.set_output_handle_shapes_and_types(0, data)
            return
        if not is_loop_head(node):
            self.run_shape_fn(context)
            return
        self._infer_first_iteration(context)
        for slot, tensor in enumerate(node.inputs):
            if slot not in forward_slots(node) and tensor.node.id >= 0 and tensor.node.output_handles:
                self._relax(context, slot)

    def open_loop(self, node: Node) -> None:
        """Infer a loop head from the first iteration only."""
        context = self.get_context(node)
        self._infer_first_iteration(context)
        self.finish(context)

    def relax_loop(self, node: Node) -> bool:
        """Relax shapes that do not hold in later iterations. True iff that changed any."""
        context = self.get_context(node)
        before, data = node.output_handles, node.handle_data
        context.outputs = list(before)
        if data is not None and 0 in data:
            context.set_output_handle_shapes_and_types(0, data[0])
        for slot, tensor in enumerate(node.inputs):
            if slot not in forward_slots(node) and tensor.node.id >= 0:
                self._relax(context, slot)
        self.finish(context)
        return node.output_handles[0] is not before[0] or not same_handle_data((data or {}).get(0), (node.handle_data or {}).get(0))

    def _infer_first_iteration(self, context: LiveContext) -> None:
        self.loop_heads.add(context.node)
        slots = forward_slots(context.node)
        context.outputs[0] = common_shape([context.inputs[slot] for slot in slots])
        context.outputs[1] = context.scalar()
        data = [context.input_handle_shapes_and_types(slot) for slot in slots]
        if data and data[0] is not None and all(same_handle_data(data[0], other) for other in data):
            context.set_output_handle_shapes_and_types(0, data[0])

    def _relax(self, context: LiveContext, slot: int) -> None:
        forward = forward_slots(context.node)
        context.outputs[0] = relaxed_shape(context.output(0), context.inputs[slot], [context.inputs[at] for at in forward])
        data = context.output_handle_shapes_and_types(0)
        if data is not None:
            first = [context.input_handle_shapes_and_types(at) or [] for at in forward]
            context.set_output_handle_shapes_and_types(0, relaxed_data(data, context.input_handle_shapes_and_types(slot), first))

    # ---- services for contexts -----------------------------------------------------------------------------------------------

    def library_of(self, node: Node) -> FunctionLibraryDefinition | None:
        """The functions of the node's graph."""
        return node.graph.library if self.infers_functions else None

    def output_shape(self, node: Node, index: int) -> ShapeHandle:
        """The shape of output `index`."""
        return node.output_handles[index]

    def output_handle_data(self, node: Node, index: int) -> HandleData | None:
        """The handle data of output `index`, None if unknown."""
        return None if node.handle_data is None else node.handle_data.get(index)

    def evaluate_constant_tensor(self, node: Node, index: int) -> Array | None:
        """The constant value of output `index`, None if unknown."""
        if self.disable_constant_propagation and node.op != CONST:
            return None
        return inferred_value(node.outputs[index])


def _refined(context: LiveContext, inferred: ShapeHandle, like: Tensor | ShapeHandle | None) -> ShapeHandle:
    """Merge `inferred` with the shape from `like`; `inferred` alone if they contradict each other."""
    if like is None:
        return inferred
    try:
        if isinstance(like, Tensor):
            return context.merge(like.node.output_handles[like.index], inferred)
        return context.merge(inferred, like)
    except GraphError:
        return inferred
