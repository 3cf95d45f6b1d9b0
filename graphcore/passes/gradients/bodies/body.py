"""Inlining of gradient bodies into a graph, with simplification.

Only nodes that the wanted gradients need are built. Forward values are reused instead of recomputed, shape arithmetic that static shapes
decide becomes constants, and the broadcast handling (Shape, BroadcastGradientArgs, Sum, Reshape) is omitted without broadcasting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, Protocol

import numpy as np

from graphcore.attrs import Array, AttrValue, Func, TensorValue
from graphcore.definitions import in_out_types_for_node
from graphcore.errors import GraphError
from graphcore.graph import GradientRecord, Graph, Node, Tensor, constant_node
from graphcore.graph.shapes.read_values import value_read
from graphcore.inference import ShapeHandle
from graphcore.inference.handles import shape_of_sizes
from graphcore.kernel_context import KernelContext
from graphcore.passes.gradients.bodies.template import BodyNode, GradientTemplate, Ref
from graphcore.passes.infra.known_shapes import broadcast_axes, handle_of, known_sizes, same_shape
from graphcore.shapes import Shape
from graphcore.traits import Traits

Value = Tensor | TensorValue
GRADIENT_ARRAY: Final = "TensorArrayGradV3"
MAX_FOLDED: Final = 4096


class ForwardValues(Protocol):
    """The protocol of a forward node's values, as seen from the backward pass."""

    def input(self, slot: int) -> Value:
        """The value of input `slot`."""

    def output(self, index: int) -> Value:
        """The value of output `index`."""

    def gradient(self, index: int) -> Tensor:
        """The gradient of output `index`, zeros if there is none."""


