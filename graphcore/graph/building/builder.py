"""The only module that adds nodes to a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from graphcore.attrs import AttrValue
from graphcore.definitions import NodeDef, add_default_attrs, in_out_types_for_node, is_valid_node_name, validate_node_def
from graphcore.dtypes import DType, bool_, float32, float64, int8, int16, int32, int64, string, uint8, uint16, uint32, uint64
from graphcore.errors import FailedPreconditionError, InvalidArgumentError
from graphcore.graph.building.apply import apply_op, as_held_tensor, convert_to_tensor
from graphcore.graph.building.resolving import resolve_inputs
from graphcore.graph.building.scopes import name_scope
from graphcore.graph.building.slices import sliced
from graphcore.graph.editing.replacing import attach, replace
from graphcore.graph.model.input_checks import check_inputs
from graphcore.graph.model.node import Node, Tensor, only_output
from graphcore.graph.model.plain_graph import FINALIZED
from graphcore.graph.shapes.shaped_graph import ShapedGraph
from graphcore.inference import ShapeHandle, shape_to_handle
from graphcore.plumbing import DECLARED_SHAPES
from graphcore.registry import OpRegistration
from graphcore.shapes import Shape
from graphcore.source import SourceLocation
from graphcore.support.critical_section import critical_section

_QUOTIENTS: Final[dict[DType, DType]] = {
    **dict.fromkeys((int8, uint8, int16, uint16), float32),
    **dict.fromkeys((int32, uint32, int64, uint64), float64),
}
"""The dtype of the quotient of two integers."""
_RESERVED: Final = frozenset({"_SOURCE", "_SINK"})
"""The names of every graph's own source and sink."""


