"""Plain graphs whose nodes have inferred shapes."""

from __future__ import annotations

from graphcore.graph.model.plain_graph import PlainGraph
from graphcore.graph.shapes.live_refiner import LiveRefiner


class ShapedGraph(PlainGraph):
    """A plain graph with a refiner, which infers the shapes of its nodes."""

    refiner: LiveRefiner
