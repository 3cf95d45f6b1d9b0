"""The registry of live graphs lists every graph that is referenced."""

from __future__ import annotations

import gc as garbage

from graphcore.graph import Graph, live_graphs


def test_a_graph_is_known_while_somebody_holds_it() -> None:
    graph = Graph()
    assert any(known is graph for known in live_graphs())
    count = len(live_graphs())
    del graph
    garbage.collect()
    assert len(live_graphs()) < count
