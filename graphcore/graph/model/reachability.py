"""Reachability: nodes that depend on given nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from graphcore.graph.model.search import reachable

if TYPE_CHECKING:
    from graphcore.graph.graph import Graph


def names_downstream(graph: Graph, names: Iterable[str]) -> set[str]:
    """`names` with the names of all nodes reachable from these along data edges."""
    with graph.lock:
        graph.edge_store.sync()
        reached_names = set(names)
        nodes = filter(None, map(graph.find, reached_names))
        return reached_names.union([node.name for node in reachable(nodes, graph.edge_store.data_successors())])
