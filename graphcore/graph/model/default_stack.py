"""The stack of default graphs of each thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TypeVar

from graphcore.errors import FailedPreconditionError
from graphcore.graph.model.plain_graph import PlainGraph
from graphcore.support.critical_section import critical_contextmanager

G = TypeVar("G", bound=PlainGraph)


class _DefaultGraphStack(threading.local):
    def __init__(self) -> None:
        self.graphs: list[PlainGraph] = []


stack = _DefaultGraphStack()


@critical_contextmanager
def default_graph(graph: G, *, nested: bool = True) -> Iterator[G]:
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
