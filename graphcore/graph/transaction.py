"""Transactions: changes to a graph that happen together or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from graphcore.graph.journal import Journal
from graphcore.graph.node import Node

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
            try:
                before.begin()
                yield
                before.keep()
            except BaseException:
                before.end()
                raise
        except BaseException:
            before.end()  # Ctrl-C may have come before that was done
            raise


class _Before(Journal):
    """What a graph was when a transaction began.

    Attributes:
        outer: what a transaction around this one notes, None if there is none.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        outer = graph.journal
        assert isinstance(outer, _Before | None), "a single change begins no transaction"
        self.outer = outer
        self._first_new_id = graph.num_node_ids
        self._noted: set[Node] = set()
        self.edges = graph.edge_store.state(self._first_new_id)
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
        self.derivations = graph.derivations.state()
        self.library = graph.library.state()
        self.told_outside = 0 if self.outer is None else len(self.outer.changes)

    def note(self, node: Node) -> None:
        """Keep what `node` is now, once; nothing is kept of a new one."""
        if node.id < self._first_new_id and node not in self._noted:
            super().note(node)
            self._noted.add(node)

    def begin(self) -> None:
        """Note from now on what changes."""
        self.graph.edge_store.begin(self.edges)
        self.graph.journal = self

    def keep(self) -> None:
        """All went well: what is around this one takes over what was noted, or else the subscribers are told."""
        graph, outer = self.graph, self.outer
        graph.edge_store.keep(self.edges)
        if outer is not None:
            outer.changes += self.changes
            outer.log += self.log
            outer._noted |= self._noted
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
        self.restore_nodes()
        if self.outer is not None:
            del self.outer.changes[self.told_outside :]
        graph.restore_registers(self.registers)
        graph.version, graph.versions, graph.seed, graph.finalized, graph.other_fields, graph.signatures = self.values
        graph.library.finalized = graph.finalized
        graph.refiner.restore(self.refiner)
        graph.collections.clear()
        for name, (items, content) in self.collections.items():
            items[:] = content
            graph.collections[name] = items
        graph.gradient_records.clear()
        graph.gradient_records.update(self.gradient_records)
        graph.names.restore(self.names)
        graph.cells.restore(self.cells)
        graph.derivations.restore(self.derivations)
        graph.library.restore(self.library)
        graph.journal = self.outer
