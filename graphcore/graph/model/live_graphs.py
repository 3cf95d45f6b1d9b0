"""The graphs that exist: whoever follows cells must tell them all, however the user holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakSet

if TYPE_CHECKING:
    from graphcore.graph.graph import Graph

_live: Final[WeakSet[Graph]] = WeakSet()


def note_graph(graph: Graph) -> None:
    """Count `graph` among the living; it leaves by itself when nobody holds it any more."""
    _live.add(graph)


def live_graphs() -> list[Graph]:
    """All graphs that somebody holds, in no particular order."""
    return list(_live)
