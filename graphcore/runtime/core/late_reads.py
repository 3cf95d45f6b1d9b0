"""Expressions that wait for an assignment to a variable read its value after it.

TensorFlow's reference variables share their memory with `v/read`, so an expression there has the value of the moment at which it is computed.
Here arrays never change. A node that uses `v/read` and waits for an assignment to `v`, over edges of either kind, gets a read of its own
between the two. Reads under other names (`read_value`, `identity`) are values of their own moment.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from graphcore.attrs import attr_text
from graphcore.definitions import NodeDef
from graphcore.graph import Graph
from graphcore.graph.model.node import Node, Tensor, input_text, producers_of
from graphcore.graph.model.search import reachable
from graphcore.plumbing import IDENTITY, MERGE, STANDS_FOR, VALUE_OF

_READ: Final = "/read"


def is_own_read(node: Node) -> bool:
    """True iff `node` is the read `v/read` of a reference variable, by which expressions use it."""
    return (
        node.op == IDENTITY and node.name.endswith(_READ) and node.inputs[0].dtype.is_ref and node.name == node.inputs[0].node.name + _READ
    )


class LateRead(msgspec.Struct, frozen=True):
    """A read to add.

    Args:
        read: the node `v/read`.
        after: the nodes to wait for, by name: the producers of the consumers that wait for an assignment.
        consumers: the inputs to connect, each as the name of a node and a slot.
    """

    read: Node
    after: tuple[str, ...]
    consumers: list[tuple[str, int]]


def late_reads(needed: Sequence[Node], fed: Collection[Tensor]) -> list[LateRead]:
    """The reads to add to the nodes of a run.

    Args:
        needed: the nodes.
        fed: the fed tensors, which keep their values throughout.
    """
    writers: dict[Node, list[Node]] = {}
    for node in needed:
        if node.input_types and node.input_types[0].is_ref and node.registration.traits.writes_input:
            writers.setdefault(_variable(node), []).append(node)
        elif VALUE_OF in node.attr:  # calls take its handle
            writers.setdefault(_named(node), []).extend([consumer for consumer, slot in node.consumers() if slot >= 0])
    reads = [
        node
        for node in (needed if writers else ())
        if is_own_read(node) and node.inputs[0].node in writers and node.inputs[0] not in fed and node.outputs[0] not in fed
    ]
    if not reads:
        return []
    following: dict[Node, list[Node]] = {}
    for node in needed:
        for producer in producers_of(node):
            following.setdefault(producer, []).append(node)

    def after(nodes: Sequence[Node]) -> set[Node]:
        return reachable(nodes, lambda node: following.get(node, ()))

    waiting = after([writer for written in writers.values() for writer in written])
    additions: dict[tuple[Node, tuple[str, ...]], LateRead] = {}
    for read in reads:
        consumers = [node for node in dict.fromkeys(following.get(read, ())) if node in waiting and node.op not in MERGE]
        if not consumers:
            continue
        changed = after(writers[read.inputs[0].node])
        for node in consumers:
            slots = [slot for slot, tensor in enumerate(node.inputs) if tensor.node is read]
            names = tuple(dict.fromkeys([producer.name for producer in producers_of(node) if producer in changed]))
            if slots and names:  # a node that changes the variable itself reads before
                late = additions.setdefault((read, names), LateRead(read, names, []))
                late.consumers.extend([(node.name, slot) for slot in slots])
    return list(additions.values())


def add_late_reads(graph: Graph, late: Sequence[LateRead]) -> None:
    """Add reads to a copy of the nodes of a run."""
    nodes: Mapping[str, Node] = {node.name: node for node in graph.nodes}
    for late_read in late:
        read = nodes[late_read.read.name]
        after = [nodes[name] for name in late_read.after]
        name = graph.names.unique(f"{read.name}_again")
        inputs = (*[input_text(tensor) for tensor in read.inputs], *[f"^{node.name}" for node in after])
        definition = NodeDef(name, read.op, inputs, read.node_def.device, {**read.attr, STANDS_FOR: read.outputs[0].name.encode()})
        made = graph.builder.insert(
            definition, read.registration, list(read.inputs), after, read.input_types, read.output_types, read.source
        )
        made.assigned_device = read.assigned_device
        for consumer, slot in late_read.consumers:
            graph.update_edge(made, 0, nodes[consumer], slot)


def _named(handle: Node) -> Node:
    """The variable that a node is a handle of."""
    name = handle.attr[VALUE_OF]
    variable = handle.graph.find(attr_text(name))
    return handle if variable is None else variable


def _variable(node: Node) -> Node:
    """The variable whose reference `node` takes."""
    while node.input_types and node.input_types[0].is_ref:
        node = node.inputs[0].node
    return node
