"""Graphs from NodeDefs in any order, and graphs from graphs."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from graphcore.definitions import NodeDef, in_out_types_for_node
from graphcore.errors import InvalidArgumentError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph.copying import copy_graph
from graphcore.graph.graph import Graph
from graphcore.graph.node import NO_CONTROLS, Node, Tensor


def graph_from_nodes(nodes: Sequence[NodeDef], library: FunctionLibraryDefinition | None = None) -> Graph:
    """A graph of these nodes; each is added as soon as its inputs are there, the first of the list before others.

    Args:
        nodes: complete NodeDefs (defaults filled in) in any order.
        library: where their ops are looked up, the graph's own from then on; an empty one unless given.

    Raises:
        NotFoundError: an op is not registered.
        InvalidArgumentError: an input is missing, or of another type, or nodes wait for each other.
    """
    graph = graph_with_library(library)
    numbers = {node.name: number for number, node in enumerate(nodes)}
    if len(numbers) != len(nodes):
        names = [node.name for node in nodes]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidArgumentError(f"Node '{twice}' is not unique", node=twice)
    waiting: list[int] = []
    waited_for: dict[int, list[int]] = {}
    ready: list[int] = []
    for number, node in enumerate(nodes):
        producers = {numbers[name] for name in map(_producer, node.input) if name in numbers}
        waiting.append(len(producers))
        for producer in producers:
            waited_for.setdefault(producer, []).append(number)
        if not producers:
            ready.append(number)
    heapify(ready)
    while ready:
        number = heappop(ready)
        _add(graph, nodes[number])
        for later in waited_for.get(number, ()):
            waiting[later] -= 1
            if not waiting[later]:
                heappush(ready, later)
    if len(graph) < len(nodes):
        stuck = next(node for node, count in zip(nodes, waiting, strict=True) if count)
        raise InvalidArgumentError(
            f"Graph is invalid, contains a cycle through '{stuck.name}' (op {stuck.op})", op=stuck.op, node=stuck.name
        )
    return graph


def graph_with_library(library: FunctionLibraryDefinition | None) -> Graph:
    """An empty graph whose function library is `library` itself, not a copy."""
    if library is None:
        return Graph()
    graph = Graph(library.default_registry)
    graph.library = library
    return graph


def copy_sharing_library(graph: Graph) -> tuple[Graph, dict[Node, Node]]:
    """A copy whose function library is that of `graph` itself, and which of its nodes stands for which."""
    made = graph_with_library(graph.library)
    return made, copy_graph(graph, made)


def in_order(graph: Graph) -> list[Node]:
    """The op nodes, producers first; by id where that does not matter.

    Raises:
        InvalidArgumentError: nodes wait for each other.
    """
    nodes = graph.nodes
    if all(other.id < node.id for node in nodes for other in producers_of(node)):
        return nodes
    waiting = {node: len(set(producers_of(node))) for node in nodes}
    waited_for: dict[Node, list[Node]] = {}
    for node in nodes:
        for producer in set(producers_of(node)):
            waited_for.setdefault(producer, []).append(node)
    ready = [(node.id, node) for node in nodes if not waiting[node]]
    order: list[Node] = []
    while ready:
        _, node = heappop(ready)
        order.append(node)
        for later in waited_for.get(node, ()):
            waiting[later] -= 1
            if not waiting[later]:
                heappush(ready, (later.id, later))
    if len(order) < len(nodes):
        stuck = next(node for node in nodes if waiting[node])
        raise InvalidArgumentError(
            f"Graph is invalid, contains a cycle through '{stuck.name}' (op {stuck.op})", op=stuck.op, node=stuck.name
        )
    return order


def producers_of(node: Node) -> list[Node]:
    """The nodes that `node` takes values from or waits for."""
    return [tensor.node for tensor in node.inputs] + node.control_inputs


def _producer(text: str) -> str:
    if text.startswith("^"):
        return text[1:]
    head, _, tail = text.rpartition(":")
    return head if head and tail.isdigit() else text


def _add(graph: Graph, node_def: NodeDef) -> None:
    registration = graph.library.look_up(node_def.op)
    inputs: list[Tensor] = []
    controls: list[Node] = []
    for text in node_def.input:
        producer = graph.find(_producer(text))
        if producer is None:
            raise InvalidArgumentError(f"Node '{node_def.name}': Unknown input node '{text}'", op=node_def.op, node=node_def.name)
        if text.startswith("^"):
            controls.append(producer)
            continue
        tail = text.rpartition(":")[2]
        index = int(tail) if text != producer.name and tail.isdigit() else 0
        if index >= len(producer.outputs):
            raise InvalidArgumentError(
                f"Node '{node_def.name}': Connecting to invalid output {index} of source node {producer.name} "
                f"which has {len(producer.outputs)} outputs",
                op=node_def.op,
                node=node_def.name,
            )
        inputs.append(producer.outputs[index])
    input_types, output_types = in_out_types_for_node(node_def, registration.op_def)
    graph.insert(node_def, registration, inputs, controls or NO_CONTROLS, tuple(input_types), tuple(output_types), None)
