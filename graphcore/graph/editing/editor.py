"""The editor of a graph: atomic edits, published when they have succeeded.

A live graph may be inconsistent for a while: misfits are marked on the consumer (`Node.error`, `Node.input_errors`), and the marks are
removed once it fits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

import msgspec

from graphcore.attrs import as_attr_value
from graphcore.brief import brief
from graphcore.definitions import NodeDef, in_out_types_for_node, name_ranges_for_node, validate_node_def
from graphcore.device_spec import DeviceSpec
from graphcore.errors import InvalidArgumentError
from graphcore.graph.model.input_checks import type_misfit
from graphcore.graph.model.node import Edge, Node, Tensor, input_text
from graphcore.graph.model.topological_order import refuse_cycle
from graphcore.graph.shapes.propagation import infer_downstream, infer_orphan
from graphcore.graph.shapes.shaped_graph import ShapedGraph
from graphcore.shapes import Shape

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _edit(change: Callable[Concatenate[GraphEditor, _P], _T]) -> Callable[Concatenate[GraphEditor, _P], _T]:
    """Make a method of an editor one atomic edit. It must check its arguments before any change."""

    @wraps(change)
    def edit(editor: GraphEditor, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        with editor.graph.lock:
            editor.graph.refuse_finalized()
            return editor.journal.atomically(change, editor, *args, **kwargs)

    return edit


class GraphEditor:
    """Changes the nodes and edges of one graph. Each edit is documented at the method of `Graph` that calls it."""

    def __init__(self, graph: ShapedGraph) -> None:
        self.graph = graph
        self.journal = graph.journal

    # ---- nodes -----------------------------------------------------------------------------------------------------

    @_edit
    def remove_node(self, node: Node) -> None:
        """See `Graph.remove_node`."""
        self.graph.owned(node)
        if not node.is_op:
            raise InvalidArgumentError(f"'{node.name}' cannot be removed: every graph has it", node=node.name, op=node.op)
        self._remove(node)

    @_edit
    def clear(self) -> None:
        """See `Graph.clear`."""
        self.remove_all(self.graph.nodes)

    def remove_all(self, nodes: Sequence[Node]) -> None:
        """Remove nodes, consumers before producers if given in creation order, with their private nodes."""
        for node in reversed(nodes):
            self._remove(node)
        for companion in self.graph.library.companions if nodes else ():
            companion.sweep(self.graph)

    def _remove(self, node: Node) -> None:
        graph = self.graph
        orphans = graph.consumers(node)
        graph.edge_store.remove_node(node)
        graph.node_store.remove(node)
        graph.names.free(node.name)
        graph.gradient_records.pop(node.name, None)
        graph.cells.disown(node)
        for consumer, slot in orphans:
            graph.node_store.await_node(node.name, consumer, slot)
        self.journal.publish("removed", node)
        self._mark_orphans(node, orphans)

    def _mark_orphans(self, removed: Node, orphans: list[tuple[Node, int]]) -> None:
        """Mark the consumers of a removed node."""
        if not orphans:
            return
        graph = self.graph
        touched = [consumer for consumer, slot in orphans if slot >= 0 and consumer in graph]
        for consumer, slot in orphans:
            if slot < 0 and consumer in graph:
                self.journal.note(consumer)
                consumer.input_errors = {
                    **consumer.input_errors,
                    -1 - removed.id: f"Control input '{removed.name}' is no longer in the graph",
                }
        if len(touched) == 1:
            infer_orphan(graph, touched[0], removed)
        else:
            infer_downstream(graph, *touched, include_start=True)

    # ---- edges -----------------------------------------------------------------------------------------------------

    @_edit
    def add_edge(self, src: Node, src_output: int, dst: Node, dst_input: int) -> Edge:
        """See `Graph.add_edge`."""
        graph = self.graph
        tensor = self._fitting(src, src_output, dst, dst_input)
        present = dst.inputs[dst_input]
        if present in graph and graph.edge_store.has(present, dst, dst_input):
            raise InvalidArgumentError.at(
                dst,
                f"Input {dst_input} of node {dst.name} is fed from {present.name} already; update_edge feeds it from elsewhere",
                input=present.name,
            )
        self._feed(tensor, dst, dst_input)
        return graph.edge_store.input_edge(dst, dst_input)

    @_edit
    def update_edge(self, src: Node, src_output: int, dst: Node, dst_input: int) -> None:
        """See `Graph.update_edge`."""
        tensor = self._fitting(src, src_output, dst, dst_input)
        self.graph.edge_store.remove(dst.inputs[dst_input], dst, dst_input)
        self._feed(tensor, dst, dst_input)

    @_edit
    def remove_edge(self, edge: Edge) -> None:
        """See `Graph.remove_edge`."""
        graph = self.graph
        src, dst = edge.src, edge.dst
        graph.owned(dst)
        if edge.is_control_edge:
            self.remove_control_edge(src, dst)
            return
        actual = graph.edge_store.find(src, dst, (edge.src_output, edge.dst_input)) if src in graph and dst in graph else None
        if actual is None or actual.id != edge.id:
            raise InvalidArgumentError.at(dst, f"Edge {edge} is not in the graph")
        self.journal.note(dst)
        graph.edge_store.remove(src.outputs[edge.src_output], dst, edge.dst_input)
        self.journal.publish("inputs", dst)
        infer_downstream(graph, dst, include_start=True)

    def _fitting(self, src: Node, src_output: int, dst: Node, dst_input: int) -> Tensor:
        """Check that the output may feed the input. Self-loops are allowed and marked; cycles are refused."""
        graph = self.graph
        graph.owned(src)
        graph.owned(dst)
        if not 0 <= src_output < len(src.outputs):
            raise InvalidArgumentError.at(
                src, f"Node '{src.name}' (type: '{src.op}', num of outputs: {len(src.outputs)}) does not have output {src_output}"
            )
        if not 0 <= dst_input < len(dst.inputs):
            raise InvalidArgumentError.at(
                dst, f"Node '{dst.name}' (type: '{dst.op}', num of inputs: {len(dst.inputs)}) does not have input {dst_input}"
            )
        tensor = src.outputs[src_output]
        problem = type_misfit(dst.name, dst_input, tensor, dst.input_types[dst_input])
        if problem:
            raise InvalidArgumentError.at(dst, problem, input=tensor.name)
        if src is not dst:
            refuse_cycle(graph, dst, [src])
        return tensor

    def _feed(self, tensor: Tensor, dst: Node, slot: int) -> None:
        """Connect the open input `slot` of `dst` to `tensor`, which fits."""
        graph = self.graph
        self.journal.note(dst)
        graph.node_store.stop_awaiting(dst, (slot,))
        dst.inputs = [*dst.inputs[:slot], tensor, *dst.inputs[slot + 1 :]]
        graph.edge_store.add(tensor, dst, slot)
        texts = list(dst.node_def.input)
        texts[slot] = input_text(tensor)
        dst.node_def = msgspec.structs.replace(dst.node_def, input=tuple(texts))
        self.journal.publish("inputs", dst)
        infer_downstream(graph, dst, include_start=True)

    @_edit
    def add_control_edge(self, src: Node, dst: Node, *, allow_duplicates: bool) -> Edge | None:
        """See `Graph.add_control_edge`."""
        graph = self.graph
        graph.owned(src)
        graph.owned(dst)
        store = graph.edge_store
        if not allow_duplicates and store.has_control(src, dst):
            return None
        refuse_cycle(graph, dst, [src])
        self.journal.note(dst)
        if src.is_op and dst.is_op:
            if src not in dst.control_inputs:
                dst.control_inputs = [*dst.control_inputs, src]
            text = f"^{src.name}"
            if not allow_duplicates and text not in dst.node_def.input:
                dst.node_def = msgspec.structs.replace(dst.node_def, input=(*dst.node_def.input, text))
        store.add_control(src, dst, allow_duplicates=allow_duplicates)
        self.journal.publish("inputs", dst)
        return store.last_control(src, dst)

    @_edit
    def remove_control_edge(self, src: Node, dst: Node) -> bool:
        """See `Graph.remove_control_edge`."""
        graph = self.graph
        graph.owned(src)
        graph.owned(dst)
        if not graph.edge_store.has_control(src, dst):
            return False
        self.journal.note(dst)
        dst.control_inputs = [control for control in dst.control_inputs if control is not src]
        graph.edge_store.remove_control(src, dst)
        text = f"^{src.name}"
        dst.node_def = msgspec.structs.replace(dst.node_def, input=tuple([name for name in dst.node_def.input if name != text]))
        self.journal.publish("inputs", dst)
        return True

    # ---- attrs and shapes ------------------------------------------------------------------------------------------

    @_edit
    def set_attr(self, node: Node, name: str, value: object) -> None:
        """See `Graph.set_attr`."""
        self.graph.owned(node)
        attrs = dict(node.node_def.attr)
        if value is None:
            attrs.pop(name, None)
        else:
            declared = node.op_def.find_attr(name)
            attrs[name] = as_attr_value(value, None if declared is None else declared.type)
        node_def = msgspec.structs.replace(node.node_def, attr=attrs)
        if not node.is_opaque:
            _require_same_types(node, node_def, name)
        self.journal.note(node)
        node.node_def = node_def
        self.journal.publish("replaced", node)
        if not name.startswith("_"):
            infer_downstream(self.graph, node, include_start=True)

    @_edit
    def set_requested_device(self, node: Node, spec: str | DeviceSpec) -> None:
        """See `Graph.set_requested_device`."""
        self.graph.owned(node)
        parsed = spec if isinstance(spec, DeviceSpec) else DeviceSpec.parse(spec)
        self.journal.note(node)
        node.node_def = msgspec.structs.replace(node.node_def, device=parsed.to_string())
        self.journal.publish("device", node)

    @_edit
    def set_shape(self, tensor: Tensor, shape: Shape) -> None:
        """See `Graph.set_shape`."""
        graph = self.graph
        graph.owned(tensor)
        self.journal.note(tensor.node)
        if graph.refiner.set_shape(tensor.node, tensor.index, shape):
            self.journal.publish("shapes", tensor.node)
            infer_downstream(graph, tensor.node)

    @_edit
    def set_shape_like(self, tensor: Tensor, other: Tensor) -> None:
        """See `Graph.set_shape_like`."""
        self.graph.owned(tensor)
        node, like = tensor.node, tensor.node.like
        self.journal.note(node)
        node.like = {**like, tensor.index: other}
        try:
            self.graph.refiner.add_node(node)
        except Exception:
            node.like = like
            raise
        self.journal.publish("shapes", node)

    @_edit
    def shrink_type_info(self, node: Node, index_mapping: Mapping[int, int], type_attr_name: str) -> None:
        """See `Graph.shrink_type_info`."""
        self.graph.owned(node)
        types = node.node_def.attr.get(type_attr_name)
        if not isinstance(types, tuple) or not all(0 <= index < len(types) for index in index_mapping):
            raise InvalidArgumentError(
                f"Attr '{type_attr_name}' of node '{node.name}' (op {node.op}) is no list with entries {brief(sorted(index_mapping))}",
                op=node.op,
                node=node.name,
                attr=type_attr_name,
            )
        kept = sorted(index_mapping)
        attr = {**node.node_def.attr, type_attr_name: tuple([types[index] for index in kept])}
        inputs, outputs = name_ranges_for_node(node.node_def, node.op_def)
        by_list = {arg.name for arg in (*node.op_def.input_arg, *node.op_def.output_arg) if arg.type_list_attr == type_attr_name}
        slots = _kept_slots([(name in by_list, *span) for name, span in inputs.items()], kept)
        numbers = _kept_slots([(name in by_list, *span) for name, span in outputs.items()], kept)
        edges = [edge for edge in self.graph.edge_store.out_edges(node) if not edge.is_control_edge]
        lost = next((edge for edge in edges if edge.src_output not in numbers), None)
        if lost is not None:
            raise InvalidArgumentError(
                f"Output {lost.src_output} of node '{node.name}' feeds '{lost.dst.name}' and cannot be dropped", op=node.op, node=node.name
            )
        texts = (*[node.node_def.input[slot] for slot in slots], *[text for text in node.node_def.input if text[:1] == "^"])
        node_def = msgspec.structs.replace(node.node_def, attr=attr, input=texts)
        validate_node_def(node_def, node.op_def)
        self._renumber(node, node_def, slots, numbers, edges)

    def _renumber(self, node: Node, node_def: NodeDef, slots: list[int], numbers: list[int], edges: list[Edge]) -> None:
        graph = self.graph
        store = graph.edge_store
        inputs = [node.inputs[slot] for slot in slots]
        types = in_out_types_for_node(node_def, node.op_def)
        self.journal.note(node)
        graph.node_store.stop_awaiting(node, range(len(node.inputs)))
        for slot, tensor in enumerate(node.inputs):
            store.remove(tensor, node, slot)
        for edge in edges:
            store.remove(node.outputs[edge.src_output], edge.dst, edge.dst_input)
        node.node_def = node_def
        node.input_types, node.output_types = types
        node.inputs = inputs
        node.outputs = node.outputs[: len(numbers)]
        for slot, tensor in enumerate(inputs):
            if tensor in graph:
                store.add(tensor, node, slot)
            else:
                graph.node_store.await_node(tensor.node.name, node, slot)
        self.journal.publish("replaced", node)
        for edge in edges:
            self._feed(node.outputs[numbers.index(edge.src_output)], edge.dst, edge.dst_input)
        infer_downstream(graph, node, include_start=True)


def _require_same_types(node: Node, node_def: NodeDef, name: str) -> None:
    validate_node_def(node_def, node.op_def)
    types = in_out_types_for_node(node_def, node.op_def)
    if types != (node.input_types, node.output_types):
        raise InvalidArgumentError.at(
            node,
            f"Attr '{name}' of node '{node.name}' (op {node.op}) decides the types that its edges carry: required to keep them",
            attr=name,
        )


def _kept_slots(spans: list[tuple[bool, int, int]], kept: list[int]) -> list[int]:
    """The kept slots, in order: all of the other args, and of the list the slots in `kept`."""
    return [slot for is_list, start, end in spans for slot in range(start, end) if not is_list or slot - start in kept]
