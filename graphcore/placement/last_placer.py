"""The placer that ran last on a graph, and its placement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphcore.graph import Graph
from graphcore.graph.attached import Attached

if TYPE_CHECKING:
    from graphcore.placement.placement import Placement
    from graphcore.placement.placer import Placer

last_placer: Final[Attached[Placer]] = Attached()


def last_placement(graph: Graph) -> Placement | None:
    """The placement of the placer that ran last, None without one."""
    placer = last_placer.of(graph)
    return None if placer is None else placer.placement
