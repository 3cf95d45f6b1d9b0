"""The whole state of a graph at one moment, to which it can return.

Nodes keep their identity, so that tensors held elsewhere stay valid.
"""

from __future__ import annotations

from typing import Any

from graphcore.graph.graph import Graph
from graphcore.graph.model.journal import node_state, restore_nodes
from graphcore.graph.model.node import Node
from graphcore.support.critical_section import critical_section
from graphcore.support.gc_pause import paused_collector


class Snapshot:
    """The state of a graph at the moment of its creation.

    It covers nodes, edges, names, collections, the function library, gradient records, derivations and the ownership of cells. It holds one
    tuple for each node, so that its size and time grow with the graph.

    Attributes:
        graph: the graph.
        version: the version of the graph in this state.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        graph.settle()
        with graph.lock, critical_section, paused_collector():
            self._take()

    def _take(self) -> None:
        graph = self.graph
        self.version = graph.version
        self._nodes: dict[Node, tuple[Any, ...]] = {node: node_state(node) for node in graph.node_store.by_name.values()}
        self._edges = graph.edge_store.copied()
        self._parts = graph.journal.parts_state()

    def restore(self) -> None:
        """Return to this state; the running cell goes on. Subscribers are notified of each node that changes.

        Raises:
            FailedPreconditionError: the graph is finalized.
        """
        graph = self.graph
        graph.refuse_finalized()
        graph.journal.atomically(self._restore)

    def _restore(self) -> None:
        graph = self.graph
        running = graph.cells.running
        before = {node: node_state(node) for node in graph.node_store.by_name.values()}
        with graph.derivations.kept(), paused_collector():
            restore_nodes(self._nodes)
            graph.edge_store.return_to(self._edges)
            graph.journal.restore_parts(self._parts)
            graph.cells.running = running
            self._publish(before)
        self._take()  # the graph goes on with the tables of this snapshot

    def _publish(self, before: dict[Node, tuple[Any, ...]]) -> None:
        journal = self.graph.journal
        journal.outdate()
        for node in before:
            if node not in self._nodes:
                journal.publish("removed", node)
        for node, state in self._nodes.items():
            if node not in before:
                journal.publish("added", node)
            elif any(one is not other for one, other in zip(before[node], state, strict=True)):
                journal.publish("replaced", node)
