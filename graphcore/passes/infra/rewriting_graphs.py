"""The mark of passes that rewrite a graph in place and keep what it computes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from graphcore.graph import Graph

_P = ParamSpec("_P")
_T = TypeVar("_T")


def rewrites(run: Callable[_P, _T]) -> Callable[_P, _T]:
    """Have a pass work on a settled graph; its changes are no reason to derive gradients and calls of functions anew."""

    @wraps(run)
    def settled(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        graph = next((each for each in (*args, *kwargs.values()) if isinstance(each, Graph)), None)
        if graph is None:
            return run(*args, **kwargs)
        with graph.derivations.kept():
            return run(*args, **kwargs)

    return settled
