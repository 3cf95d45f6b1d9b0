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
            before.begin()
            yield
            before.keep()
        except BaseException:
            before.end()
            raise


class _Before:
    """What a graph was when a transaction began.

    Ctrl-C may come at any time: making this changes nothing yet, and whatever else it does can be done once more.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.outer = graph.journal
        self.journal = NodeJournal(graph.num_node_ids)
        self.edges = graph.edge_store.state(graph.num_node_ids)
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
        self.told_outside = 0 if self.outer is None else len(self.outer.changes)
        self.is_kept = False
        self.told = 0

    def begin(self) -> None:
        """Note from now on what changes."""
        self.graph.edge_store.begin(self.edges)
        self.graph.journal = self.journal

    def keep(self) -> None:
        """All went well: what is around this one takes over what was noted, or else the subscribers are told."""
        graph, outer = self.graph, self.outer
        graph.edge_store.keep(self.edges)
        if outer is not None:
            outer.absorb(self.journal)
        graph.journal = outer
        self.is_kept = True
        self.tell()

    def tell(self) -> None:
        """Tell the subscribers of the changes that they have not been told of."""
        while self.outer is None and self.told < len(self.journal.changes):
            try:
                self.graph.tell(self.journal.changes[self.told])
            except Exception:  # of a subscriber, which will not do better the next time
                self.told += 1
                raise
            self.told += 1

    def end(self) -> None:
        """Something ended the transaction: bring everything back, or end what `keep` has begun."""
        try:
            self._end()
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        if self.is_kept:
            self.tell()
        else:
            self.restore()

    def restore(self) -> None:
        """Bring everything back."""
        graph = self.graph
        graph.edge_store.restore(self.edges)
        self.journal.restore()
        if self.outer is not None:
            del self.outer.changes[self.told_outside :]
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
        graph.journal = self.outer