class GraphBuilder:
    """Adds nodes to one graph. Everything that adds a node ends in `insert`."""

    __slots__ = ("graph",)

    def __init__(self, graph: ShapedGraph) -> None:
        self.graph = graph

    def add_node(self, node_def: NodeDef, source: SourceLocation | None) -> Node:
        """See `Graph.add_node`."""
        graph = self.graph
        registration = graph.library.look_up(node_def.op)
        if not is_valid_node_name(node_def.name, allow_internal_ops=True):
            raise InvalidArgumentError(f"Node '{node_def.name}': Node name contains invalid characters", op=node_def.op, node=node_def.name)
        with graph.lock:
            node_def = add_default_attrs(node_def, registration.op_def)
            inputs, controls = resolve_inputs(graph, node_def)
            validate_node_def(node_def, registration.op_def)
            types = in_out_types_for_node(node_def, registration.op_def)
            return self.insert(node_def, registration, inputs, controls, tuple(types[0]), tuple(types[1]), source)

    def insert(
        self,
        definition: NodeDef | Mapping[str, AttrValue],
        registration: OpRegistration,
        inputs: list[Tensor],
        controls: list[Node],
        input_types: tuple[DType, ...],
        output_types: tuple[DType, ...],
        source: SourceLocation | None,
        *,
        name: str = "",
        fits: bool = False,
        infer: Callable[[Node], None] | None = None,
    ) -> Node:
        """Add a node with resolved inputs, or replace one of its name in place if that is allowed.

        Args:
            definition: the NodeDef; with `name` and `fits`, its attrs alone are enough, unless it has fields besides its inputs.
            registration: the op.
            inputs, controls: its inputs and control inputs.
            input_types, output_types: the types according to `definition`.
            source: the line of user code that adds the node.
            name: the name; that of `definition` by default.
            fits: True if the number and the types of the inputs were checked already.
            infer: sets the shapes of the outputs; the graph's own inference by default.

        Raises:
            FailedPreconditionError: the graph is finalized.
            InvalidArgumentError: the name is taken, or the inputs or their shapes do not fit.
        """
        graph = self.graph
        with graph.lock:
            if not name:
                name = definition.name  # type: ignore[union-attr]  # a NodeDef, see above
            store = graph.node_store
            if graph.finalized or name in store.by_name or name in _RESERVED:
                self._require_new(name, registration.op_def.name)
            if not fits:
                check_inputs(definition, input_types, inputs, source)  # type: ignore[arg-type]  # likewise
            node = Node(
                graph,  # type: ignore[arg-type]  # every plain graph is a `Graph`
                store.next_id,
                name,
                definition,
                registration,
                inputs,
                controls,
                input_types,
                output_types,
                source,
            )
            if DECLARED_SHAPES in node.attr:
                node.like = _declared_shapes(node)
            if infer is None:
                graph.refiner.add_node(node)
            else:
                infer(node)
            existing = store.by_name.get(name)
            if existing is not None:
                return graph.journal.atomically(replace, graph, existing, node)
            if name in store.awaited:
                return graph.journal.atomically(self._enter_awaited, node)
            self.enter(node)
            return node

    @critical_section.cover
    def enter(self, node: Node) -> None:
        """Enter a new node into the tables of the graph."""
        graph = self.graph
        critical_section.begin()
        try:
            store = graph.node_store
            store.next_id += 1
            graph.edge_store.add_node(node)
            graph.names.take(node.name)
            if node.source is not None and node.source.run is not None:
                graph.cells.own(node)
            store.by_id[node.id] = store.by_name[node.name] = node
            graph.journal.publish("added", node)
        finally:
            if critical_section.deferred is not None:
                critical_section.end()

    def _enter_awaited(self, node: Node) -> Node:
        """Add a node to the graph, and connect the inputs that wait for its name."""
        store = self.graph.node_store
        awaiting = store.take_awaiting(node.name)
        self.enter(node)
        for consumer, slot in attach(self.graph, node, awaiting):
            store.await_node(node.name, consumer, slot)
        return node

    def _require_new(self, name: str, op: str) -> None:
        """Check that a new node may be added.

        Raises:
            FailedPreconditionError: the graph is finalized.
            InvalidArgumentError: the name belongs to another node, which the running cell may not replace.
        """
        if self.graph.finalized:
            raise FailedPreconditionError(FINALIZED, node=name, op=op)
        existing = self.graph.find(name)
        if (existing is not None and not self.graph.cells.may_replace(existing)) or name in _RESERVED:
            source = None if existing is None else existing.source
            raise InvalidArgumentError(f"Node name '{name}' already exists in the Graph", op=op, node=name, source=source)

    def sliced(self, tensor: Tensor, key: Any) -> Tensor:
        """`tensor[key]`, by a StridedSlice."""
        return sliced(self.graph, tensor, key)

    def binary(self, op: str, left: object, right: object, name: str) -> Tensor:
        """A binary op on tensors and values; a value takes the tensor's dtype."""
        return only_output(apply_op(self.graph, op, [left, right], None, name))

    def add(self, left: object, right: object, name: str) -> Tensor:
        """`left + right`; strings are joined, by an op of their own."""
        joins = any(isinstance(item, Tensor) and item.dtype.base is string for item in (left, right))
        return self.binary("Add" if joins else "AddV2", left, right, name)

    def truediv(self, left: object, right: object) -> Tensor:
        """`left / right`: integers are converted to floats first, those of 32 and 64 bits to float64."""
        operands = [as_held_tensor(self.graph, item) for item in (left, right)]
        held = next((item for item in operands if isinstance(item, Tensor)), None)
        first = convert_to_tensor(self.graph, operands[0], None, "operand of /") if held is None else held
        operands = [first, operands[1]] if held is None else operands
        wanted = _QUOTIENTS.get(first.dtype.base)
        if wanted is None:
            return self.binary("RealDiv", operands[0], operands[1], "truediv")
        tensors = [convert_to_tensor(self.graph, item, first.dtype.base, "operand of /") for item in operands]
        if any(tensor.dtype.base is not first.dtype.base for tensor in tensors):
            return self.binary("RealDiv", tensors[0], tensors[1], "truediv")  # an error, which names both
        with name_scope(self.graph, "truediv") as scope:
            casts = [only_output(apply_op(self.graph, "Cast", [tensor], {"DstT": wanted}, "Cast")) for tensor in tensors]
            return self.binary("RealDiv", casts[0], casts[1], scope)

    def absolute(self, operand: object, name: str | None = None) -> Tensor:
        """The absolute value; real for complex numbers."""
        tensor = convert_to_tensor(self.graph, operand, None, "operand of abs")
        if not tensor.dtype.is_complex:
            return only_output(apply_op(self.graph, "Abs", [tensor], None, name))
        return only_output(apply_op(self.graph, "ComplexAbs", [tensor], {"Tout": tensor.dtype.real_dtype}, name))

    def logical_xor(self, left: object, right: object, name: str = "LogicalXor") -> Tensor:
        """True where exactly one of both is."""
        left, right = [
            convert_to_tensor(self.graph, item, bool_, "operand of ^ (exclusive or; ** raises to a power)") for item in (left, right)
        ]
        with name_scope(self.graph, name) as scope:
            both = self.binary("LogicalAnd", left, right, "LogicalAnd")
            either = self.binary("LogicalOr", left, right, "LogicalOr")
            return self.binary("LogicalAnd", either, only_output(apply_op(self.graph, "LogicalNot", [both], None, "LogicalNot")), scope)

    def matmul(
        self,
        left: object,
        right: object,
        name: str = "matmul",
        transposed: tuple[bool, bool] = (False, False),
        adjoint: tuple[bool, bool] = (False, False),
    ) -> Tensor:
        """`left @ right`: MatMul for matrices, BatchMatMulV2 where a rank above 2 is known or none is known.

        Args:
            left, right: the factors.
            name: the name of the node.
            transposed: transpose each of the factors.
            adjoint: transpose and conjugate each of the factors.
        """
        operands = [as_held_tensor(self.graph, item) for item in (left, right)]
        dtype = next((item.dtype.base for item in operands if isinstance(item, Tensor)), None)
        tensors = [convert_to_tensor(self.graph, item, dtype, "factor of matmul") for item in operands]
        if any(tensor.shape.rank is None or tensor.shape.rank > 2 for tensor in tensors):
            pairs = zip(tensors, transposed, strict=True)
            factors = [self._conjugate(tensor) if turned and tensor.dtype.is_complex else tensor for tensor, turned in pairs]
            turns = {"adj_x": transposed[0] or adjoint[0], "adj_y": transposed[1] or adjoint[1]}
            return only_output(apply_op(self.graph, "BatchMatMulV2", factors, {key: True for key, value in turns.items() if value}, name))
        factors = [self._conjugate(tensor) if turned else tensor for tensor, turned in zip(tensors, adjoint, strict=True)]
        turns = {"transpose_a": transposed[0] or adjoint[0], "transpose_b": transposed[1] or adjoint[1]}
        return only_output(apply_op(self.graph, "MatMul", factors, {key: True for key, value in turns.items() if value}, name))

    def _conjugate(self, tensor: Tensor) -> Tensor:
        return only_output(apply_op(self.graph, "Conj", [tensor], None, "Conj")) if tensor.dtype.is_complex else tensor


def _declared_shapes(node: Node) -> dict[int, Tensor | ShapeHandle]:
    """The shapes that `set_shape` gave the outputs of a node of a body, by output."""
    declared = node.attr[DECLARED_SHAPES]
    shapes = declared if isinstance(declared, tuple) else ()
    return {index: shape_to_handle(shape) for index, shape in enumerate(shapes) if isinstance(shape, Shape)}