class GradientBody:
    """The inlining of a template for one forward node.

    Args:
        graph: the graph for the nodes; the name scope is set already.
        template: the instantiated gradient of the forward node's op.
        forward: the differentiated node.
        values: its inputs, outputs and output gradients.
        simplify: False inlines the plain registered body.
        anchor: the control input of nodes without inputs, so that they run only if the forward node does.

    Attributes:
        made: the nodes made, in order.
        alike: tensors known to have the shape of a forward input, as (tensor, slot), with the number of nodes made before that was known.
    """

    def __init__(
        self,
        graph: Graph,
        template: GradientTemplate,
        forward: Node,
        values: ForwardValues,
        *,
        simplify: bool,
        anchor: Node | None = None,
    ) -> None:
        self.graph = graph
        self.template = template
        self.forward = forward
        self.forward_values = values
        self.simplify = simplify
        self.anchor = anchor
        self.values: dict[Ref, Value] = {}
        self.made: list[Node] = []
        self._own: set[Node] = set()
        self.alike: list[tuple[int, Tensor, int]] = []

    def input_gradient(self, index: int) -> Tensor:
        """Build the gradient with respect to input `index` of the forward node."""
        gradient = self.result(index)
        if gradient.node in self._own and not same_shape(gradient, self.forward.inputs[index]):
            self.graph.set_shape_like(gradient, self.forward.inputs[index])
            self.alike.append((len(self.made), gradient, index))
        return gradient

    def result(self, index: int) -> Tensor:
        """The gradient as built; for a handle, its shape may differ from the input's."""
        ref = self.template.rets[index]
        return self._tensor(self._resolve(ref), ref[0])

    def _resolve(self, wanted: Ref) -> Value:
        """The value of a body tensor; its producers are built first, iteratively."""
        pending = [wanted]
        while pending:
            ref = pending[-1]
            if ref in self.values:
                pending.pop()
                continue
            node = self.template.nodes.get(ref[0])
            if node is None:
                self.values[ref] = self._argument(ref[0])
                continue
            needs = self._try_shortcut(ref, node) if self.simplify or self._is_gone(node) else node.inputs
            missing = [need for need in needs if need not in self.values]
            if missing:
                pending.extend(missing)
            elif ref not in self.values:
                self._build(node)
        return self.values[wanted]

    def _argument(self, name: str) -> Value:
        position = self.template.args[name]
        count = len(self.forward.inputs)
        return self.forward_values.gradient(position - count) if position >= count else self.forward_values.input(position)

    def _try_shortcut(self, ref: Ref, node: BodyNode) -> Sequence[Ref]:
        """Try to resolve `ref` without its node. Returns tensors to resolve first."""
        if self._is_gone(node) or (node.node_def.op == self.forward.op and self._repeats_forward(node)):
            self.values[ref] = self.forward_values.output(ref[1])
            return ()
        shortcut = _shortcut_of(self, node)
        if shortcut is None:
            return node.inputs
        needs = shortcut(self, ref, node)
        return node.inputs if needs is None else needs

    def traits_of(self, node: BodyNode) -> Traits:
        """The traits of the op of a body node."""
        return self.graph.library.look_up(node.node_def.op).traits

    def _is_gone(self, node: BodyNode) -> bool:
        """True iff the body node would read what the forward node clears, or draw other numbers."""
        traits = self.forward.registration.traits
        return node.node_def.op == self.forward.op and (traits.reads_once or traits.draws) and self._takes_forward_inputs(node)

    def _takes_forward_inputs(self, node: BodyNode) -> bool:
        args = self.template.args
        if len(node.inputs) != len(self.forward.inputs):
            return False
        return all(args.get(name) == slot for slot, (name, _) in enumerate(node.inputs))

    def _repeats_forward(self, node: BodyNode) -> bool:
        """True iff the body node repeats the forward node on its inputs, which then need not be fetched."""
        forward = self.forward
        if not self._takes_forward_inputs(node):
            return False
        return all(forward.node_def.attr.get(key) == value for key, value in node.node_def.attr.items())

    def _build(self, node: BodyNode) -> None:
        inputs = [self.values[ref] for ref in node.inputs]
        name = node.node_def.name
        op = node.node_def.op
        attrs = node.node_def.attr
        if op == GRADIENT_ARRAY:
            # The contributions of array elements to one call's ys must not mix with those of other calls.
            attrs = {**attrs, "source": self._call_name().encode()}
        if op == "Const":
            value = attrs["value"]
            assert isinstance(value, TensorValue)
            self.values[name, 0] = value if self.simplify else self._constant(value, name)
            return
        if self.simplify and self._fold(node, inputs):
            return
        tensors = [self._tensor(value, ref[0]) for value, ref in zip(inputs, node.inputs, strict=True)]
        with self._anchored(bool(tensors)):
            made = self.graph.apply_op(op, _grouped(self.graph, op, attrs, tensors), attrs, name)
        self._record(made, name)
        for tensor in made.outputs:
            self.values[name, tensor.index] = tensor

    def reshaped(self, value: Value, shape: Value, name: str) -> Tensor:
        """A value in another shape, replacing body node `name`."""
        made = self.graph.apply_op("Reshape", [self._tensor(value, name), self._tensor(shape, name)], None, name)
        self._record(made, name)
        return made.outputs[0]

    def _call_name(self) -> str:
        """The name scope of the call that builds gradients."""
        scope = self.graph.scopes.name
        return scope[: scope.rfind(f"{self.forward.name}_grad")].rstrip("/") or scope

    def known_array(self, value: Value) -> Array | None:
        """The array of a value that no feed can change; None if feeds can.

        Such values depend only on static shapes and the registered body. A constant of the forward graph can be fed, unless it was read for
        shape inference.
        """
        return value.array if isinstance(value, TensorValue) else known_input(self.forward, value)

    def _tensor(self, value: Value, name: str) -> Tensor:
        return value if isinstance(value, Tensor) else self._constant(value, name)

    def _constant(self, value: TensorValue, name: str) -> Tensor:
        with self._anchored(False):
            made = constant_node(self.graph, value, name)
        self._record(made, name)
        return made.outputs[0]

    def _anchored(self, has_inputs: bool) -> AbstractContextManager[None]:
        if has_inputs or self.anchor is None:
            return nullcontext()
        return self.graph.control_dependencies([self.anchor])

    def _record(self, node: Node, body_node: str) -> None:
        self.made.append(node)
        self._own.add(node)
        self.graph.gradient_records[node.name] = GradientRecord(
            self.forward.name, self.template.function, self.forward.node_def.attr, body_node
        )

    def _fold(self, node: BodyNode, inputs: list[Value]) -> bool:
        arrays = [self.known_array(value) for value in inputs]
        constants = [array for array in arrays if array is not None and array.size <= MAX_FOLDED]
        if len(constants) != len(arrays) or not arrays:
            return False
        registration = self.graph.library.look_up(node.node_def.op)
        if registration.kernel is None or not registration.traits.pure or registration.op_def.is_stateful or _calls_function(node):
            return False
        types = in_out_types_for_node(node.node_def, registration.op_def)
        if any(dtype.as_numpy is None for dtype in types[1]):
            return False  # a list of tensors cannot be a constant
        context = KernelContext(
            xp=np,
            attrs=node.node_def.attr,
            node_name=node.node_def.name,
            op=node.node_def.op,
            input_types=tuple(types[0]),
            output_types=tuple(types[1]),
            constants=tuple(constants),
        )
        try:
            with np.errstate(all="ignore"):
                result = registration.kernel(context)(*constants)
        except GraphError:
            return False  # it may fail at run time, and only in a branch that is taken
        results = list(result) if isinstance(result, tuple | list) else [result]
        for i, item in enumerate(results):
            self.values[node.node_def.name, i] = TensorValue(np.asarray(item))
        return True


