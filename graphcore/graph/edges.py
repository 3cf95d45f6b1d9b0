"""The edges, kept in one networkx.MultiDiGraph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import networkx as nx

from graphcore.graph.node import Node, Tensor

CONTROL_SLOT: Final = -1
CONTROL_KEY: Final = (CONTROL_SLOT, CONTROL_SLOT)
_Key = tuple[int, int]


class Edge(msgspec.Struct, frozen=True, gc=False):
    """Output `src_output` of `src` feeds input `dst_input` of `dst`; both are -1 for a control edge."""

    id: int
    src: Node
    src_output: int
    dst: Node
    dst_input: int

    @property
    def is_control_edge(self) -> bool:
        """True iff it only orders."""
        return self.src_output == CONTROL_SLOT

    def __str__(self) -> str:
        return f"[id={self.id} {self.src.name}:{self.src_output} -> {self.dst.name}:{self.dst_input}]"


class EdgeStore:
    """Owns the MultiDiGraph. New nodes are entered when somebody looks, as are the edges of source and sink.

    Building a graph asks nothing of it, and entering a node costs as much as making it.
    """

    __slots__ = ("_graph", "_loose", "_next_id", "_pending", "_sink", "_source", "_view")

    def __init__(self) -> None:
        self._graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
        self._view: nx.MultiDiGraph[str] = self._graph.copy(as_view=True)
        self._next_id = 0
        self._loose: dict[Node, None] = {}
        self._pending: list[Node] = []

    def add_ends(self, source: Node, sink: Node) -> None:
        """The graph's own source and sink, with the control edge between them."""
        self._source, self._sink = source, sink
        self._graph.add_node(source.name, node=source)
        self._graph.add_node(sink.name, node=sink)
        self._add(source.name, sink.name, CONTROL_KEY)

    def view(self) -> nx.MultiDiGraph[str]:
        """The read-only graph, as it is now."""
        self.sync()
        self._anchor()
        return self._view

    def add_node(self, node: Node) -> None:
        """Add a node with all its in-edges."""
        self._pending.append(node)

    def sync(self) -> None:
        """Enter the nodes added since the last look."""
        pending = self._pending
        if not pending:
            return
        self._pending = []
        for node in pending:
            self._enter(node)

    def _enter(self, node: Node) -> None:
        name = node.name
        graph = self._graph
        graph.add_node(name, node=node)
        loose = self._loose
        loose[node] = None
        for slot, tensor in enumerate(node.inputs):
            self._add(tensor.node.name, name, (tensor.index, slot))
            loose[tensor.node] = None
        for control in node.control_inputs:
            if not graph.has_edge(control.name, name, CONTROL_KEY):
                self._add(control.name, name, CONTROL_KEY)
            loose[control] = None

    def remove_node(self, node: Node) -> None:
        """Remove a node and its edges."""
        self.sync()
        for neighbour in [*self._graph.pred[node.name], *self._graph.succ[node.name]]:
            other = self._graph.nodes[neighbour]["node"]
            if other.is_op:
                self._loose[other] = None
        self._loose.pop(node, None)
        self._graph.remove_node(node.name)

    def add(self, tensor: Tensor, dst: Node, slot: int) -> None:
        """Add a data edge."""
        self.sync()
        self._add(tensor.node.name, dst.name, (tensor.index, slot))
        self._loose[tensor.node] = self._loose[dst] = None

    def remove(self, tensor: Tensor, dst: Node, slot: int) -> None:
        """Remove a data edge if it is there."""
        self.sync()
        if self._graph.has_edge(tensor.node.name, dst.name, (tensor.index, slot)):
            self._graph.remove_edge(tensor.node.name, dst.name, (tensor.index, slot))
        self._loose[tensor.node] = self._loose[dst] = None

    def add_control(self, src: Node, dst: Node) -> None:
        """Add a control edge if it is not there."""
        self.sync()
        if not self._graph.has_edge(src.name, dst.name, CONTROL_KEY):
            self._add(src.name, dst.name, CONTROL_KEY)
        self._loose[src] = self._loose[dst] = None

    def remove_control(self, src: Node, dst: Node) -> None:
        """Remove a control edge if it is there."""
        self.sync()
        if self._graph.has_edge(src.name, dst.name, CONTROL_KEY):
            self._graph.remove_edge(src.name, dst.name, CONTROL_KEY)
        self._loose[src] = self._loose[dst] = None

    def out_edges(self, node: Node) -> list[Edge]:
        """The edges to op nodes that leave `node`, by destination and slot."""
        self.sync()
        graph = self._graph
        nodes = graph.nodes
        edges: list[Edge] = []
        for dst_name, keys in graph.succ[node.name].items():
            dst: Node = nodes[dst_name]["node"]
            if dst.id <= 1:
                continue
            slots: Mapping[Any, dict[str, Any]] = keys
            edges.extend(Edge(data["id"], node, src_output, dst, slot) for (src_output, slot), data in slots.items())
        return edges

    def all_edges(self) -> list[Edge]:
        """All edges by id."""
        nodes = self.view().nodes
        found = [
            Edge(data["id"], nodes[u]["node"], key[0], nodes[v]["node"], key[1])
            for u, v, key, data in self._graph.edges(keys=True, data=True)
        ]
        return sorted(found, key=lambda edge: edge.id)

    def successors(self, node: Node) -> list[Node]:
        """The op nodes that take anything from `node`, control edges included."""
        self.sync()
        nodes = self._graph.nodes
        found: list[Node] = [nodes[name]["node"] for name in self._graph.succ[node.name]]
        return [other for other in found if other.id > 1]

    def _add(self, src: str, dst: str, key: _Key) -> None:
        self._graph.add_edge(src, dst, key, id=self._next_id)
        self._next_id += 1

    def _anchor(self) -> None:
        loose, self._loose = self._loose, {}
        graph = self._graph
        source, sink = self._source.name, self._sink.name
        for node in loose:
            if node.id <= 1 or node.name not in graph:
                continue
            preds: Any = graph.pred[node.name]
            self._set_anchor(source, node.name, wanted=not any(name != source for name in preds))
            succs: Any = graph.succ[node.name]
            self._set_anchor(node.name, sink, wanted=not any(name != sink for name in succs))

    def _set_anchor(self, src: str, dst: str, *, wanted: bool) -> None:
        present = self._graph.has_edge(src, dst, CONTROL_KEY)
        if wanted and not present:
            self._add(src, dst, CONTROL_KEY)
        elif present and not wanted:
            self._graph.remove_edge(src, dst, CONTROL_KEY)
