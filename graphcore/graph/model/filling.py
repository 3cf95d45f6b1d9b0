"""Adding many nodes to a graph in any order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from graphcore.definitions import NodeDef, in_out_types_for_node
from graphcore.errors import InvalidArgumentError
from graphcore.graph.model.node import NO_CONTROLS, Node, Tensor
from graphcore.graph.model.plain_graph import PlainGraph
from graphcore.graph.model.search import topological_sort
from graphcore.graph.model.tensor_id import is_index
from graphcore.plumbing import is_back_edge
from graphcore.support.gc_pause import paused_collector


def fill_in_order(graph: PlainGraph, nodes: Sequence[NodeDef]) -> None:
    """Add complete nodes to an empty graph; each once its inputs are present, in list order.

    The Merge at the head of a loop is added before its back edges.

    Raises:
        NotFoundError: an op is not registered.
        InvalidArgumentError: an input is missing, or of another type, or there is a cycle.
    """
    numbers = {node.name: number for number, node in enumerate(nodes)}
    if len(numbers) != len(nodes):
        names = [node.name for node in nodes]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidArgumentError(f"Node '{twice}' is not unique", node=twice)
    with graph.lock, paused_collector():
        added = _fill_given(graph, nodes, numbers)
        if added < len(nodes):
            _fill_sorted(graph, nodes, added, numbers)


def _fill_given(graph: PlainGraph, nodes: Sequence[NodeDef], numbers: dict[str, int]) -> int:
    """Add nodes until one has an input from a later one. Returns their number."""
    for number, node in enumerate(nodes):
        if not _add(graph, node, numbers):
            return number
    return len(nodes)


def _fill_sorted(graph: PlainGraph, nodes: Sequence[NodeDef], first: int, numbers: dict[str, int]) -> None:
    """Add the nodes from index `first` on, which has an input from a later one."""
    around: list[tuple[str, int, str]] = []

    def awaited(number: int) -> list[int]:
        producers = [numbers.get(_producer(text), -1) for text in nodes[number].input]
        return [other for other in producers if other >= first and not is_back_edge(nodes[other].op, nodes[number].op)]

    order, left = topological_sort(range(first, len(nodes)), awaited, int)
    for number in order:
        _add(graph, _without_back_edges(graph, nodes[number], numbers, around), {})
    if left:
        stuck = nodes[left[0]]
        raise InvalidArgumentError(
            f"Graph is invalid, contains a cycle through '{stuck.name}' (op {stuck.op})", op=stuck.op, node=stuck.name
        )
    for name, slot, text in around:
        source, merge = graph.find(_producer(text)), graph.find(name)
        if source is not None and merge is not None:
            graph.editor.update_edge(source, 0 if source.name == text else int(text.rpartition(":")[2]), merge, slot)


def _without_back_edges(graph: PlainGraph, node: NodeDef, numbers: Mapping[str, int], around: list[tuple[str, int, str]]) -> NodeDef:
    """The `node` with loop back edges replaced by another input for now; recorded in `around`."""
    missing = [slot for slot, text in enumerate(node.input) if graph.find(_producer(text)) is None and _producer(text) in numbers]
    there = next((text for text in node.input if graph.find(_producer(text)) is not None and text[0] != "^"), None)
    if not missing or there is None:
        return node
    around += [(node.name, slot, node.input[slot]) for slot in missing]
    return msgspec.structs.replace(node, input=tuple([there if slot in missing else text for slot, text in enumerate(node.input)]))


def _producer(text: str) -> str:
    if text.startswith("^"):
        return text[1:]
    head, _, tail = text.rpartition(":")
    return head if head and is_index(tail) else text


def _add(graph: PlainGraph, node_def: NodeDef, later: Mapping[str, int]) -> bool:
    """Add a node; False if it has inputs from `later` nodes that are missing yet."""
    inputs: list[Tensor] = []
    controls: list[Node] = []
    for text in node_def.input:
        producer, index = graph.find(text), 0
        if producer is None:
            name = _producer(text)
            producer = graph.find(name)
            if producer is None:
                if name in later:
                    return False
                raise InvalidArgumentError(f"Node '{node_def.name}': Unknown input node '{text}'", op=node_def.op, node=node_def.name)
            if text[0] == "^":
                controls.append(producer)
                continue
            index = int(text.rpartition(":")[2])
        if index >= len(producer.outputs):
            raise InvalidArgumentError(
                f"Node '{node_def.name}': Connecting to invalid output {index} of source node {producer.name} "
                f"which has {len(producer.outputs)} outputs",
                op=node_def.op,
                node=node_def.name,
            )
        inputs.append(producer.outputs[index])
    registration = graph.library.look_up(node_def.op)
    input_types, output_types = in_out_types_for_node(node_def, registration.op_def)
    graph.builder.insert(node_def, registration, inputs, controls or NO_CONTROLS, input_types, output_types, None)
    return True
