"""Transactions: changes to a graph that happen together or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from graphcore.graph.journal import NodeJournal

if TYPE_CHECKING:
    from graphcore.graph.graph import Graph


@contextmanager
def transaction(graph: Graph) -> Iterator[None]:
    """Do what the block does, or nothing: if it raises, the graph is exactly as it was and nobody was told of any change.

    That holds for nodes and their ids, edges, names, collections, function library, versions, gradient records, cell ownership and
    `graph.version`. Subscribers learn of the changes when the outermost block has ended well. Other threads wait meanwhile.
    """
    with graph.lock:
        before = _Before(graph)
        try:
            yield
        except BaseException:
            before.restore()
            raise
        changes = before.keep()
        for change in changes:
            graph.tell(change)


class _Before:
    """What a graph was when a transaction began."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.outer = graph.journal
        self.journal = graph.journal = NodeJournal(graph.num_node_ids)
        self.edges = graph.edge_store.begin(graph.num_node_ids)
        self.registers = graph.registers()
        self.values: tuple[Any, ...] = (
            graph.version,
            graph.versions,
            graph.seed,
            graph.finalized,
            graph.other_fields,
            graph.signatures,
        )
        self.refiner = graph.refiner.state()
        self.collections = {name: (items, list(items)) for name, items in graph.collections.items()}
        self.gradient_records = dict(graph.gradient_records)
        self.names = graph.names.state()
        self.cells = graph.cells.state()
        self.library = graph.library.state()

    def keep(self) -> list[Any]:
        """All went well. Gives the changes that are to be told now."""
        graph, journal = self.graph, self.journal
        graph.edge_store.end(self.edges, failed=False)
        graph.journal = self.outer
        if self.outer is None:
            return journal.changes
        self.outer.absorb(journal)
        return []

    def restore(self) -> None:
        """Bring everything back."""
        graph = self.graph
        graph.edge_store.end(self.edges, failed=True)
        graph.journal = self.outer
        self.journal.restore()
        graph.restore_registers(self.registers)
        graph.version, graph.versions, graph.seed, graph.finalized, graph.other_fields, graph.signatures = self.values
        graph.refiner.restore(self.refiner)
        graph.collections.clear()
        for name, (items, content) in self.collections.items():
            items[:] = content
            graph.collections[name] = items
        graph.gradient_records.clear()
        graph.gradient_records.update(self.gradient_records)
        graph.names.restore(self.names)
        graph.cells.restore(self.cells)
        graph.library.restore(self.library)
