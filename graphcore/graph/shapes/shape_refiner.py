"""Shape inference over a graph: runs each op's shape function on the shapes of its inputs.

`ShapeInference` is the common part: look-up of values, and of function bodies. `ShapeRefiner` keeps a context for each node. A graph keeps
its own shapes on its nodes (`LiveRefiner`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from graphcore.attrs import Array, AttrValue
from graphcore.definitions import VersionDef, input_type_for_node, output_type_for_node
from graphcore.dtypes import DType
from graphcore.errors import FailedPreconditionError, InternalError, InvalidArgumentError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph.model.node import Node, Tensor
from graphcore.graph.model.plain_graph import PlainGraph
from graphcore.graph.shapes.call_patterns import CallPattern, CallResult
from graphcore.graph.shapes.constant_values import ValueCache
from graphcore.graph.shapes.function_shapes import MOST_NESTED_CALLS, CallForm, FunctionShapes, InferredBody
from graphcore.inference import HandleData, InferenceContext, ShapeHandle, handle_to_shape, same_defined_shape, same_handle_data
from graphcore.inference.partial_types import PartialValue
from graphcore.inference.partial_values import partial_shape
from graphcore.plumbing import ARG, CONST, DECLARED_SHAPES
from graphcore.registry import OpRegistry
from graphcore.shapes import Shape
from graphcore.support.budget import one_budget


class ExtendedInferenceContext(InferenceContext):
    """The inference context of a graph's node: values are looked up in the graph on request."""

    __slots__ = ("node", "refiner")

    within: ClassVar[type[ExtendedInferenceContext]]
    """The contexts of the nodes of a function that this node calls."""

    def __init__(self, refiner: ShapeInference, node: Node, input_shapes: list[ShapeHandle]) -> None:
        # The attributes are set here instead of by `super()` for speed: a graph makes one context for every node.
        self.node_name = node.name
        self.op_def = node.op_def
        self.attrs = node.attr
        self.inputs = input_shapes
        self.graph_def_version = refiner.graph_def_version
        self.outputs = [None] * len(node.output_types)
        self._input_tensor = self._input_partial_shape = None
        self._requested_tensors = self._requested_as_shape = None
        self._merged_dims = self._merged_shapes = None
        self._input_handles = self._output_handles = None
        self.node = node
        self.refiner = refiner

    @property
    def input_types(self) -> tuple[DType, ...]:
        """The dtypes of the node's inputs."""
        return self.node.input_types

    @property
    def output_types(self) -> tuple[DType, ...]:
        """The dtypes of the node's outputs."""
        return self.node.output_types

    def input_type(self, index: int) -> DType:
        """The dtype of input `index`; InvalidArgumentError if there is no such input."""
        return input_type_for_node(self.node.node_def, self.op_def, index)

    def output_type(self, index: int) -> DType:
        """The dtype of output `index`; InvalidArgumentError if there is no such output."""
        return output_type_for_node(self.node.node_def, self.op_def, index)

    def get_context(self) -> InferenceContext:
        """The inference context, which is this object."""
        return self

    def evaluate_input(self, index: int) -> Array | None:
        """The constant value of input `index`, None if it has none."""
        tensor = self.node.inputs[index]
        return self.refiner.evaluate_constant_tensor(tensor.node, tensor.index)

    def evaluate_input_as_partial_shape(self, index: int) -> ShapeHandle | None:
        """The value of input `index` as a partial shape, None if nothing is known."""
        tensor = self.node.inputs[index]
        return self.refiner.constant_partial_shape(tensor.node, tensor.index)

    def function_outputs(
        self, name: str, attrs: Mapping[str, AttrValue], shapes: Sequence[ShapeHandle], slots: Sequence[int | None]
    ) -> CallResult | None:
        """The results of a call of function `name`; see `InferenceContext.function_outputs`."""
        return self.refiner.function_outputs(self, name, attrs, shapes, slots)


ExtendedInferenceContext.within = ExtendedInferenceContext


