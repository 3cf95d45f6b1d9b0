"""The default graph, which gets new nodes unless another graph is named."""

from __future__ import annotations

from graphcore.errors import FailedPreconditionError
from graphcore.graph.graph import Graph, innermost_default
from graphcore.graph.model.default_stack import stack

_global: list[Graph] = []


def get_default_graph() -> Graph:
    """The graph of the innermost `with graph.as_default()`, else the global graph."""
    innermost = innermost_default()
    if innermost is not None:
        return innermost
    if not _global:
        _global.append(Graph())
    return _global[0]


def reset_default_graph() -> Graph:
    """Start over with an empty global graph and return it.

    If runs of the last one are recorded, so are those of the new one.

    Raises:
        FailedPreconditionError: inside a `with graph.as_default()` block.
    """
    if stack.graphs:
        raise FailedPreconditionError("Do not use reset_default_graph() inside a `with graph.as_default()` block; leave it first")
    graph = Graph()
    graph.recording = _global[0].recording if _global else None
    _global[:] = [graph]
    return graph
