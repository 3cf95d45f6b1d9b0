"""Replacement of nodes in place, and connection of inputs that await a node."""

from __future__ import annotations

from graphcore.errors import InvalidArgumentError
from graphcore.graph.model.node import Node, Tensor
from graphcore.graph.model.topological_order import may_feed, refuse_cycle
from graphcore.graph.shapes.propagation import infer_downstream, note_replaced, same_outputs
from graphcore.graph.shapes.shaped_graph import ShapedGraph
from graphcore.source import SourceLocation


def replace(graph: ShapedGraph, existing: Node, fresh: Node) -> Node:
    """Give `existing` the definition, inputs and source of `fresh`; its consumers keep their edges.

    Raises:
        InvalidArgumentError: a new input depends on the node itself.
    """
    graph.edge_store.sync()
    same = existing.node_def == fresh.node_def and existing.inputs == fresh.inputs and existing.control_inputs == fresh.control_inputs
    if not same:
        _refuse_circle(graph, existing, fresh)
    graph.journal.note(existing)
    _record_remake(graph, existing, fresh.source)
    if same and existing.error is None and existing.registration is fresh.registration:
        return existing
    graph.node_store.stop_awaiting(existing)
    _disconnect(graph, existing)
    unchanged = existing.error is None and same_outputs(existing, fresh)
    _adopt(existing, fresh, same_shapes=unchanged)
    _connect(graph, existing)
    graph.journal.publish("replaced", existing)
    note_replaced(graph, existing, same_shapes=unchanged)
    return existing


def _refuse_circle(graph: ShapedGraph, existing: Node, fresh: Node) -> None:
    """Check that the new inputs do not depend on the node. The picture shows the one that does."""
    try:
        refuse_cycle(graph, existing, [tensor.node for tensor in fresh.inputs] + fresh.control_inputs)
    except InvalidArgumentError as error:
        graph.cells.circle = existing, error.input
        raise


def _record_remake(graph: ShapedGraph, node: Node, source: SourceLocation | None) -> None:
    """Record that code at `source` has made `node` again."""
    graph.cells.disown(node)
    node.source = source
    graph.cells.own(node)
    graph.names.take(node.name)
    graph.gradient_records.pop(node.name, None)


def _adopt(existing: Node, fresh: Node, *, same_shapes: bool) -> None:
    existing.node_def = fresh.node_def
    existing.op = fresh.op
    existing.op_def = fresh.op_def
    existing.registration = fresh.registration
    existing.input_types = fresh.input_types
    existing.output_types = fresh.output_types
    existing.inputs = fresh.inputs
    existing.control_inputs = fresh.control_inputs
    if not same_shapes:
        existing.output_handles = fresh.output_handles
        existing.handle_data = fresh.handle_data
    existing.like = fresh.like
    existing.requested_values = fresh.requested_values
    existing.error = None
    existing.input_errors = {}
    count = len(fresh.output_types)
    kept = existing.outputs[:count]
    existing.outputs = kept + [Tensor(existing, i) for i in range(len(kept), count)]


def _connect(graph: ShapedGraph, node: Node) -> None:
    for slot, tensor in enumerate(node.inputs):
        if tensor in graph:
            graph.edge_store.add(tensor, node, slot)
    for control in node.control_inputs:
        graph.edge_store.add_control(control, node)


def _disconnect(graph: ShapedGraph, node: Node) -> None:
    for slot, tensor in enumerate(node.inputs):
        if tensor in graph:
            graph.edge_store.remove(tensor, node, slot)
    for control in node.control_inputs:
        if control in graph:
            graph.edge_store.remove_control(control, node)


def attach(graph: ShapedGraph, node: Node, waiting: list[tuple[Node, int]]) -> list[tuple[Node, int]]:
    """Connect consumers that wait for a node of this name. Returns those that it depends on, which keep waiting."""
    graph.edge_store.sync()
    fed: list[tuple[Node, int]] = []
    refused: list[tuple[Node, int]] = []
    for consumer, slot in waiting:
        if not _waits_for(consumer, slot, node.name):
            continue
        if not may_feed(graph, node, consumer):
            refused.append((consumer, slot))
            continue
        fed.append((consumer, slot))
        graph.journal.note(consumer)
        if slot < 0:
            consumer.control_inputs = [node if control.name == node.name else control for control in consumer.control_inputs]
            consumer.input_errors = {k: text for k, text in consumer.input_errors.items() if k >= 0}
            graph.edge_store.add_control(node, consumer)
            continue
        index = consumer.inputs[slot].index
        if index < len(node.outputs):
            consumer.inputs = [*consumer.inputs[:slot], node.outputs[index], *consumer.inputs[slot + 1 :]]
            graph.edge_store.add(node.outputs[index], consumer, slot)
    infer_downstream(graph, *(consumer for consumer, slot in fed if slot >= 0), include_start=True)
    return refused


def _waits_for(consumer: Node, slot: int, name: str) -> bool:
    """False if it was connected to another node meanwhile."""
    if slot < 0:
        return any(control.name == name for control in consumer.control_inputs)
    return slot < len(consumer.inputs) and consumer.inputs[slot].node.name == name
