"""The order of nodes by start times."""

from __future__ import annotations

from typing import Final

from graphcore.definitions import GraphDef, NodeDef
from graphcore.errors import InvalidArgumentError
from graphcore.graph.model.search import topological_sort
from graphcore.graph.model.tensor_id import parse_tensor_name
from graphcore.plumbing import is_back_edge

START_TIME: Final = "_start_time"


def topological_sort_nodes_with_time_priority(graph_def: GraphDef) -> list[tuple[NodeDef, int]]:
    """The nodes in an order of execution, each with its start time.

    Of the ready nodes the one with the smallest time is next. The time of a node is its attr `_start_time`, or one more than the
    time of a producer if that is later. A Merge does not wait for a NextIteration.

    Args:
        graph_def: the graph; every node has the attr.

    Raises:
        InvalidArgumentError: a node has no start time.
    """
    nodes = {node.name: node for node in graph_def.node}
    own = {node.name: _start_time(node) for node in graph_def.node}
    start_times: dict[str, int] = {}

    def producers(name: str) -> list[str]:
        node = nodes[name]
        names = [_producer(text) for text in node.input]
        return [producer for producer in names if producer not in nodes or not is_back_edge(nodes[producer].op, node.op)]

    def start_time(name: str) -> int:
        after = [start_times[producer] + 1 for producer in producers(name) if producer in start_times]
        start_times[name] = max([own[name], *after])
        return start_times[name]

    order, _ = topological_sort(nodes, producers, start_time)
    return [(nodes[name], start_times[name]) for name in order]


def _producer(text: str) -> str:
    return text[1:] if text.startswith("^") else parse_tensor_name(text)[0]


def _start_time(node: NodeDef) -> int:
    time = node.attr.get(START_TIME)
    if not isinstance(time, int):
        raise InvalidArgumentError(f"No attr named '{START_TIME}' in NodeDef '{node.name}'", op=node.op, node=node.name, attr=START_TIME)
    return time
