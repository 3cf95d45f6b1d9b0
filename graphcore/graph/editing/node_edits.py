"""Edits of single edges and attrs of existing nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from graphcore.attrs import as_attr_value
from graphcore.brief import brief
from graphcore.definitions import NodeDef, OpDef, in_out_types_for_node, name_ranges_for_node, validate_node_def
from graphcore.dtypes import INVALID, DType
from graphcore.errors import InvalidArgumentError
from graphcore.graph.editing.rewiring import feed, remove_control_edge
from graphcore.graph.model.input_checks import type_misfit
from graphcore.graph.model.node import NO_CONTROLS, Node, Tensor
from graphcore.graph.model.topological_order import refuse_cycle
from graphcore.graph.shapes.propagation import infer_downstream
from graphcore.inference import ShapeHandle
from graphcore.registry import OpRegistration
from graphcore.shapes import Shape

if TYPE_CHECKING:
    from graphcore.graph.graph import Graph
    from graphcore.graph.model.edge import Edge

_ABSENT = OpRegistration(OpDef(name=""), is_opaque=True)


def absent_tensor(graph: Graph, name: str, index: int, dtype: DType = INVALID) -> Tensor:
    """Output `index` of a missing node; its shape is unknown."""
    node = Node(graph, -1, name, NodeDef(name, ""), _ABSENT, [], NO_CONTROLS, (), (dtype,) * (index + 1), None)
    node.output_handles = tuple([ShapeHandle() for _ in node.outputs])
    return node.outputs[index]


def add_edge(graph: Graph, src: Node, src_output: int, dst: Node, dst_input: int) -> Edge:
    """See `Graph.add_edge`."""
    tensor = _fitting(graph, src, src_output, dst, dst_input)
    present = dst.inputs[dst_input]
    if present in graph and graph.edge_store.has(present, dst, dst_input):
        raise InvalidArgumentError.at(
            dst,
            f"Input {dst_input} of node {dst.name} is fed from {present.name} already; update_edge feeds it from elsewhere",
            input=present.name,
        )
    feed(graph, tensor, dst, dst_input)
    return graph.edge_store.input_edge(dst, dst_input)


def _fitting(graph: Graph, src: Node, src_output: int, dst: Node, dst_input: int) -> Tensor:
    """Check that the output may feed the input. Self-loops are allowed and marked; cycles are refused."""
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


def update_edge(graph: Graph, src: Node, src_output: int, dst: Node, dst_input: int) -> None:
    """See `Graph.update_edge`."""
    tensor = _fitting(graph, src, src_output, dst, dst_input)
    graph.edge_store.remove(dst.inputs[dst_input], dst, dst_input)
    feed(graph, tensor, dst, dst_input)


def remove_edge(graph: Graph, edge: Edge) -> None:
    """See `Graph.remove_edge`."""
    src, dst = edge.src, edge.dst
    graph.owned(dst)
    if edge.is_control_edge:
        remove_control_edge(graph, src, dst)
        return
    found = graph.edge_store.find(src, dst, (edge.src_output, edge.dst_input)) if src in graph and dst in graph else None
    if found is None or found.id != edge.id:
        raise InvalidArgumentError.at(dst, f"Edge {edge} is not in the graph")
    graph.note(dst)
    graph.edge_store.remove(src.outputs[edge.src_output], dst, edge.dst_input)
    graph.publish("inputs", dst)
    infer_downstream(graph, dst, include_start=True)


def set_attr(graph: Graph, node: Node, name: str, value: object) -> None:
    """See `Graph.set_attr`."""
    graph.owned(node)
    attrs = dict(node.node_def.attr)
    if value is None:
        attrs.pop(name, None)
    else:
        declared = node.op_def.find_attr(name)
        attrs[name] = as_attr_value(value, None if declared is None else declared.type)
    node_def = msgspec.structs.replace(node.node_def, attr=attrs)
    if not node.is_opaque:
        _require_same_types(node, node_def, name)
    graph.note(node)
    node.node_def = node_def
    graph.publish("replaced", node)
    if not name.startswith("_"):
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


def set_shape(graph: Graph, tensor: Tensor, shape: Shape) -> None:
    """See `Graph.set_shape`."""
    graph.owned(tensor)
    graph.note(tensor.node)
    if graph.refiner.set_shape(tensor.node, tensor.index, shape):
        graph.publish("shapes", tensor.node)
        infer_downstream(graph, tensor.node)


def set_shape_like(graph: Graph, tensor: Tensor, other: Tensor) -> None:
    """See `Graph.set_shape_like`."""
    graph.owned(tensor)
    node, like = tensor.node, tensor.node.like
    graph.note(node)
    node.like = {**like, tensor.index: other}
    try:
        graph.refiner.add_node(node)
    except Exception:
        node.like = like
        raise
    graph.publish("shapes", node)


def shrink_type_info(graph: Graph, node: Node, index_mapping: Mapping[int, int], type_attr_name: str) -> None:
    """See `Graph.shrink_type_info`."""
    graph.owned(node)
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
    edges = [edge for edge in graph.edge_store.out_edges(node) if not edge.is_control_edge]
    lost = next((edge for edge in edges if edge.src_output not in numbers), None)
    if lost is not None:
        raise InvalidArgumentError(
            f"Output {lost.src_output} of node '{node.name}' feeds '{lost.dst.name}' and cannot be dropped", op=node.op, node=node.name
        )
    texts = (*[node.node_def.input[slot] for slot in slots], *[text for text in node.node_def.input if text[:1] == "^"])
    node_def = msgspec.structs.replace(node.node_def, attr=attr, input=texts)
    validate_node_def(node_def, node.op_def)
    _renumber(graph, node, node_def, slots, numbers, edges)


def _kept_slots(spans: list[tuple[bool, int, int]], kept: list[int]) -> list[int]:
    """The slots that are kept, in order: all of other args, and those of the list in `kept`."""
    return [slot for is_list, start, end in spans for slot in range(start, end) if not is_list or slot - start in kept]


def _renumber(graph: Graph, node: Node, node_def: NodeDef, slots: list[int], numbers: list[int], edges: list[Edge]) -> None:
    store = graph.edge_store
    inputs = [node.inputs[slot] for slot in slots]
    types = in_out_types_for_node(node_def, node.op_def)
    graph.note(node)
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
    graph.publish("replaced", node)
    for edge in edges:
        feed(graph, node.outputs[numbers.index(edge.src_output)], edge.dst, edge.dst_input)
    infer_downstream(graph, node, include_start=True)
