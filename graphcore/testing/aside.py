"""Nodes that only a check needs: they leave the graph when the check ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from graphcore.graph import Graph, get_default_graph


class _End(BaseException):
    """Ends a transaction without keeping its changes. No `except Exception` in between may take it."""


@contextmanager
def aside(graph: Graph | None = None) -> Iterator[None]:
    """Take back, at the end of a `with` block, all changes of a graph that were made within it.

    A check can then build on the tensors of an answer, as in `gc.gradients(answer, [x])`, and the student's graph, its names and its picture stay as they were.

    Args:
        graph: the graph; the default one if it is not given.

    Example:
        >>> x = gc.constant(2.0, name="x")
        >>> with gc.testing.aside():
        ...     gc.testing.runs_to(gc.square(x), 4.0)
        >>> [node.name for node in gc.get_default_graph().nodes]
        ['x']
    """
    try:
        with (get_default_graph() if graph is None else graph).transaction():
            yield
            raise _End
    except _End:
        pass
