"""Copies of whole graphs."""

from __future__ import annotations

from graphcore.errors import InvalidArgumentError
from graphcore.graph.model.node import NO_CONTROLS, Node, Tensor
from graphcore.graph.shapes.shaped_graph import ShapedGraph


def copy_graph(src: ShapedGraph, dst: ShapedGraph) -> dict[Node, Node]:
    """Copy nodes, edges, versions, functions and gradient records of `src` to `dst`, in order of ids.

    Returns:
        The copy of each node.

    Raises:
        InvalidArgumentError: `dst` is not empty.
        FailedPreconditionError: it has been finalized.
    """
    dst.refuse_finalized()
    if len(dst):
        raise InvalidArgumentError(f"The graph to copy into must be empty, but has {len(dst)} nodes")
    with src.lock, dst.transaction():
        if dst.library is not src.library:
            dst.add_function_library(src.library)
        dst.versions = src.versions
        dst.seed = src.seed
        dst.other_fields = src.other_fields
        dst.signatures = src.signatures
        dst.saver_nodes = src.saver_nodes
        dst.gradient_records.update(src.gradient_records)
        copies = {node: _bare_copy(node, dst, i) for i, node in enumerate(src.op_nodes(), dst.num_node_ids)}
        dst.ranks_are_stale = src.ranks_are_stale
        for rank, node in enumerate(sorted(copies, key=lambda node: node.rank), dst.num_node_ids):
            copies[node].rank = rank
        for node in copies:
            _connect(node, copies)
        dst.refiner.copy_from(src.refiner, copies)
        dst.edge_store.copy_from(src.edge_store, copies)
        for copied in copies.values():
            dst.node_store.adopt(copied)
            dst.names.take(copied.name)
            dst.journal.publish("added", copied)
        for name, consumer, slot in src.waiting():
            dst.node_store.await_node(name, copies[consumer], slot)
    return copies


def _connect(node: Node, copies: dict[Node, Node]) -> None:
    """Give the copy of `node` the copied inputs, control inputs and shapes from elsewhere."""
    copied = copies[node]
    copied.inputs = [_copied_tensor(tensor, copies) for tensor in node.inputs]
    copied.control_inputs = [copies.get(control, control) for control in node.control_inputs]
    if node.like:
        copied.like = {index: _copied_tensor(other, copies) if isinstance(other, Tensor) else other for index, other in node.like.items()}


def _bare_copy(node: Node, graph: ShapedGraph, number: int) -> Node:
    copied = Node(
        graph,  # type: ignore[arg-type]  # every plain graph is a `Graph`
        number,
        node.name,
        node.node_def,
        node.registration,
        [],
        NO_CONTROLS,
        node.input_types,
        node.output_types,
        node.source,
    )
    copied.output_handles = node.output_handles
    copied.handle_data = node.handle_data
    copied.requested_values = node.requested_values
    copied.assigned_device = node.assigned_device
    copied.error = node.error
    copied.input_errors = node.input_errors
    return copied


def _copied_tensor(tensor: Tensor, copies: dict[Node, Node]) -> Tensor:
    node = copies.get(tensor.node)
    return tensor if node is None else node.outputs[tensor.index]
