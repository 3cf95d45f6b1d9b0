"""Reading edges: the read-only half of an `EdgeStore`."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.graph.model.edge import CONTROL_KEY, CONTROL_SLOT, Edge
from graphcore.graph.model.node import Node, Tensor
from graphcore.graph.model.undo_log import Adjacency

_Key = tuple[int, int]
_ONLY_CONTROL: Final = {CONTROL_KEY}


class EdgeReader(ABC):
    """The read-only interface of the edges of a graph.

    Attributes:
        lock: held during changes and reads. Callers of some methods, as documented there, must hold it.
    """

    __slots__ = ("_nodes", "_pred", "_sink", "_source", "_succ", "lock")

    lock: threading.RLock
    _nodes: dict[str, dict[str, Node]]
    _succ: Adjacency
    _pred: Adjacency
    _source: Node
    _sink: Node

    @abstractmethod
    def sync(self) -> None:
        """Enter the nodes added since the last read."""

    @abstractmethod
    def _anchor(self) -> None:
        """Enter new nodes, and update the edges of source and sink."""

    def has(self, tensor: Tensor, dst: Node, slot: int) -> bool:
        """True iff `tensor` is connected to input `slot` of `dst`."""
        with self.lock:
            self.sync()
            return self.feeds(tensor, dst, slot)

    def feeds(self, tensor: Tensor, dst: Node, slot: int) -> bool:
        """Variant of `has` for callers with the lock, when no node waits to be entered."""
        return (tensor.index, slot) in self._succ.get(tensor.node.name, {}).get(dst.name, ())

    def has_control(self, src: Node, dst: Node) -> bool:
        """True iff there is a control edge."""
        with self.lock:
            self.sync()
            return CONTROL_KEY in self._succ[src.name].get(dst.name, ())

    def find(self, src: Node, dst: Node, key: _Key) -> Edge | None:
        """The edge under that key, None if there is none."""
        with self.lock:
            self.sync()
            data = self._succ[src.name].get(dst.name, {}).get(key)
        return None if data is None else Edge(data["id"], src, key[0], dst, max(key[1], CONTROL_SLOT))

    def last_control(self, src: Node, dst: Node) -> Edge:
        """The control edge added last between two nodes."""
        with self.lock:
            self.sync()
            keys = self._succ[src.name][dst.name]
            number = max(data["id"] for key, data in keys.items() if key[0] == CONTROL_SLOT)
        return Edge(number, src, CONTROL_SLOT, dst, CONTROL_SLOT)

    def out_edges(self, node: Node) -> list[Edge]:
        """The edges from `node` to op nodes, by destination and slot."""
        return [edge for edge in self._edges_from(node) if edge.dst.id > 1]

    def all_out_edges(self, node: Node) -> list[Edge]:
        """The edges from `node`, including that to the sink, by id."""
        with self.lock:
            self._anchor()
            return sorted(self._edges_from(node), key=_by_id)

    def all_in_edges(self, node: Node) -> list[Edge]:
        """The edges to `node`, including that from the source, by id."""
        with self.lock:
            self._anchor()
            edges = []
            for name, keys in self._pred[node.name].items():
                src = self._nodes[name]["node"]
                edges += [Edge(data["id"], src, key[0], node, max(key[1], CONTROL_SLOT)) for key, data in keys.items()]
        return sorted(edges, key=_by_id)

    def _edges_from(self, node: Node) -> list[Edge]:
        with self.lock:
            self.sync()
            nodes = self._nodes
            edges: list[Edge] = []
            for name, keys in self._succ[node.name].items():
                dst = nodes[name]["node"]
                edges += [Edge(data["id"], node, key[0], dst, max(key[1], CONTROL_SLOT)) for key, data in keys.items()]
            return edges

    def all_edges(self) -> list[Edge]:
        """All edges by id."""
        with self.lock:
            self._anchor()
            return sorted([edge for data in self._nodes.values() for edge in self._edges_from(data["node"])], key=_by_id)

    def input_edge(self, node: Node, slot: int) -> Edge:
        """The edge to input `slot`.

        Raises:
            InvalidArgumentError: the node has no such input.
            NotFoundError: it is not connected at present.
        """
        self.sync()
        if not 0 <= slot < len(node.inputs):
            raise InvalidArgumentError(
                f"Invalid input_edge index: {slot}, Node {node.name} only has {len(node.inputs)} inputs.", op=node.op, node=node.name
            )
        tensor = node.inputs[slot]
        there = self._nodes.get(tensor.node.name, {}).get("node") is tensor.node
        edge = self.find(tensor.node, node, (tensor.index, slot)) if there else None
        if edge is None:
            raise NotFoundError(f"Could not find input edge {slot} for {node.name}", op=node.op, node=node.name)
        return edge

    def input_edges(self, node: Node) -> list[Edge]:
        """The edges to the inputs, one for each slot.

        Raises:
            InvalidArgumentError: one is not connected.
        """
        edges = []
        for slot in range(len(node.inputs)):
            try:
                edges.append(self.input_edge(node, slot))
            except NotFoundError:
                raise InvalidArgumentError(f"Missing edge input number: {slot}", op=node.op, node=node.name) from None
        return edges

    def fed_by(self, node: Node) -> list[tuple[Node, int]]:
        """The op nodes with inputs from `node`, each with the slot, -1 for a control edge."""
        with self.lock:
            self.sync()
            nodes = self._nodes
            fed = [(nodes[name]["node"], tuple(keys)) for name, keys in self._succ[node.name].items()]
        return [(dst, slot if slot >= 0 else CONTROL_SLOT) for dst, keys in fed if dst.id > 1 for _, slot in keys]

    def successors(self, node: Node) -> list[Node]:
        """The op nodes with inputs or control inputs from `node`."""
        with self.lock:
            self.sync()
            nodes = self._nodes
            nodes_after = [nodes[name]["node"] for name in self._succ[node.name]]
        return [other for other in nodes_after if other.id > 1]

    def has_successors(self, node: Node) -> bool:
        """True iff an op node has inputs from `node`; constant time."""
        self.sync()
        after = self._succ[node.name]
        return len(after) > 1 or (bool(after) and self._sink.name not in after)

    def consumers_of(self, node: Node) -> list[Node]:
        """The distinct op nodes with data inputs from `node`, without nodes not yet entered.

        The caller holds the lock.
        """
        nodes = self._nodes
        return [nodes[name]["node"] for name, keys in self._succ[node.name].items() if name != "_SINK" and keys.keys() != _ONLY_CONTROL]

    def data_successors(self) -> Callable[[Node], list[Node]]:
        """A faster `consumers_of`, valid until an edge changes. The caller holds the lock."""
        nodes, succ = self._nodes, self._succ

        def successors(node: Node) -> list[Node]:
            after = succ[node.name]
            return [nodes[name]["node"] for name, keys in after.items() if CONTROL_KEY not in keys or (len(keys) > 1 and name != "_SINK")]

        return successors

    def predecessors(self, node: Node) -> list[Node]:
        """The op nodes that `node` has inputs or control inputs from."""
        with self.lock:
            self.sync()
            nodes = self._nodes
            nodes_before = [nodes[name]["node"] for name in self._pred[node.name]]
        return [other for other in nodes_before if other.id > 1]

    def all_successors(self, node: Node) -> list[Node]:
        """The distinct targets of edges from `node`, including the sink."""
        with self.lock:
            self._anchor()
            nodes = self._nodes
            return [nodes[name]["node"] for name in self._succ[node.name]]

    def all_predecessors(self, node: Node) -> list[Node]:
        """The distinct origins of edges to `node`, including the source."""
        with self.lock:
            self._anchor()
            nodes = self._nodes
            return [nodes[name]["node"] for name in self._pred[node.name]]


def _by_id(edge: Edge) -> int:
    return edge.id
