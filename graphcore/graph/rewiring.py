"""Changing what is there: replacing nodes in place, moving edges, inferring again what follows.

A live graph may be wrong for a while: what no longer fits is marked on the consumer (`Node.error`,
`Node.input_errors`) and is well again as soon as it fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from graphcore.definitions import NodeDef
from graphcore.dtypes import INVALID, DType
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.graph.node import Node, Tensor
from graphcore.graph.order import may_feed, refuse_cycle
from graphcore.inference import ShapeHandle
from graphcore.source import SourceLocation

if TYPE_CHECKING:
    from graphcore.graph.edges import Edge
    from graphcore.graph.graph import Graph


def input_text(tensor: Tensor) -> str:
    """How a NodeDef names this input: output 0 goes without its number."""
    return tensor.node.name if tensor.index == 0 else f"{tensor.node.name}:{tensor.index}"


def type_misfit(name: str, slot: int, tensor: Tensor, expected: DType) -> str:
    """What is wrong with the dtype of an input, "" if nothing is.

    A reference is accepted where its base is expected, and what an opaque node gives or takes (INVALID) is never wrong.
    """
    actual = tensor.node.output_types[tensor.index]
    if actual is expected or actual.base is expected or actual is INVALID or expected is INVALID:
        return ""
    return f"Input {slot} of node {name} was passed {actual.name} from {tensor.name} incompatible with expected {expected.name}."


def check_inputs(node_def: NodeDef, input_types: tuple[DType, ...], inputs: list[Tensor], source: SourceLocation | None) -> None:
    """Refuse inputs of the wrong number or dtype.

    Raises:
        InvalidArgumentError: saying which input was passed what.
    """
    if len(inputs) != len(input_types):
        wanted = ", ".join(dtype.name for dtype in input_types)
        raise InvalidArgumentError(
            f"NodeDef expected inputs '{wanted}' do not match {len(inputs)} inputs specified; NodeDef: {{{{node {node_def.name}}}}}",
            op=node_def.op,
            node=node_def.name,
            source=source,
        )
    for slot, tensor in enumerate(inputs):
        expected = input_types[slot]
        if tensor.node.output_types[tensor.index] is expected:
            continue
        problem = type_misfit(node_def.name, slot, tensor, expected)
        if problem:
            raise InvalidArgumentError(problem, op=node_def.op, node=node_def.name, input=tensor.name, source=source)


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
    graph.cells.disown(existing)
    existing.source = fresh.source
    graph.cells.own(existing)
    graph.names.take(existing.name)
    graph.gradient_records.pop(existing.name, None)
    if same and existing.error is None and existing.registration is fresh.registration:
        return existing
    _disconnect(graph, existing)
    _adopt(existing, fresh)
    _connect(graph, existing)
    graph.publish("replaced", existing)
    infer_downstream(graph, existing)
    return existing


def _adopt(existing: Node, fresh: Node) -> None:
    existing.node_def = fresh.node_def
    existing.op = fresh.op
    existing.op_def = fresh.op_def
    existing.registration = fresh.registration
    existing.input_types = fresh.input_types
    existing.output_types = fresh.output_types
    existing.inputs = fresh.inputs
    existing.control_inputs = fresh.control_inputs
    existing.output_handles = fresh.output_handles
    existing.constants = None
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
    touched = [consumer for consumer, slot in orphans if slot >= 0 and consumer in graph]
    for consumer, slot in orphans:
        if slot < 0 and consumer in graph:
            graph.note(consumer)
            consumer.input_errors = {**consumer.input_errors, -1 - removed.id: f"Control input '{removed.name}' is no longer in the graph"}
    infer_downstream(graph, *touched, include_start=True)


def attach(graph: Graph, node: Node, waiting: list[tuple[Node, int]]) -> list[tuple[Node, int]]:
    """Feed consumers that wait for a node of this name from `node`. Gives those that it depends on itself: they go on waiting."""
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
    """False if it has been fed from elsewhere in the meantime."""
    if slot < 0:
        return any(control.name == name for control in consumer.control_inputs)
    return slot < len(consumer.inputs) and consumer.inputs[slot].node.name == name


def feed(graph: Graph, tensor: Tensor, dst: Node, slot: int) -> None:
    """Feed input `slot` of `dst`, which nothing feeds, from `tensor`, which fits."""
    graph.note(dst)
    dst.inputs = [*dst.inputs[:slot], tensor, *dst.inputs[slot + 1 :]]
    graph.edge_store.add(tensor, dst, slot)
    texts = list(dst.node_def.input)
    texts[slot] = input_text(tensor)
    dst.node_def = msgspec.structs.replace(dst.node_def, input=tuple(texts))
    graph.publish("inputs", dst)
    infer_downstream(graph, dst, include_start=True)


def add_control_edge(graph: Graph, src: Node, dst: Node, *, allow_duplicates: bool) -> Edge | None:
    """See `Graph.add_control_edge`."""
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
    if not graph.edge_store.has_control(src, dst):
        return False
    graph.note(dst)
    dst.control_inputs = [control for control in dst.control_inputs if control is not src]
    graph.edge_store.remove_control(src, dst)
    text = f"^{src.name}"
    dst.node_def = msgspec.structs.replace(dst.node_def, input=tuple([name for name in dst.node_def.input if name != text]))
    graph.publish("inputs", dst)
    return True


def infer_downstream(graph: Graph, *starts: Node, include_start: bool = False) -> None:
    """Infer again what depends on `starts`, as far as anything changes."""
    changed: set[Node] = set() if include_start else set(starts)
    for node in _cone(graph, starts):
        graph.note(node)
        node.constants = None
        is_start = node in starts
        if is_start and not include_start:
            continue
        if not (is_start or node.asked_values or node.error is not None or any(t.node in changed for t in node.inputs)):
            continue
        before, had_error = node.output_handles, node.error
        _refit(graph, node)
        if is_start or not _same_shapes(before, node.output_handles) or had_error is not node.error:
            changed.add(node)
            graph.publish("shapes", node)


def _cone(graph: Graph, starts: tuple[Node, ...]) -> list[Node]:
    """`starts` and all that depends on them, producers first."""
    order: list[Node] = []
    done: set[Node] = set()
    for start in starts:
        pending: list[tuple[Node, bool]] = [(start, False)]
        while pending:
            node, leaving = pending.pop()
            if leaving:
                order.append(node)
                continue
            if node in done:
                continue
            done.add(node)
            pending.append((node, True))
            pending.extend((successor, False) for successor in graph.edge_store.successors(node) if successor not in done)
    order.reverse()
    return order


def _refit(graph: Graph, node: Node) -> None:
    controls = {slot: text for slot, text in node.input_errors.items() if slot < 0}
    problems = {slot: text for slot, tensor in enumerate(node.inputs) if (text := _input_problem(graph, node, slot, tensor))}
    node.input_errors = {**controls, **problems}
    if problems:
        node.error = InvalidArgumentError("; ".join(problems.values()), op=node.op, node=node.name, source=node.source)
        _forget_shapes(node)
        return
    try:
        graph.refiner.add_node(node)
    except GraphError as error:
        node.error = error
        node.input_errors = {**controls, **dict.fromkeys(range(len(node.inputs)), error.message)}
        _forget_shapes(node)
        return
    node.error = None


def _input_problem(graph: Graph, node: Node, slot: int, tensor: Tensor) -> str:
    if tensor not in graph:
        return f"Input {slot} of node {node.name}: '{tensor.node.name}' is {'not in the graph yet' if tensor.node.id < 0 else 'no longer in the graph'}"
    if tensor.node is node:
        return f"Input {slot} of node {node.name} is its own output '{tensor.name}': a cycle"
    if not graph.edge_store.has(tensor, node, slot):
        return f"Input {slot} of node {node.name} is fed by nothing: its edge from '{tensor.name}' is gone"
    if tensor.index >= len(tensor.node.outputs):
        return f"Input {slot} of node {node.name}: '{tensor.node.name}' (op {tensor.node.op}) has no output {tensor.index} any more"
    return type_misfit(node.name, slot, tensor, node.input_types[slot])


def _forget_shapes(node: Node) -> None:
    node.output_handles = tuple([ShapeHandle(None) for _ in node.outputs])
    node.constants = None


def _same_shapes(before: tuple[ShapeHandle, ...], after: tuple[ShapeHandle, ...]) -> bool:
    if len(before) != len(after):
        return False
    return all(a is b or _same_defined(a, b) for a, b in zip(before, after, strict=True))


def _same_defined(a: ShapeHandle, b: ShapeHandle) -> bool:
    if a.dims is None or b.dims is None or len(a.dims) != len(b.dims):
        return False
    return all(x is y or (x.value >= 0 and x.value == y.value) for x, y in zip(a.dims, b.dims, strict=True))
