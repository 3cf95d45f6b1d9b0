"""Edits of existing nodes: in-place replacement, moved edges, and new inference downstream.

A live graph may be inconsistent for a while: misfits are marked on the consumer (`Node.error`, `Node.input_errors`), and the marks are
removed once it fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from graphcore.errors import FailedPreconditionError, InvalidArgumentError
from graphcore.graph.editing.atomic_change import FINALIZED
from graphcore.graph.model.node import Node, Tensor, input_text
from graphcore.graph.model.topological_order import may_feed, refuse_cycle
from graphcore.graph.shapes.propagation import infer_downstream, infer_orphan, note_replaced, same_outputs
from graphcore.source import SourceLocation

if TYPE_CHECKING:
    from graphcore.graph.graph import Graph
    from graphcore.graph.model.edge import Edge

RESERVED: Final = frozenset({"_SOURCE", "_SINK"})
"""The names of every graph's own source and sink."""


def remove_all(graph: Graph, nodes: Sequence[Node]) -> None:
    """Remove nodes, consumers before producers if given in creation order, with their private nodes."""
    for node in reversed(nodes):
        _remove(graph, node)
    for companion in graph.library.companions if nodes else ():
        companion.sweep(graph)


def clear(graph: Graph) -> None:
    """See `Graph.clear`."""
    remove_all(graph, graph.nodes)


def remove_node(graph: Graph, node: Node) -> None:
    """See `Graph.remove_node`."""
    graph.owned(node)
    if not node.is_op:
        raise InvalidArgumentError(f"'{node.name}' cannot be removed: every graph has it", node=node.name, op=node.op)
    _remove(graph, node)


def _remove(graph: Graph, node: Node) -> None:
    orphans = graph.consumers(node)
    graph.edge_store.remove_node(node)
    _forget(graph, node)
    for consumer, slot in orphans:
        graph.node_store.await_node(node.name, consumer, slot)
    graph.publish("removed", node)
    mark_orphans(graph, node, orphans)


def _forget(graph: Graph, node: Node) -> None:
    """Take a node without edges out of the tables."""
    graph.node_store.remove(node)
    graph.names.free(node.name)
    graph.gradient_records.pop(node.name, None)
    graph.cells.disown(node)


def require_new(graph: Graph, name: str, op: str) -> None:
    """Check that a new node may be added.

    Raises:
        FailedPreconditionError: the graph is finalized.
        InvalidArgumentError: the name belongs to another node, which the running cell may not replace.
    """
    if graph.finalized:
        raise FailedPreconditionError(FINALIZED, node=name, op=op)
    existing = graph.find(name)
    if (existing is not None and not graph.cells.may_replace(existing)) or name in RESERVED:
        source = None if existing is None else existing.source
        raise InvalidArgumentError(f"Node name '{name}' already exists in the Graph", op=op, node=name, source=source)


def replace(graph: Graph, existing: Node, fresh: Node) -> Node:
    """Give `existing` the definition, inputs and source of `fresh`; its consumers keep their edges.

    Raises:
        InvalidArgumentError: a new input depends on the node itself.
    """
    graph.edge_store.sync()
    same = existing.node_def == fresh.node_def and existing.inputs == fresh.inputs and existing.control_inputs == fresh.control_inputs
    if not same:
        refuse_cycle(graph, existing, [tensor.node for tensor in fresh.inputs] + fresh.control_inputs)
    graph.note(existing)
    _made_again(graph, existing, fresh.source)
    if same and existing.error is None and existing.registration is fresh.registration:
        return existing
    graph.node_store.stop_awaiting(existing)
    _disconnect(graph, existing)
    unchanged = existing.error is None and same_outputs(existing, fresh)
    _adopt(existing, fresh, keep_shapes=unchanged)
    _connect(graph, existing)
    graph.publish("replaced", existing)
    note_replaced(graph, existing, same_shapes=unchanged)
    return existing


def _made_again(graph: Graph, node: Node, source: SourceLocation | None) -> None:
    """Record that code at `source` has made `node` again."""
    graph.cells.disown(node)
    node.source = source
    graph.cells.own(node)
    graph.names.take(node.name)
    graph.gradient_records.pop(node.name, None)


