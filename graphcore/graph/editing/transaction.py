"""The state of a graph at the beginning of a transaction."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from graphcore.graph.editing.changes import Change
from graphcore.graph.editing.graph_state import GraphState
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

    Each node is saved before its first change.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._outer = graph.editor.before
        self._outer_unpublished = graph.editor.unpublished
        self._first_new_id = graph.num_node_ids
        self._nodes: dict[Node, tuple[Any, ...]] = {}
        self._editor = graph.editor.version, graph.finalized
        self._state = GraphState(graph)
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
        graph.editor.version, graph.finalized = self._editor
        graph.library.finalized = graph.finalized
        self._state.restore(graph)
        self._end()
