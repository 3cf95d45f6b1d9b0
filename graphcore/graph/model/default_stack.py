"""The stack of default graphs of each thread, and the graphs around the body of a function."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphcore.errors import FailedPreconditionError
from graphcore.support.critical_section import critical_contextmanager

if TYPE_CHECKING:
    from graphcore.graph.graph import Graph


class _DefaultGraphStack(threading.local):
    def __init__(self) -> None:
        self.graphs: list[Graph] = []


stack = _DefaultGraphStack()


def building(graph: Graph) -> Graph:
    """The graph for nodes of operators on tensors of `graph`: the function body being traced, or itself.

    A body that is no longer traced takes no more nodes; the default graph refuses its tensors, with the reason.
    """
    graphs = stack.graphs
    if graphs and graphs[-1].outer is not None and graph in surrounding(graphs[-1]):
        return graphs[-1]
    if graph.outer is not None and graph not in graphs:
        return graphs[-1] if graphs else outermost(graph)
    return graph


def surrounding(graph: Graph) -> list[Graph]:
    """The graphs around the body of a function while it is traced, the innermost first."""
    graphs: list[Graph] = []
    while graph.outer is not None:
        graph = graph.outer
        graphs.append(graph)
    return graphs


def outermost(graph: Graph) -> Graph:
    """The graph around all functions being traced, `graph` itself outside of any."""
    return [graph, *surrounding(graph)][-1]


@critical_contextmanager
def default_graph(graph: Graph, *, nested: bool = True) -> Iterator[Graph]:
    """Make `graph` the default within the block.

    Args:
        graph: the graph.
        nested: False for a block that may be left before those that were entered later.

    Raises:
        FailedPreconditionError: the blocks are not nested.
    """
    scopes = graph.scopes
    outer = scopes.is_entered, scopes.around_colocation
    stack.graphs.append(graph)
    try:
        scopes.is_entered, scopes.around_colocation = True, None
        yield graph
    finally:
        scopes.is_entered, scopes.around_colocation = outer
        if not nested and graph in stack.graphs:
            stack.graphs.append(stack.graphs.pop(len(stack.graphs) - 1 - stack.graphs[::-1].index(graph)))
        if not stack.graphs or stack.graphs[-1] is not graph:
            raise FailedPreconditionError(
                "Nesting violated for default stack of graphs: blocks must be left in the order they were entered"
            )
        stack.graphs.pop()