def _adopt(existing: Node, fresh: Node, *, keep_shapes: bool) -> None:
    existing.node_def = fresh.node_def
    existing.op = fresh.op
    existing.op_def = fresh.op_def
    existing.registration = fresh.registration
    existing.input_types = fresh.input_types
    existing.output_types = fresh.output_types
    existing.inputs = fresh.inputs
    existing.control_inputs = fresh.control_inputs
    if not keep_shapes:
        existing.output_handles = fresh.output_handles
        existing.handle_data = fresh.handle_data
    existing.like = fresh.like
    existing.asked_values = fresh.asked_values
    existing.error = None
    existing.input_errors = {}
    count = len(fresh.output_types)
    kept = existing.outputs[:count]
    existing.outputs = kept + [Tensor(existing, i) for i in range(len(kept), count)]


def _connect(graph: Graph, node: Node) -> None:
    for slot, tensor in enumerate(node.inputs):
        if tensor in graph:
            graph.edge_store.add(tensor, node, slot)
    for control in node.control_inputs:
        graph.edge_store.add_control(control, node)


def _disconnect(graph: Graph, node: Node) -> None:
    for slot, tensor in enumerate(node.inputs):
        if tensor in graph:
            graph.edge_store.remove(tensor, node, slot)
    for control in node.control_inputs:
        if control in graph:
            graph.edge_store.remove_control(control, node)


def mark_orphans(graph: Graph, removed: Node, orphans: list[tuple[Node, int]]) -> None:
    """Mark the consumers of a removed node."""
    if not orphans:
        return
    touched = [consumer for consumer, slot in orphans if slot >= 0 and consumer in graph]
    for consumer, slot in orphans:
        if slot < 0 and consumer in graph:
            graph.note(consumer)
            consumer.input_errors = {**consumer.input_errors, -1 - removed.id: f"Control input '{removed.name}' is no longer in the graph"}
    if len(touched) == 1:
        infer_orphan(graph, touched[0], removed)
    else:
        infer_downstream(graph, *touched, include_start=True)


def attach(graph: Graph, node: Node, waiting: list[tuple[Node, int]]) -> list[tuple[Node, int]]:
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
        graph.note(consumer)
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


def feed(graph: Graph, tensor: Tensor, dst: Node, slot: int) -> None:
    """Connect the open input `slot` of `dst` to `tensor`, which fits."""
    graph.note(dst)
    graph.node_store.stop_awaiting(dst, (slot,))
    dst.inputs = [*dst.inputs[:slot], tensor, *dst.inputs[slot + 1 :]]
    graph.edge_store.add(tensor, dst, slot)
    texts = list(dst.node_def.input)
    texts[slot] = input_text(tensor)
    dst.node_def = msgspec.structs.replace(dst.node_def, input=tuple(texts))
    graph.publish("inputs", dst)
    infer_downstream(graph, dst, include_start=True)


def add_control_edge(graph: Graph, src: Node, dst: Node, *, allow_duplicates: bool) -> Edge | None:
    """See `Graph.add_control_edge`."""
    graph.owned(src)
    graph.owned(dst)
    store = graph.edge_store
    if not allow_duplicates and store.has_control(src, dst):
        return None
    refuse_cycle(graph, dst, [src])
    graph.note(dst)
    if src.is_op and dst.is_op:
        if src not in dst.control_inputs:
            dst.control_inputs = [*dst.control_inputs, src]
        text = f"^{src.name}"
        if not allow_duplicates and text not in dst.node_def.input:
            dst.node_def = msgspec.structs.replace(dst.node_def, input=(*dst.node_def.input, text))
    store.add_control(src, dst, allow_duplicates=allow_duplicates)
    graph.publish("inputs", dst)
    return store.last_control(src, dst)


def remove_control_edge(graph: Graph, src: Node, dst: Node) -> bool:
    """See `Graph.remove_control_edge`."""
    graph.owned(src)
    graph.owned(dst)
    if not graph.edge_store.has_control(src, dst):
        return False
    graph.note(dst)
    dst.control_inputs = [control for control in dst.control_inputs if control is not src]
    graph.edge_store.remove_control(src, dst)
    text = f"^{src.name}"
    dst.node_def = msgspec.structs.replace(dst.node_def, input=tuple([name for name in dst.node_def.input if name != text]))
    graph.publish("inputs", dst)
    return True
