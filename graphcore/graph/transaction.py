"""Transactions: changes to a graph that happen together or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from graphcore.graph.attempt import Attempt
from graphcore.graph.edge_undo import PairJournal

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


class _Before(Attempt):
    """What a graph was when a transaction began."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        assert not isinstance(graph.edge_store.journal, PairJournal), "a single change begins no transaction"
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
        self.complete()

    def complete(self) -> None:
        """Tell the subscribers, if nothing is around this one."""
        if self.outer is None:
            self.tell()

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