def _calls_function(node: BodyNode) -> bool:
    """True iff an attr names a function, which cannot run during graph construction."""
    return any(
        isinstance(item, Func) for value in node.node_def.attr.values() for item in (value if isinstance(value, tuple) else (value,))
    )


def known_input(forward: Node, tensor: Tensor) -> Array | None:
    """The value of an input of `forward` that was read for shape inference, and so cannot be fed."""
    if not (forward.requested_values and tensor.dtype.is_integer) or not 0 <= tensor.shape.num_elements <= MAX_FOLDED:
        return None
    return value_read(forward, tensor)


def _grouped(graph: Graph, op: str, attrs: Any, tensors: list[Tensor]) -> list[Any]:
    """Group flat inputs for apply_op: one item for each input arg, lists for list args."""
    op_def = graph.library.look_up_op_def(op)
    result: list[Any] = []
    at = 0
    for arg in op_def.input_arg:
        if arg.number_attr:
            count = int(attrs[arg.number_attr])
        elif arg.type_list_attr:
            count = len(attrs[arg.type_list_attr])
        else:
            result.append(tensors[at])
            at += 1
            continue
        result.append(tensors[at : at + count])
        at += count
    return result


# ---- shortcuts: op -> function(body, ref, node) -> refs to resolve first, or None without a shortcut ------------------


def _element(body: GradientBody, ref: Ref, node: BodyNode) -> Sequence[Ref]:
    """An element of values that are packed or unpacked only to match an arg's type."""
    source = node.inputs[ref[1]]
    if source in body.values:
        body.values[ref] = body.values[source]
        return ()
    return (source,)


def _shape(body: GradientBody, ref: Ref, node: BodyNode) -> Sequence[Ref] | None:
    source = node.inputs[ref[1]]
    if source not in body.values:
        return (source,)
    value = body.values[source]
    sizes = list(value.array.shape) if isinstance(value, TensorValue) else known_sizes(value)
    if sizes is None:
        return None
    numbers_from = body.traits_of(node).numbers_from_shapes
    numbers = None if numbers_from is None else numbers_from([Shape(sizes)])
    if numbers is None:
        return None
    body.values[ref] = TensorValue(np.asarray(numbers[0], _out_numpy(node)))
    return ()


def _out_numpy(node: BodyNode) -> Any:
    out: AttrValue | None = node.node_def.attr.get("out_type")
    return getattr(out, "as_numpy", None) or np.dtype(np.int32)


def _shape_source(body: GradientBody, ref: Ref) -> Ref | None:
    """The body tensor with `ref` as its shape, None if there is none."""
    node = body.template.nodes.get(ref[0])
    return node.inputs[0] if node is not None and node.node_def.op == "Shape" else None


def _handle(value: Value) -> ShapeHandle:
    return shape_of_sizes(value.array.shape) if isinstance(value, TensorValue) else handle_of(value)


def _broadcast_args(body: GradientBody, ref: Ref, node: BodyNode) -> Sequence[Ref] | None:
    sources = [_shape_source(body, need) for need in node.inputs]
    first, second = sources
    if first is None or second is None:
        return None
    missing = [source for source in (first, second) if source not in body.values]
    if missing:
        return missing
    axes = broadcast_axes(_handle(body.values[first]), _handle(body.values[second]))
    if axes is None:
        return None
    for i, item in enumerate(axes):
        body.values[ref[0], i] = TensorValue(np.asarray(item, np.int32))
    return ()


