"""Atomic changes of a graph: Ctrl-C is deferred to the end, when subscribers are notified."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, TypeVar

from graphcore.errors import FailedPreconditionError
from graphcore.support.critical_section import critical_section

if TYPE_CHECKING:
    from graphcore.graph.graph import Graph

FINALIZED: Final = "The graph has been finalized and cannot be modified"
_P = ParamSpec("_P")
_T = TypeVar("_T")


def refuse_finalized(graph: Graph) -> None:
    """Check that a graph is not read-only.

    Raises:
        FailedPreconditionError: it has been finalized.
    """
    if graph.finalized:
        raise FailedPreconditionError(FINALIZED)


def edit(graph: Graph, change: Callable[Concatenate[Graph, _P], _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Make an atomic edit of nodes or edges. `change` must check its arguments before any change.

    Raises:
        FailedPreconditionError: the graph has been finalized.
    """
    with graph.lock:
        refuse_finalized(graph)
        return undivided(graph, change, *args, **kwargs)


def undivided(graph: Graph, change: Callable[Concatenate[Graph, _P], _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call `change` atomically with the graph and these arguments; subscribers are notified at its end."""
    with graph.lock, critical_section:
        if graph.unpublished is not None:
            return change(graph, *args, **kwargs)
        unpublished = graph.unpublished = []
        try:
            return change(graph, *args, **kwargs)
        finally:
            graph.unpublished = None
            graph.notify(unpublished)
