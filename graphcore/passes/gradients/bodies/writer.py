"""Adds the nodes of a backward pass to a graph directly, since thousands are made at once."""

from __future__ import annotations

from graphcore.attrs import Attrs, AttrValue, TensorValue
from graphcore.definitions import FunctionDef, NodeDef
from graphcore.dtypes import DType
from graphcore.graph import GradientRecord, Graph, Node, Tensor, with_chosen_device
from graphcore.graph.model.device_functions import with_colocation
from graphcore.graph.model.node import NO_CONTROLS
from graphcore.registry import OpRegistration
from graphcore.source import caller_location, current_run


class GradientWriter:
    """Makes nodes under full names, with a record of the differentiated nodes.

    Nodes get the line of user code, the device request and the control dependencies of the writer's creation.

    Args:
        graph: the graph for the nodes.
    """

    __slots__ = ("_cell", "_colocated", "_control_texts", "_controls", "_device", "_device_functions", "_sums", "graph", "source")

    def __init__(self, graph: Graph) -> None:
        run = current_run.get()
        self.graph = graph
        self.source = caller_location()
        self._cell = "" if run is None else run.cell
        self._colocated = graph.scopes.colocated
        self._device = graph.scopes.device
        self._device_functions = graph.scopes.device_functions
        self._controls = list(graph.scopes.controls)
        self._control_texts = [f"^{control.name}" for control in self._controls]
        self._sums: dict[tuple[int, DType], tuple[dict[str, AttrValue], tuple[DType, ...]]] = {}

    def new_scope(self, name: str) -> str:
        """The prefix of a new name scope."""
        names = self.graph.names
        unique = names.unique(name)
        names.take_scope(unique, self._cell)
        return unique + "/"

    def node(
        self,
        name: str,
        registration: OpRegistration,
        inputs: list[Tensor],
        attrs: Attrs,
        types: tuple[tuple[DType, ...], tuple[DType, ...]],
        record: tuple[str, FunctionDef | None, Attrs, str],
        anchor: Node | None = None,
    ) -> Node:
        """A node with complete attrs; `types` begin with those of `inputs`.

        Args:
            name: the preferred full name.
            record: the differentiated node, for `GradientRecord`.
            anchor: an additional control input.
        """
        graph = self.graph
        attrs = with_colocation(attrs, self._colocated)
        unique = graph.names.unique(name)
        texts = [tensor.node.name if tensor.index == 0 else f"{tensor.node.name}:{tensor.index}" for tensor in inputs]
        controls = NO_CONTROLS
        if self._controls or anchor is not None:
            controls = self._controls if anchor is None else [*self._controls, anchor]
            texts += self._control_texts if anchor is None else [*self._control_texts, f"^{anchor.name}"]
        node_def = NodeDef(unique, registration.op_def.name, tuple(texts), self._device, attrs)
        if self._device_functions:
            node_def = with_chosen_device(node_def, inputs, self._device_functions)
        made = graph.builder.insert(node_def, registration, inputs, controls, types[0], types[1], self.source)
        graph.gradient_records[unique] = GradientRecord(*record)
        return made

    def sum(self, name: str, parts: list[Tensor], forward: str) -> Tensor:
        """AddN of several gradients of one tensor."""
        dtype = parts[0].dtype.base
        key = len(parts), dtype
        if key not in self._sums:
            self._sums[key] = {"N": len(parts), "T": dtype}, (dtype,) * len(parts)
        attrs, types = self._sums[key]
        registration = self.graph.library.look_up("AddN")
        return self.node(name, registration, list(parts), attrs, (types, (dtype,)), (forward, None, {}, "sum")).outputs[0]

    def zeros_like(self, name: str, tensor: Tensor, forward: str) -> Tensor:
        """Zeros of the shape of `tensor`."""
        dtype = tensor.dtype.base
        registration = self.graph.library.look_up("ZerosLike")
        return self.node(name, registration, [tensor], {"T": dtype}, ((dtype,), (dtype,)), (forward, None, {}, "zeros")).outputs[0]

    def ones_like(self, name: str, tensor: Tensor, forward: str) -> Tensor:
        """Ones of the shape of `tensor`."""
        dtype = tensor.dtype.base
        registration = self.graph.library.look_up("OnesLike")
        return self.node(name, registration, [tensor], {"T": dtype}, ((dtype,), (dtype,)), (forward, None, {}, "seed")).outputs[0]

    def result(self, name: str, gradient: Tensor, forward: str) -> Tensor:
        """The alias node of a whole gradient, under a reserved name."""
        self.graph.names.free(name)
        return self.alias(name, gradient, forward)

    def alias(self, name: str, gradient: Tensor, forward: str) -> Tensor:
        """The alias node of a gradient, or of a part of it."""
        dtype = gradient.dtype.base
        registration = self.graph.library.look_up("Identity")
        return self.node(name, registration, [gradient], {"T": dtype}, ((dtype,), (dtype,)), (forward, None, {}, "result")).outputs[0]

    def constant(
        self, name: str, value: TensorValue, record: tuple[str, FunctionDef | None, Attrs, str], anchor: Node | None = None
    ) -> Tensor:
        """A Const, with a control input from `anchor` if it must run only with that."""
        registration = self.graph.library.look_up("Const")
        attrs: dict[str, AttrValue] = {"dtype": value.dtype, "value": value}
        return self.node(name, registration, [], attrs, ((), (value.dtype,)), record, anchor).outputs[0]
