"""Adding many nodes to a graph whatever their order."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from graphcore.definitions import NodeDef, in_out_types_for_node
from graphcore.errors import InvalidArgumentError
from graphcore.graph.node import NO_CONTROLS, Node, Tensor

if TYPE_CHECKING:
    from graphcore.graph.graph import Graph


def fill_in_order(graph: Graph, nodes: Sequence[NodeDef]) -> None:
    """Add complete nodes to an empty graph, each as soon as its inputs are there, the first of the list before others.

    Raises:
        NotFoundError: an op is not registered.
        InvalidArgumentError: an input is missing, or of another type, or nodes wait for each other.
    """
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