class ShapeInference(ABC):
    """The common part of shape inference, independent of the storage of results.

    Args:
        graph_def_version: the producer version for shape functions.
        library: the functions to infer calls through; without them results of calls are unknown.
    """

    def __init__(self, graph_def_version: int, library: FunctionLibraryDefinition | None = None) -> None:
        self.graph_def_version = graph_def_version
        self.function_library = library
        self.require_shape_inference_fns = True
        self.disable_constant_propagation = False
        self.bodies = FunctionShapes()
        self.enclosing: tuple[str, ...] = ()

    def library_of(self, node: Node) -> FunctionLibraryDefinition | None:  # noqa: ARG002 - used by a graph's own refiner
        """The functions that `node` may call, None if calls are not inferred."""
        return self.function_library

    @abstractmethod
    def output_shape(self, node: Node, index: int) -> ShapeHandle:
        """The shape of output `index` of `node`."""

    @abstractmethod
    def output_handle_data(self, node: Node, index: int) -> HandleData | None:
        """The handle data of output `index` of `node`, None if unknown."""

    @abstractmethod
    def evaluate_constant_tensor(self, node: Node, index: int) -> Array | None:
        """The constant value of output `index`, None if unknown."""

    def constant_partial_shape(self, node: Node, index: int) -> ShapeHandle | None:
        """The value of output `index` as a partial shape, None if nothing is known.

        Raises:
            InvalidArgumentError: a size below -1.
        """
        return partial_shape(node, index, self.output_shape, self.evaluate_constant_tensor)

    def function_outputs(
        self,
        context: ExtendedInferenceContext,
        name: str,
        attrs: Mapping[str, AttrValue],
        shapes: Sequence[ShapeHandle],
        slots: Sequence[int | None],
    ) -> CallResult | None:
        """The results of function `name` for arguments of these shapes.

        None if it is unknown, recursive, too deep, or beyond the budget.
        """
        library = self.library_of(context.node)
        if library is None:
            return None
        if name in self.enclosing or len(self.enclosing) > MOST_NESTED_CALLS:
            self.bodies.refused += 1
            return None
        body = self.bodies.body_of(library, type(context.node.graph), name, attrs)
        if body is None or len(body.args) != len(shapes):
            return None
        data = [None if slot is None else context.input_handle_shapes_and_types(slot) for slot in slots]
        pattern = CallPattern(list(zip(shapes, data, strict=True)))
        place = None if pattern.key is None else (library.version, self.graph_def_version, pattern.key)
        form = None if place is None else body.forms.get(place)
        if form is not None and _are_unknown(form.asked, context, slots):
            return pattern.results_of(form.results)
        if not self.bodies.may_enter(body, is_nested=bool(self.enclosing)):
            return None
        key = self.key_of_call(library, context.node, shapes)
        known_shapes = body.outputs.get(key) if key is not None else None
        if known_shapes is not None:
            return [(shape, None) for shape in known_shapes]
        with one_budget() as budget:
            if not budget.charge_nodes(len(body.order)):
                self.bodies.refused += 1
                return None
            return self._inferred_call(context, name, shapes, slots, body, key, pattern, place)

    def _inferred_call(
        self,
        context: ExtendedInferenceContext,
        name: str,
        shapes: Sequence[ShapeHandle],
        slots: Sequence[int | None],
        body: InferredBody,
        key: tuple[object, ...] | None,
        pattern: CallPattern,
        place: tuple[object, ...] | None,
    ) -> CallResult:
        inner, refused = _BodyRefiner(self, context, name, shapes, slots), self.bodies.refused
        for node in body.order:
            inner.add_node(node)
        tensors = [(tensor.node, tensor.index) for tensor in body.results]
        results = [(inner.output_shape(*tensor), inner.output_handle_data(*tensor)) for tensor in tensors]
        if key is not None and not context.node.requested_values and all(data is None and _is_plain(shape) for shape, data in results):
            body.keep(key, tuple([shape for shape, _ in results]))
        with one_budget() as budget:
            is_whole = self.bodies.refused == refused and budget.seconds > 0
        if place is not None and is_whole and not inner.is_given_values:
            form = pattern.form_of(results)
            if form is not None:
                body.keep_form(place, CallForm(form, frozenset(inner.asked)))
        return results

    def key_of_call(
        self,
        library: FunctionLibraryDefinition,  # noqa: ARG002 - used by a graph's own refiner
        node: Node,  # noqa: ARG002
        shapes: Sequence[ShapeHandle],  # noqa: ARG002
    ) -> tuple[object, ...] | None:
        """A cache key for the result shapes of a call if no values are read; None if they are."""
        return None

    def run_shape_fn(self, context: ExtendedInferenceContext) -> None:
        """Run the shape function of the context's node; outputs that it does not set become unknown.

        Raises:
            InvalidArgumentError: the op has no shape function and needs one, or the inputs do not fit.
        """
        node = context.node
        shape_fn = node.registration.shape_fn
        if shape_fn is not None:
            context.run(shape_fn)
        elif self.require_shape_inference_fns:
            raise InvalidArgumentError(
                f"No shape inference function exists for op '{node.op}', did you forget to define it?", op=node.op, node=node.name
            )
        context.outputs = [ShapeHandle() if handle is None else handle for handle in context.outputs]