def _neutral(body: GradientBody, ref: Ref, node: BodyNode) -> Sequence[Ref] | None:
    """An identity by its sizes: a sum over no axes, a Tile that repeats nothing, a division by ones."""
    missing = [need for need in node.inputs if need not in body.values]
    if missing:
        return missing
    value, second = (body.values[need] for need in node.inputs)
    numbers, traits = body.known_array(second), body.traits_of(node)
    if numbers is None or not traits.is_neutral(numbers):
        return None
    if traits.elementwise and not (isinstance(value, Tensor) and value.shape.rank == numbers.ndim == 1 and numbers.dtype.kind == "i"):
        return None  # the other input may be the longer one
    body.values[ref] = value
    return ()


def _reshape(body: GradientBody, ref: Ref, node: BodyNode) -> Sequence[Ref] | None:
    source = _shape_source(body, node.inputs[1])
    if source is None:
        return _to_known_shape(body, ref, node)
    missing = [need for need in (node.inputs[0], source) if need not in body.values]
    if missing:
        return missing
    value, like = body.values[node.inputs[0]], body.values[source]
    if isinstance(value, Tensor) and isinstance(like, Tensor) and same_shape(value, like):
        body.values[ref] = value
        return ()
    return None


def _to_known_shape(body: GradientBody, ref: Ref, node: BodyNode) -> Sequence[Ref] | None:
    """Reshape to the statically known shape of the value."""
    missing = [need for need in node.inputs if need not in body.values]
    if missing:
        return missing
    value, shape = (body.values[need] for need in node.inputs)
    sizes = body.known_array(shape)
    if isinstance(value, Tensor) and sizes is not None and sizes.tolist() == known_sizes(value):
        body.values[ref] = value
        return ()
    return None


def _scatter(body: GradientBody, ref: Ref, node: BodyNode) -> Sequence[Ref] | None:
    """Omit a ScatterNd into an empty tensor, which the op refuses."""
    missing = [need for need in node.inputs if need not in body.values]
    if missing:
        return missing
    _, updates, shape = (body.values[need] for need in node.inputs)
    sizes = body.known_array(shape)
    if sizes is None or 0 not in sizes.tolist():
        return None
    body.values[ref] = body.reshaped(updates, shape, ref[0])
    return ()


def _stitch(body: GradientBody, ref: Ref, node: BodyNode) -> Sequence[Ref] | None:
    """A DynamicStitch of shapes, known if all unknown parts are overwritten."""
    half = len(node.inputs) // 2
    sources = {need: _shape_source(body, need) for need in node.inputs[half:]}
    wanted = [sources.get(need) or need for need in node.inputs]
    missing = [need for need in wanted if need not in body.values]
    if missing:
        return missing
    entries: dict[int, int | None] = {}
    for index_ref, data_ref in zip(node.inputs[:half], node.inputs[half:], strict=True):
        indices = body.known_array(body.values[index_ref])
        data = _partial_vector(body, data_ref, sources[data_ref])
        if indices is None or data is None or indices.size != len(data):
            return None
        entries.update(zip(indices.reshape(-1).tolist(), data, strict=True))
    if not entries or None in entries.values() or sorted(entries) != list(range(len(entries))):
        return None
    body.values[ref] = TensorValue(np.asarray([entries[i] for i in range(len(entries))], np.int32))
    return ()


def _partial_vector(body: GradientBody, ref: Ref, source: Ref | None) -> list[int | None] | None:
    if source is not None:
        value = body.values[source]
        return list(value.array.shape) if isinstance(value, TensorValue) else known_sizes(value)
    array = body.known_array(body.values[ref])
    return None if array is None or array.ndim != 1 else array.tolist()


_Shortcut = Callable[[GradientBody, Ref, BodyNode], Sequence[Ref] | None]
_OF_GRADIENTS: Final[dict[str, _Shortcut]] = {
    "BroadcastGradientArgs": _broadcast_args,
    "DynamicStitch": _stitch,
    "ScatterNd": _scatter,
}
"""Shortcuts for the ops that gradient bodies use in one way only."""


def _shortcut_of(body: GradientBody, node: BodyNode) -> _Shortcut | None:
    shortcut = _OF_GRADIENTS.get(node.node_def.op)
    if shortcut is not None:
        return shortcut
    traits = body.traits_of(node)
    if traits.numbers_from_shapes is not None:
        return _shape
    if traits.memory == "alias":
        return _element
    if len(node.inputs) == 2 and traits.neutral:
        return _reshape if traits.neutral == "own shape" else _neutral
    return None
