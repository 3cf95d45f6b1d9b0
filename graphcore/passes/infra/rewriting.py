"""Rewriting of graphs by passes: bulk moves of consumers, new nodes, one inference at the end."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Self

import msgspec

from graphcore.attrs import AttrValue
from graphcore.definitions import NodeDef
from graphcore.graph import Graph, Node, Tensor
from graphcore.graph.model.node import NO_CONTROLS, input_text, producers_of
from graphcore.graph.shapes.propagation import infer_downstream
from graphcore.support.critical_section import critical_contextmanager, critical_section
from graphcore.support.gc_pause import paused_collector


class Rewriting:
    """One pass over one graph, as a context: changes are published, and shapes inferred, at its end.

    After an error the graph is unchanged.

    A pass must not close a cycle, which is not checked; nodes are ranked again lazily.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._moved: dict[Node, None] = {}
        self._block = self._whole()

    @critical_contextmanager
    def _whole(self) -> Iterator[None]:
        with paused_collector(), self.graph.transaction():
            yield
            self._finish()

    def __enter__(self) -> Self:
        self._block.__enter__()
        return self

    @critical_section.cover
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> bool | None:
        critical_section.begin()
        try:
            return self._block.__exit__(kind, error, traceback)
        finally:
            if critical_section.deferred is not None:
                critical_section.end()

    def _finish(self) -> None:
        graph = self.graph
        moved = [node for node in self._moved if node in graph]
        for node in moved:
            graph.journal.note(node)
            texts = [input_text(tensor) for tensor in node.inputs] + [f"^{control.name}" for control in node.control_inputs]
            node.node_def = msgspec.structs.replace(node.node_def, input=tuple(texts))
            graph.journal.publish("inputs", node)
        if moved:
            infer_downstream(graph, *moved, include_start=True)

    def add(
        self, name: str, op: str, inputs: list[Tensor], controls: list[Node], attrs: dict[str, AttrValue], like: Node, device: str = ""
    ) -> Node:
        """A new node with fixed input and output types (such as Identity, NoOp), at the source of `like`."""
        types = tuple([tensor.dtype.base for tensor in inputs])
        texts = [input_text(tensor) for tensor in inputs] + [f"^{control.name}" for control in controls]
        node_def = NodeDef(name, op, tuple(texts), device, attrs)
        outputs = () if op == "NoOp" else types
        return self.insert(node_def, inputs, controls, types, outputs, like)

    def identity(self, prefix: str, tensor: Tensor, controls: list[Node], like: Node, device: str = "") -> Node:
        """An Identity of `tensor` with a new name."""
        return self.add(self.graph.node_store.new_name(prefix), "Identity", [tensor], controls, {"T": tensor.dtype.base}, like, device)

    def no_op(self, prefix: str, controls: list[Node], like: Node) -> Node:
        """A NoOp with a new name."""
        return self.add(self.graph.node_store.new_name(prefix), "NoOp", [], controls, {}, like)

    def insert(
        self,
        node_def: NodeDef,
        inputs: list[Tensor],
        controls: list[Node],
        input_types: tuple[object, ...],
        output_types: tuple[object, ...],
        like: Node,
    ) -> Node:
        """A new node with the source location of `like`."""
        registration = self.graph.library.look_up(node_def.op)
        return self.graph.builder.insert(
            node_def,
            registration,
            inputs,
            controls or NO_CONTROLS,
            input_types,  # type: ignore[arg-type]  # DTypes
            output_types,  # type: ignore[arg-type]  # likewise
            like.source,
        )

    def move_consumers(self, node: Node, outputs: list[Tensor], control: Node | None) -> None:
        """Redirect consumers of outputs of `node` to `outputs`, and control edges to `control`.

        Control edges are removed if it is None.
        """
        store = self.graph.edge_store
        for edge in store.out_edges(node):
            consumer = edge.dst
            self.graph.journal.note(consumer)
            self._moved[consumer] = None
            if edge.is_control_edge:
                kept = [other for other in consumer.control_inputs if other is not node]
                store.remove_control(node, consumer)
                if control is not None and control not in kept:
                    kept.append(control)
                    self._connect(control, consumer)
                    store.add_control(control, consumer)
                consumer.control_inputs = kept
                continue
            old, new = consumer.inputs[edge.dst_input], outputs[edge.src_output]
            store.remove(old, consumer, edge.dst_input)
            consumer.inputs = [*consumer.inputs[: edge.dst_input], new, *consumer.inputs[edge.dst_input + 1 :]]
            self._connect(new.node, consumer)
            store.add(new, consumer, edge.dst_input)

    def move_tensor(self, old: Tensor, new: Tensor) -> None:
        """Redirect consumers of `old` to `new`; control edges are kept."""
        store = self.graph.edge_store
        for edge in store.out_edges(old.node):
            if edge.is_control_edge or edge.src_output != old.index:
                continue
            consumer, slot = edge.dst, edge.dst_input
            self.graph.journal.note(consumer)
            self._moved[consumer] = None
            store.remove(old, consumer, slot)
            consumer.inputs = [*consumer.inputs[:slot], new, *consumer.inputs[slot + 1 :]]
            self._connect(new.node, consumer)
            store.add(new, consumer, slot)
        if not store.has_successors(old.node):
            store.detached.add(old.node.name)

    def feed(self, node: Node, slot: int, tensor: Tensor) -> None:
        """Connect input `slot` of `node` to `tensor`."""
        store = self.graph.edge_store
        self.graph.journal.note(node)
        store.remove(node.inputs[slot], node, slot)
        node.inputs = [*node.inputs[:slot], tensor, *node.inputs[slot + 1 :]]
        self._connect(tensor.node, node)
        store.add(tensor, node, slot)
        self._moved[node] = None

    def add_control(self, src: Node, dst: Node) -> None:
        """Add a control edge from `src` to `dst`."""
        if src in dst.control_inputs:
            return
        self.graph.journal.note(dst)
        dst.control_inputs = [*dst.control_inputs, src]
        self._connect(src, dst)
        self.graph.edge_store.add_control(src, dst)
        self._moved[dst] = None

    def _connect(self, producer: Node, consumer: Node) -> None:
        """Record an edge that contradicts the ranks, which are then computed again."""
        if producer.rank >= consumer.rank:
            self.graph.ranks_are_stale = True

    def remove(self, node: Node) -> None:
        """Remove an unused node; its inputs are left for `remove_dead_nodes`."""
        producers = producers_of(node)
        self.graph.edge_store.detached.discard(node.name)
        self.graph.remove_node(node)
        self._moved.pop(node, None)
        for producer in producers:
            if not self.graph.edge_store.has_successors(producer):
                self.graph.edge_store.detached.add(producer.name)
