"""The state of a graph at the beginning of a transaction."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from graphcore.graph.editing.changes import Change
from graphcore.graph.model.node import Node

if TYPE_CHECKING:
    from graphcore.graph.graph import Graph

STATE: Final = (
    "op",
    "_definition",
    "registration",
    "op_def",
    "input_types",
    "output_types",
    "inputs",
    "control_inputs",
    "_outputs",
    "output_handles",
    "handle_data",
    "constants",
    "requested_values",
    "like",
    "rank",
    "assigned_device",
    "source",
    "error",
    "input_errors",
)
"""The attributes of a node that changes replace."""
state_of: Final = attrgetter(*STATE)


class Before:
    """The state of a graph at the beginning of a transaction.

    Each node is saved before its first change. The top-level dicts are copied whole, because the order of their entries must be restored.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._outer = graph.editor.before
        self._outer_unpublished = graph.editor.unpublished
        self._first_new_id = graph.num_node_ids
        self._nodes: dict[Node, tuple[Any, ...]] = {}
        self._nodes_before = graph.node_store.state()
        self._values: tuple[Any, ...] = (
            graph.editor.version,
            graph.versions,
            graph.seed,
            graph.finalized,
            graph.other_fields,
            graph.signatures,
            graph.ranks_are_stale,
        )
        self._refiner = graph.refiner.state()
        self._collections = {name: (items, list(items)) for name, items in graph.collections.items()}
        self._gradient_records = dict(graph.gradient_records)
        self._names = graph.names.state()
        self._cells = graph.cells.state()
        self._derivations = graph.derivations.state()
        self._library = graph.library.state()
        self._edges = graph.edge_store.begin(self._first_new_id)
        graph.editor.before = self
        self._unpublished: list[Change] = []
        graph.editor.unpublished = self._unpublished

    def note(self, node: Node) -> None:
        """Save the state of `node`, once; new nodes are not saved."""
        if node.id < self._first_new_id and node not in self._nodes:
            self._nodes[node] = state_of(node)

    def _end(self) -> None:
        self.graph.editor.before = self._outer
        self.graph.editor.unpublished = self._outer_unpublished

    def keep(self) -> None:
        """Commit: an outer transaction takes over the saved state, or else the subscribers are notified."""
        self.graph.edge_store.keep(self._edges)
        self._end()
        if self._outer is not None:
            for node, state in self._nodes.items():
                if node.id < self._outer._first_new_id:
                    self._outer._nodes.setdefault(node, state)
        if self._outer_unpublished is None:
            self.graph.editor.notify(self._unpublished)
        else:
            self._outer_unpublished += self._unpublished

    def restore(self) -> None:
        """Restore the state."""
        graph = self.graph
        graph.edge_store.restore(self._edges)
        for node, state in self._nodes.items():
            for name, value in zip(STATE, state, strict=True):
                setattr(node, name, value)
        graph.node_store.restore(self._nodes_before)
        graph.editor.version, graph.versions, graph.seed, graph.finalized, graph.other_fields, graph.signatures, graph.ranks_are_stale = (
            self._values
        )
        graph.library.finalized = graph.finalized
        graph.refiner.restore(self._refiner)
        graph.collections.clear()
        for name, (items, content) in self._collections.items():
            items[:] = content
            graph.collections[name] = items
        graph.gradient_records.clear()
        graph.gradient_records.update(self._gradient_records)
        graph.names.restore(self._names)
        graph.cells.restore(self._cells)
        graph.derivations.restore(self._derivations)
        graph.library.restore(self._library)
        self._end()