class ShapeRefiner(ShapeInference):
    """Infers shapes of given nodes, producers first, and keeps a context for each.

    The graph is unchanged.

    Args:
        versions: the graph, its versions, or the producer version alone.
        registry: the registry of ops; that of each node by default.
    """

    context_type: type[ExtendedInferenceContext] = ExtendedInferenceContext

    def __init__(self, versions: int | VersionDef | PlainGraph, registry: OpRegistry | FunctionLibraryDefinition | None = None) -> None:
        own: Any = versions if isinstance(versions, int | VersionDef) else versions.versions
        super().__init__(own if isinstance(own, int) else own.producer)
        self.registry = registry
        self._contexts: dict[Node, ExtendedInferenceContext] = {}
        self._values = ValueCache(self._shape_of)

    def set_function_library_for_shape_inference(self, library: FunctionLibraryDefinition | None) -> None:
        """Set the library for inference through function bodies; None disables it."""
        self.function_library = library

    def add_node(self, node: Node) -> None:
        """Infer the outputs of `node`. Inputs that have not been added yet (loop back edges) count as unknown.

        Raises:
            NotFoundError: its op is not in the registry.
            InvalidArgumentError: its op has no shape function, or the inputs do not fit. The node is not added then.
        """
        context = self.context_type(self, node, [self.output_shape(tensor.node, tensor.index) for tensor in node.inputs])
        for slot, tensor in enumerate(node.inputs):
            data = self.output_handle_data(tensor.node, tensor.index)
            if data is not None:
                context.set_input_handle_shapes_and_types(slot, data)
        self._run(node, context)
        self._contexts[node] = context

    def update_node(self, node: Node, relax: bool = False) -> bool:
        """Infer `node` again after its inputs have changed. True iff anything about its inputs is new.

        Args:
            node: a node that has been added; one that has not is added.
            relax: replace known shapes by the present ones, even if less specific. Otherwise both must hold.

        Raises:
            FailedPreconditionError: one of its inputs has not been added.
            InvalidArgumentError: the inputs do not fit.
        """
        context = self._contexts.get(node)
        if context is None:
            self.add_node(node)
            return True
        changed = False
        for slot, tensor in enumerate(node.inputs):
            producer = self._contexts.get(tensor.node)
            if producer is None:
                raise FailedPreconditionError(
                    f"Input {slot} ('{tensor.node.name}') for '{node.name}' was not previously added to ShapeRefiner.",
                    node=node.name,
                    op=node.op,
                )
            if self._update_input(context, slot, producer, tensor.index, relax):
                changed = True
        if changed:
            self._values.forget()
            context.forget_values()
            self._run(node, context)
        return changed

    def _update_input(self, context: InferenceContext, slot: int, producer: InferenceContext, index: int, relax: bool) -> bool:
        before, now = context.input(slot), producer.output(index)
        moved = context.relax_input(slot, now) if relax else context.merge_input(slot, now)
        changed = moved and not same_defined_shape(before, context.input(slot))
        # A value may have changed without its shape, which cannot be detected.
        changed = changed or slot in context.requested_input_tensors_as_partial_shapes
        data = producer.output_handle_shapes_and_types(index)
        if data is None:
            return changed
        data_before = list(context.input_handle_shapes_and_types(slot) or ())
        if not relax:
            return context.merge_input_handle_shapes_and_types(slot, data) or changed
        learned = context.relax_input_handle_shapes_and_merge_types(slot, data)
        return changed or (learned and not same_handle_data(data_before, context.input_handle_shapes_and_types(slot)))

    def set_shape(self, node: Node, output_port: int, shape: Shape | ShapeHandle) -> bool:
        """Merge `shape` into the shape of an output. True iff that changed it.

        Raises:
            InternalError: the node has not been added.
            InvalidArgumentError: it has no such output, or the shapes are incompatible.
        """
        context = self._added(node)
        if not 0 <= output_port < len(node.output_types):
            raise InvalidArgumentError(
                f"output_port '{output_port}' is out of range, node '{node.name}' has {len(node.output_types)} outputs",
                node=node.name,
                op=node.op,
            )
        before = context.output(output_port)
        merged = context.merge(before, shape if isinstance(shape, ShapeHandle) else context.make_shape_from_shape(shape))
        context.set_output(output_port, merged)
        return merged is not before

    def set_unknown_shape(self, node: Node, output_port: int) -> None:
        """Make the shape of an output unknown.

        Raises:
            InternalError: the node has not been added.
            InvalidArgumentError: it has no such output.
        """
        context = self._added(node)
        context.set_output(output_port, context.unknown_shape())

    def get_context(self, node: Node) -> ExtendedInferenceContext | None:
        """The context of `node`, None if it has not been added. Changes of it take effect."""
        return self._contexts.get(node)

    def get_extended_context(self, node: Node) -> ExtendedInferenceContext | None:
        """Same as `get_context`: every context contains its node."""
        return self._contexts.get(node)

    def output_shape(self, node: Node, index: int) -> ShapeHandle:
        """The shape of output `index`; unknown if the node has not been added."""
        context = self._contexts.get(node)
        return ShapeHandle() if context is None else context.output(index)

    def output_handle_data(self, node: Node, index: int) -> HandleData | None:
        """The handle data of output `index`, None if unknown."""
        context = self._contexts.get(node)
        return None if context is None else context.output_handle_shapes_and_types(index)

    def evaluate_constant_tensor(self, node: Node, index: int) -> Array | None:
        """The constant value of output `index`, None if unknown.

        Small ones are cached. With `disable_constant_propagation` only constants themselves are read.
        """
        if self.disable_constant_propagation and node.op != CONST:
            return None
        return self._values.value_of(node.outputs[index])

    def _run(self, node: Node, context: ExtendedInferenceContext) -> None:
        if self.registry is not None:
            self.registry.look_up(node.op)
        self.run_shape_fn(context)

    def _added(self, node: Node) -> ExtendedInferenceContext:
        context = self._contexts.get(node)
        if context is None:
            raise InternalError(f"Could not find context for {node.name}", node=node.name, op=node.op)
        return context

    def _shape_of(self, tensor: Tensor) -> Shape:
        return handle_to_shape(self.output_shape(tensor.node, tensor.index))


