"""Single changes of a graph: Ctrl-C does not come into the middle of one, and subscribers learn of it when it is done."""

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
    """Refuse to change a graph that is read-only.

    Raises:
        FailedPreconditionError: it has been finalized.
    """
    if graph.finalized:
        raise FailedPreconditionError(FINALIZED)


def edit(graph: Graph, change: Callable[Concatenate[Graph, _P], _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """As `undivided`, for what changes nodes or edges. `change` refuses what it must before it changes anything.

    Raises:
        FailedPreconditionError: the graph has been finalized.
    """
    with graph.lock:
        refuse_finalized(graph)
        return undivided(graph, change, *args, **kwargs)


def undivided(graph: Graph, change: Callable[Concatenate[Graph, _P], _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call `change` with the graph and these arguments without a break; subscribers are told of its changes at its end."""
    with graph.lock, critical_section:
        if graph.unpublished is not None:
            return change(graph, *args, **kwargs)
        unpublished = graph.unpublished = []
        try:
            return change(graph, *args, **kwargs)
        finally:
            graph.unpublished = None
            graph.notify(unpublished)
