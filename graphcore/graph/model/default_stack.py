"""The stack of default graphs of each thread."""

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
    """The graph for nodes of operators on tensors of `graph`: the function body being traced, or itself."""
    graphs = stack.graphs
    if not graphs or graphs[-1].outer is None:
        return graph
    outer: Graph | None = graphs[-1]
    while outer is not None:
        if outer is graph:
            return graphs[-1]
        outer = outer.outer
    return graph


@critical_contextmanager
def default_graph(graph: Graph) -> Iterator[Graph]:
    """Make `graph` the default within the block.

    Raises:
        FailedPreconditionError: the blocks are not nested.
    """
    stack.graphs.append(graph)
    try:
        yield graph
    finally:
        if not stack.graphs or stack.graphs[-1] is not graph:
            raise FailedPreconditionError(
                "Nesting violated for default stack of graphs: blocks must be left in the order they were entered"
            )
        stack.graphs.pop()
