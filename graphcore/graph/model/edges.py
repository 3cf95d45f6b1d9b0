"""The edges of a graph, kept in one networkx.MultiDiGraph."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.graph.model.node import CONTROL_KEY, CONTROL_SLOT, Edge, Node, Tensor
from graphcore.graph.model.undo_log import Adjacency, EdgeJournal
from graphcore.support.critical_section import critical_section
from graphcore.support.safe_import import import_whole

if TYPE_CHECKING:
    import networkx as nx

_Key = tuple[int, int]
_ONLY_CONTROL: Final = {CONTROL_KEY}


class EdgeStore:
    """Owns the MultiDiGraph. New nodes, and the edges of source and sink, are entered lazily on reads.

    Graph construction does not need them, and entering a node costs as much as making it. So networkx's three dicts (`_node`, `_succ`,
    `_pred`) are written directly: its own methods take three times as long. A test compares the result with theirs. networkx itself, slow
    to import, is used when the graph as a whole is requested.

    Reads enter nodes, so the lock serialises concurrent reads.

    Args:
        lock: the graph's.

    Attributes:
        lock: held during changes and reads. Callers of some methods, as documented there, must hold it.
        journal: records edges before they change, during a transaction.
    """

    __slots__ = (
        "_loose",
        "_next_id",
        "_nodes",
        "_pending",
        "_pinned",
        "_pred",
        "_sink",
        "_source",
        "_succ",
        "_view",
        "detached",
        "journal",
        "lock",
    )

    def __init__(self, lock: threading.RLock) -> None:
        self.lock = lock
        self._view: nx.MultiDiGraph[str] | None = None
        self._nodes: dict[str, dict[str, Node]] = {}
        self._succ: Adjacency = {}
        self._pred: Adjacency = {}
        self._next_id = 0
        self._loose: dict[Node, None] = {}
        self.detached: set[str] = set()  # nodes left without consumers by passes, which were not requested as leaves
        self._pending: list[Node] = []
        self._pinned: frozenset[tuple[str, str]] = frozenset()
        self.journal: EdgeJournal | None = None

    def add_ends(self, source: Node, sink: Node) -> None:
        """Add the graph's source and sink, with the control edge between them."""
        self._source, self._sink = source, sink
        for end in (source, sink):
            self._nodes[end.name] = {"node": end}
            self._succ[end.name] = {}
            self._pred[end.name] = {}
        self._add(source.name, sink.name, CONTROL_KEY)

    def view(self) -> nx.MultiDiGraph[str]:
        """The current graph, read-only."""
        with self.lock:
            self._anchor()
            if self._view is None:
                graph = import_whole("networkx").MultiDiGraph()
                graph._node, graph._succ, graph._pred = self._nodes, self._succ, self._pred
                graph._adj = self._succ
                self._view = graph.copy(as_view=True)
            return self._view

    @property
    def num_edge_ids(self) -> int:
        """The largest edge id so far, plus one."""
        with self.lock:
            self._anchor()
            return self._next_id

    # ---- reading ---------------------------------------------------------------------------------------------------

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

    # ---- transactions ----------------------------------------------------------------------------------------------

    def begin(self, first_new_id: int) -> tuple[Any, ...]:
        """Record changes for a transaction. Returns a token for `keep` and `restore`.

        Nodes not yet read stay pending.
        """
        inner = EdgeJournal(first_new_id, self._nodes, self._succ, self._pred)
        state = self.journal, inner, self._next_id, dict(self._loose), self._pinned, set(self.detached), list(self._pending)
        self.journal = inner
        return state

    def keep(self, state: tuple[Any, ...]) -> None:
        """Commit the transaction."""
        outer, inner = state[:2]
        if outer is not None:
            outer.absorb(inner)
        self.journal = outer

    def restore(self, state: tuple[Any, ...]) -> None:
        """Restore the edges at its beginning."""
        self.journal, inner, self._next_id, self._loose, self._pinned, self.detached, self._pending = state
        inner.restore()

    def copied(self) -> tuple[Any, ...]:
        """A copy of all edges for `return_to`."""
        with self.lock:
            self._anchor()
            leaving = [(name, [(other, dict(keys)) for other, keys in after.items()]) for name, after in self._succ.items()]
            entering = [(name, list(before)) for name, before in self._pred.items()]
            return dict(self._nodes), leaving, entering, self._pinned, set(self.detached)

    def return_to(self, copied: tuple[Any, ...]) -> None:
        """Return to copied edges, in their order."""
        nodes, leaving, entering, self._pinned, detached = copied
        self.detached = set(detached)
        self._pending, self._loose = [], {}
        for table in (self._nodes, self._succ, self._pred):
            table.clear()
        self._nodes.update(nodes)
        for name, after in leaving:
            self._succ[name] = {other: dict(keys) for other, keys in after}
        for name, before in entering:
            self._pred[name] = {other: self._succ[other][name] for other in before}
        if self._view is not None:
            self._view.__dict__.get("__networkx_cache__", {}).clear()

    # ---- changing --------------------------------------------------------------------------------------------------

    def add_node(self, node: Node) -> None:
        """Add a node with all its in-edges."""
        self._pending.append(node)

    def sync(self) -> None:
        """Enter the nodes added since the last read."""
        if not self._pending:
            return
        with self.lock, critical_section:
            late: list[tuple[Node, _Key, Node]] = []
            for node in self._pending:
                self._enter(node, late)
            for producer, key, node in late:
                if self._nodes.get(producer.name, {}).get("node") is producer:
                    self._add(producer.name, node.name, key)
                    self._loose[producer] = None
            self._pending = []  # last, since other threads wait as long as nodes are pending

    def _enter(self, node: Node, late: list[tuple[Node, _Key, Node]]) -> None:
        """Enter a node; edges from nodes that are not present (loop back edges, waits) are left for later."""
        name = node.name
        succ, loose, journal = self._succ, self._loose, self.journal
        number = self._next_id
        self._nodes[name] = {"node": node}
        succ[name] = {}
        preds: dict[str, dict[_Key, dict[str, int]]] = {}
        self._pred[name] = preds
        loose[node] = None
        for slot, tensor in enumerate(node.inputs):
            producer = tensor.node
            source = producer.name
            keys = preds.get(source)
            if keys is None:
                if source not in succ:
                    late.append((producer, (tensor.index, slot), node))
                    continue
                if journal is not None and producer.id < journal.first_new_id:
                    journal.note(source, name)
                keys = {}
                preds[source] = succ[source][name] = keys
                loose[producer] = None
            keys[tensor.index, slot] = {"id": number}
            number += 1
        self._next_id = number
        for control in node.control_inputs:
            if control.name not in succ:
                late.append((control, CONTROL_KEY, node))
            elif CONTROL_KEY not in preds.get(control.name, ()):
                self._add(control.name, name, CONTROL_KEY)
                loose[control] = None

    def copy_from(self, other: EdgeStore, copies: Mapping[Node, Node]) -> None:
        """Enter the copies of another graph's nodes with their edges, in the order of ids."""
        other.view()
        self.sync()
        for copied in copies.values():
            self._nodes[copied.name] = {"node": copied}
            self._succ[copied.name] = {}
            self._pred[copied.name] = {}
        edges = [(data["id"], u, v, key) for u, after in other._succ.items() for v, keys in after.items() for key, data in keys.items()]
        for _, u, v, key in sorted(edges):
            if key not in self._succ[u].get(v, ()):
                self._add(u, v, key)
        self._pinned |= other._pinned
        self.detached |= other.detached

    def remove_node(self, node: Node) -> None:
        """Remove a node and its edges."""
        self.sync()
        name, nodes = node.name, self._nodes
        before, after = self._pred[name], self._succ[name]
        if self.journal is not None:
            self.journal.note(*before, *after, name)
        for neighbour in (*before, *after):
            other = nodes[neighbour]["node"]
            if other.id > 1:
                self._loose[other] = None
        self._loose.pop(node, None)
        self._pinned = frozenset([pair for pair in self._pinned if name not in pair]) if self._pinned else self._pinned
        for neighbour in after:
            self._pred[neighbour].pop(name, None)
        for neighbour in before:
            self._succ[neighbour].pop(name, None)
        del self._succ[name], self._pred[name], nodes[name]

    def add(self, tensor: Tensor, dst: Node, slot: int) -> None:
        """Add a data edge."""
        self.sync()
        self._add(tensor.node.name, dst.name, (tensor.index, slot))
        self._loose[tensor.node] = self._loose[dst] = None

    def remove(self, tensor: Tensor, dst: Node, slot: int) -> None:
        """Remove a data edge if it is there."""
        self.sync()
        self._remove(tensor.node.name, dst.name, (tensor.index, slot))
        self._loose[dst] = None
        if tensor.node.name in self._nodes:  # removed nodes need no anchor, and must not be kept alive
            self._loose[tensor.node] = None

    def add_control(self, src: Node, dst: Node, *, allow_duplicates: bool = False) -> None:
        """Add a control edge if there is none; with `allow_duplicates` another one, keyed (-1, -2), ..."""
        self.sync()
        keys = self._succ[src.name].get(dst.name, {})
        slot = CONTROL_SLOT
        while (CONTROL_SLOT, slot) in keys:
            slot -= 1
        if slot == CONTROL_SLOT or allow_duplicates:
            self._add(src.name, dst.name, (CONTROL_SLOT, slot))
        if not src.is_op or not dst.is_op:
            self._pinned |= {(src.name, dst.name)}
        self._loose[src] = self._loose[dst] = None

    def remove_control(self, src: Node, dst: Node) -> None:
        """Remove the control edges between two nodes, if there are any."""
        self.sync()
        for key in [key for key in self._succ[src.name].get(dst.name, ()) if key[0] == CONTROL_SLOT]:
            self._remove(src.name, dst.name, key)
        self._pinned -= {(src.name, dst.name)}
        self._loose[src] = self._loose[dst] = None

    def _add(self, src: str, dst: str, key: _Key) -> None:
        keys = self._succ[src].get(dst)
        if self.journal is not None:
            self.journal.note(src, dst)
        number = self._next_id
        self._next_id = number + 1
        if keys is None:
            self._pred[dst][src] = self._succ[src][dst] = {key: {"id": number}}
        else:
            keys[key] = {"id": number}

    def _remove(self, src: str, dst: str, key: _Key) -> None:
        keys = self._succ.get(src, {}).get(dst, {})
        if key not in keys:
            return
        if self.journal is not None:
            self.journal.note(src, dst)
        if len(keys) > 1:
            del keys[key]
            return
        self._pred[dst].pop(src, None)
        del self._succ[src][dst]

    # ---- source and sink -------------------------------------------------------------------------------------------

    def _anchor(self) -> None:
        self.sync()
        if not self._loose:
            return
        source, sink = self._source.name, self._sink.name
        with critical_section:
            for node in self._loose:
                if node.id <= 1 or node.name not in self._nodes:
                    continue
                self._set_anchor(source, node.name, wanted=not any(name != source for name in self._pred[node.name]))
                self._set_anchor(node.name, sink, wanted=not any(name != sink for name in self._succ[node.name]))
            if self._view is not None:
                self._view.__dict__.get("__networkx_cache__", {}).clear()
            self._loose = {}

    def _set_anchor(self, src: str, dst: str, *, wanted: bool) -> None:
        present = CONTROL_KEY in self._succ[src].get(dst, ())
        if wanted and not present:
            self._add(src, dst, CONTROL_KEY)
        elif present and not wanted and (src, dst) not in self._pinned:
            self._remove(src, dst, CONTROL_KEY)


def _by_id(edge: Edge) -> int:
    return edge.id
