"""Lazy imports of the live views: ipywidgets takes longer to import than a file to draw."""

from __future__ import annotations

from typing import Any, Final

from graphcore.support.safe_import import import_whole

_VIEWS: Final = {"FunctionView": "widgets.live.function_view", "GraphView": "widgets.live.graph_view"}


def live_view(name: str) -> Any:
    """The class of a live view: the `__getattr__` of the package.

    Raises:
        AttributeError: there is no such class.
    """
    if name not in _VIEWS:
        raise AttributeError(f"module 'widgets' has no attribute '{name}'")
    return getattr(import_whole(_VIEWS[name]), name)
