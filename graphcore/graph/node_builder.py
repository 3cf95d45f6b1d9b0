"""Builds a node of a graph by chained calls; `finalize` reports all errors, or adds the node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphcore.definitions import (
    NodeOut,
    OpDef,
    OpDefSource,
    check_op_deprecation,
    format_node_for_error,
    in_out_types_for_node,
    validate_node_def,
)
from graphcore.dtypes import DType
from graphcore.errors import InvalidArgumentError
from graphcore.graph.building.node_def_builder import NodeDefBuilder
from graphcore.graph.graph import Graph
from graphcore.graph.model.node import NO_CONTROLS, Node, Tensor, absent_tensor
from graphcore.graph.shapes.propagation import infer_downstream
from graphcore.source import caller_location

Source = Node | Tensor | NodeOut | None
"""An input: a node (its output `index`), a tensor, or a NodeOut that names a node which is added later."""


def get_output_type(node: Node | None, index: int) -> DType:
    """The dtype of output `index` of `node`.

    Raises:
        InvalidArgumentError: there is no such output, or the node is None.
    """
    if node is None:
        raise InvalidArgumentError("Attempt to get an output of a node that is null")
    if not 0 <= index < len(node.output_types):
        raise InvalidArgumentError.at(
            node,
            f"Attempt to get output {index} of {node.name} not in range [0, {len(node.output_types)}). "
            f"Node: {format_node_for_error(node.node_def)}",
        )
    return node.output_types[index]


class NodeBuilder:
    """`NodeBuilder("sum", "AddV2").input(a).input(b, 1).finalize(graph)`.

    Args:
        name: the node's name, not made unique.
        op: an OpDef, or the name of an op in `registry`.
        registry: the registry of the op; the global one by default. `graph.library` contains the graph's functions too.
    """

    __slots__ = ("_assigned_device", "_builder", "_controls", "_errors", "_inputs", "_op")

    def __init__(self, name: str, op: str | OpDef, registry: OpDefSource | None = None) -> None:
        self._builder = NodeDefBuilder(name, op, registry)
        self._op = op if isinstance(op, str) else op.name
        self._inputs: list[tuple[Node, int] | NodeOut] = []
        self._controls: list[Node] = []
        self._errors: list[str] = []
        self._assigned_device = ""

    def input(self, source: Source | Sequence[Source], index: int = 0) -> NodeBuilder:
        """Add the next input: output `index` of a node, a tensor, or a list of these for a list input."""
        if isinstance(source, list | tuple):
            outs = [self._out(item, 0) for item in source]
            if all(out is not None for out in outs):
                self._builder.input([out for out in outs if out is not None])
            return self
        out = self._out(source, index)  # type: ignore[arg-type]  # lists are handled above
        if out is not None:
            self._builder.input(out)
        return self

    def control_input(self, source: Node) -> NodeBuilder:
        """Add a control input from `source`."""
        self._controls.append(source)
        self._builder.control_input(source.name)
        return self

    def control_inputs(self, sources: Iterable[Node]) -> NodeBuilder:
        """Add control inputs from all `sources`."""
        for source in sources:
            self.control_input(source)
        return self

    def device(self, spec: str) -> NodeBuilder:
        """Set the requested device."""
        self._builder.device(spec)
        return self

    def assigned_device(self, device: str) -> NodeBuilder:
        """Set the assigned device."""
        self._assigned_device = device
        return self

    def attr(self, name: str, value: object) -> NodeBuilder:
        """Set an attr."""
        self._builder.attr(name, value)
        return self

    def finalize(self, graph: Graph) -> Node:
        """Add the node to `graph`.

        An input given as NodeOut is connected when a node of that name is added; until then the node is marked.

        Raises:
            InvalidArgumentError: inputs or attrs have errors, or do not fit the graph. Nothing is added then.
            UnimplementedError: the op is deprecated at the graph's version.
        """
        if self._errors:
            raise InvalidArgumentError("\n".join(self._errors), op=self._op, node=self._builder.name)
        node_def = self._builder.finalize()
        op_def = self._builder.op_def
        validate_node_def(node_def, op_def)
        check_op_deprecation(op_def, graph.versions.producer)
        inputs = [self._tensor(graph, item) for item in self._inputs]
        for control in self._controls:
            graph.owned(control)
        types = in_out_types_for_node(node_def, op_def)
        registration = graph.look_up(op_def.name)
        controls = list(dict.fromkeys(self._controls)) or NO_CONTROLS
        source = caller_location()
        absent = [(slot, item.node) for slot, item in enumerate(self._inputs) if isinstance(item, NodeOut)]
        with graph.transaction() if absent else graph.lock:
            node = graph.builder.insert(node_def, registration, inputs, controls, types[0], types[1], source)
            node.assigned_device = self._assigned_device
            for slot, name in absent:
                graph.node_store.await_node(name, node, slot)
            if absent:
                infer_downstream(graph, node, include_start=True)
        return node

    def _out(self, source: Source, index: int) -> NodeOut | None:
        """The input by name; None, with a recorded error, if there is no such output."""
        if isinstance(source, NodeOut):
            self._inputs.append(source)
            return source
        node, index = (source.node, source.index) if isinstance(source, Tensor) else (source, index)
        try:
            dtype = get_output_type(node, index)
        except InvalidArgumentError:
            self._errors.append(self._index_error(node, index))
            return None
        assert node is not None
        self._inputs.append((node, index))
        return NodeOut(node.name, index, dtype)

    def _index_error(self, node: Node | None, index: int) -> str:
        if node is None:
            return f"Attempt to add nullptr Node to node with type {self._op}"
        return (
            f"Attempt to add output {index} of {node.name} not in range [0, {len(node.output_types)}) to node with type {self._op}. "
            f"Node: {format_node_for_error(node.node_def)}"
        )

    @staticmethod
    def _tensor(graph: Graph, item: tuple[Node, int] | NodeOut) -> Tensor:
        if isinstance(item, NodeOut):
            return absent_tensor(graph, item.node, item.index, item.dtype)
        graph.owned(item[0])
        return item[0].outputs[item[1]]