def _is_plain(shape: ShapeHandle) -> bool:
    """True iff a shape is fully known and has no origins attached."""
    return shape.dims is not None and all(dim.value >= 0 and dim.origin is None for dim in shape.dims)


class _BodyRefiner(ShapeRefiner):
    """Infers a function body for one call, with shapes, values and handle data of its arguments."""

    def __init__(
        self,
        outer: ShapeInference,
        context: ExtendedInferenceContext,
        name: str,
        shapes: Sequence[ShapeHandle],
        slots: Sequence[int | None],
    ) -> None:
        super().__init__(outer.graph_def_version)
        self.function_library = outer.library_of(context.node)
        self.require_shape_inference_fns = outer.require_shape_inference_fns
        self.disable_constant_propagation = outer.disable_constant_propagation
        self.bodies = outer.bodies
        self.enclosing = (*outer.enclosing, name)
        self.context_type = context.within
        self.asked: set[tuple[int, bool]] = set()
        self.is_given_values = False
        self._call = context
        self._shapes = shapes
        self._slots = slots
        self._values = ValueCache(self._shape_of, self._argument)

    def add_node(self, node: Node) -> None:
        """Infer the outputs of `node`; those of an argument are given."""
        if node.op not in ARG:
            super().add_node(node)
            declared = node.attr.get(DECLARED_SHAPES)
            for index, shape in enumerate(declared if isinstance(declared, tuple) else ()):
                with suppress(InvalidArgumentError):  # it contradicts the shape in this call
                    self.set_shape(node, index, shape)
            return
        number = _index_of(node)
        context = self.context_type(self, node, [])
        context.set_output(0, self._shapes[number])
        slot = self._slots[number]
        data = None if slot is None else self._call.input_handle_shapes_and_types(slot)
        if data is not None:
            context.set_output_handle_shapes_and_types(0, data)
        self._contexts[node] = context

    def constant_partial_shape(self, node: Node, index: int) -> ShapeHandle | None:
        """The partial shape; for an argument, from the value of the call's input."""
        return partial_shape(node, index, self.output_shape, self.evaluate_constant_tensor, self._partial_argument)

    def _argument(self, node: Node) -> Array | None:
        number = _index_of(node)
        slot = self._slots[number]
        value = None if slot is None else self._call.input_tensor(slot)
        self.asked.add((number, False))
        self.is_given_values = self.is_given_values or value is not None
        return value

    def _partial_argument(self, node: Any, index: int) -> PartialValue | None:
        if node.op not in ARG:
            return None
        number = _index_of(node)
        slot = self._slots[number]
        shape = self.output_shape(node, index)
        if shape.dims is None or len(shape.dims) != 1:
            return None
        self.asked.add((number, True))
        partial = None if slot is None else self._call.input_tensor_as_partial_shape(slot)
        if partial is None or partial.dims is None:
            return None
        self.is_given_values = True
        return PartialValue(partial.dims)


def _are_unknown(asked: Iterable[tuple[int, bool]], context: ExtendedInferenceContext, slots: Sequence[int | None]) -> bool:
    """True iff nothing is known of the values of these arguments of a call; see `CallForm.asked`."""
    for number, as_shape in asked:
        slot = slots[number]
        if slot is None:
            continue
        if as_shape:
            shape = context.input_tensor_as_partial_shape(slot)
            if shape is not None and shape.dims is not None:
                return False
        elif context.input_tensor(slot) is not None:
            return False
    return True


def _index_of(argument: Node) -> int:
    index = argument.node_def.attr["index"]
    assert isinstance(index, int)
    return index
