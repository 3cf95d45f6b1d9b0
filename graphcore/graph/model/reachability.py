"""Reachability: nodes that depend on given nodes."""

from __future__ import annotations

from collections.abc import Iterable

from graphcore.graph.model.plain_graph import PlainGraph
from graphcore.graph.model.search import reachable


def names_downstream(graph: PlainGraph, names: Iterable[str]) -> set[str]:
    """`names` with the names of all nodes reachable from these along data edges."""
    with graph.lock:
        graph.edge_store.sync()
        reached_names = set(names)
        nodes = filter(None, map(graph.find, reached_names))
        return reached_names.union([node.name for node in reachable(nodes, graph.edge_store.data_successors())])
