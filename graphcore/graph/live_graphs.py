"""The registry of live graphs, for notifications of all graphs however they are held."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakSet

if TYPE_CHECKING:
    from graphcore.graph.graph import Graph

_live: Final[WeakSet[Graph]] = WeakSet()


def note_graph(graph: Graph) -> None:
    """Register `graph`; it is removed when it is garbage-collected."""
    _live.add(graph)


def live_graphs() -> list[Graph]:
    """All live graphs, in no particular order."""
    return list(_live)
