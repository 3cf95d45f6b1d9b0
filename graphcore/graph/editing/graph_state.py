"""The state of a graph beside its nodes and edges, at one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphcore.graph.graph import Graph


class GraphState:
    """The state of a graph beside its nodes and edges, to which it can return.

    The dicts are copied whole, because the order of their entries is a part of the state.
    """

    def __init__(self, graph: Graph) -> None:
        self._values: tuple[Any, ...] = (graph.versions, graph.seed, graph.other_fields, graph.signatures, graph.ranks_are_stale)
        self._store = graph.node_store.state()
        self._refiner = graph.refiner.state()
        self._collections = {name: (items, list(items)) for name, items in graph.collections.items()}
        self._named_variables = dict(graph.named_variables)
        self._gradient_records = dict(graph.gradient_records)
        self._names = graph.names.state()
        self._cells = graph.cells.state()
        self._derivations = graph.derivations.state()
        self._library = graph.library.state()

    def restore(self, graph: Graph) -> None:
        """Make it the state of `graph` again."""
        graph.versions, graph.seed, graph.other_fields, graph.signatures, graph.ranks_are_stale = self._values
        graph.node_store.restore(self._store)
        graph.refiner.restore(self._refiner)
        graph.collections.clear()
        for name, (items, content) in self._collections.items():
            items[:] = content
            graph.collections[name] = items
        graph.named_variables = dict(self._named_variables)
        graph.gradient_records.clear()
        graph.gradient_records.update(self._gradient_records)
        graph.names.restore(self._names)
        graph.cells.restore(self._cells)
        graph.derivations.restore(self._derivations)
        graph.library.restore(self._library)
