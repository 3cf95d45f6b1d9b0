"""The marker of passes that rewrite a graph in place and preserve its results."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from graphcore.graph import Graph

_P = ParamSpec("_P")
_T = TypeVar("_T")


def rewrites(run: Callable[_P, _T]) -> Callable[_P, _T]:
    """Run a pass on a settled graph; its changes do not cause nodes to be derived again."""

    @wraps(run)
    def settled(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        graph = next((argument for argument in (*args, *kwargs.values()) if isinstance(argument, Graph)), None)
        if graph is None:
            return run(*args, **kwargs)
        with graph.derivations.kept():
            return run(*args, **kwargs)

    return settled
