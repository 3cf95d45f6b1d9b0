"""Reachability: nodes that depend on given nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphcore.graph.graph import Graph


def names_downstream(graph: Graph, names: Iterable[str]) -> set[str]:
    """`names` with the names of all nodes reachable from these along data edges."""
    with graph.lock:
        graph.edge_store.sync()
        return _reached(graph, set(names))


def _reached(graph: Graph, reached: set[str]) -> set[str]:
    pending = [node for name in reached if (node := graph.find(name)) is not None]
    successors = graph.edge_store.data_successors()
    while pending:
        for node in successors(pending.pop()):
            if node.name not in reached:
                reached.add(node.name)
                pending.append(node)
    return reached
