"""The graph: nodes and edges in one networkx.MultiDiGraph, changed through a few methods that publish what they did."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import networkx as nx

from graphcore.definitions import (
    PRODUCER_VERSION,
    GraphDef,
    NodeDef,
    OpDef,
    VersionDef,
    add_default_attrs,
    in_out_types_for_node,
    is_valid_node_name,
    validate_node_def,
)
from graphcore.device_spec import DeviceSpec
from graphcore.dtypes import DType
from graphcore.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from graphcore.graph import rewiring
from graphcore.graph.apply import apply_op, binary_op, matmul_op
from graphcore.graph.cells import CellBook
from graphcore.graph.changes import Change, ChangeKind, Subscriber
from graphcore.graph.default_stack import default_graph
from graphcore.graph.edges import Edge, EdgeStore
from graphcore.graph.live import note_graph
from graphcore.graph.names import NameTable
from graphcore.graph.node import Node, Tensor
from graphcore.graph.records import GradientRecord, ScopeStack
from graphcore.graph.scopes import control_dependencies, device_scope, name_scope
from graphcore.graph.shape_refiner import ShapeRefiner
from graphcore.registry import OpRegistration, OpRegistry, op_registry
from graphcore.shapes import as_shape
from graphcore.source import CellRun, SourceLocation, caller_location

_SOURCE_OP = OpRegistration(OpDef(name="_Source"))
_SINK_OP = OpRegistration(OpDef(name="_Sink"))

Evaluator = Callable[[Tensor, "dict[Any, Any] | None", Any], Any]


class Graph:
    """A dataflow graph under construction.

    Every method that fails leaves the graph as it was.

    Args:
        registry: where ops are looked up; the global registry by default.
    """

    evaluator: Evaluator | None = None
    """How `Tensor.eval` runs; the session room sets it."""

    def __init__(self, registry: OpRegistry | None = None) -> None:
        self.registry = registry or op_registry
        self.versions = VersionDef(producer=PRODUCER_VERSION)
        self.version = 0
        self.seed: int | None = None
        self.collections: dict[str, list[Any]] = {}
        self.gradient_records: dict[str, GradientRecord] = {}
        self.names = NameTable()
        self.scopes = ScopeStack()
        self.cells = CellBook()
        self.edge_store = EdgeStore()
        self.refiner = ShapeRefiner(self.versions.producer)
        self.finalized = False
        self.lock = threading.RLock()
        self._by_name: dict[str, Node] = {}
        self._subscribers: list[Subscriber] = []
        self._dangling: dict[str, list[tuple[Node, int]]] = {}
        self._next_id = 2
        self.source_node = Node(self, 0, NodeDef("_SOURCE", "_Source"), _SOURCE_OP, (), (), None)
        self.sink_node = Node(self, 1, NodeDef("_SINK", "_Sink"), _SINK_OP, (), (), None)
        self.edge_store.add_ends(self.source_node, self.sink_node)
        note_graph(self)

    # ---- looking ---------------------------------------------------------------------------------------------------

    @property
    def nx(self) -> nx.MultiDiGraph[str]:
        """The graph as networkx sees it, read-only; take it anew after a change.

        Nodes are keyed by name (data: `node`), edges by (src_output, dst_input), control edges by (-1, -1) (data: `id`).
        """
        return self.edge_store.view()

    @property
    def nodes(self) -> list[Node]:
        """The op nodes in the order of their ids."""
        return list(self._by_name.values())

    def op_nodes(self) -> Iterator[Node]:
        """The op nodes in the order of their ids, without making a list."""
        return iter(self._by_name.values())

    @property
    def num_node_ids(self) -> int:
        """One more than the largest node id ever given."""
        return self._next_id

    @property
    def num_nodes(self) -> int:
        """The number of nodes, source and sink included."""
        return len(self._by_name) + 2

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, node: object) -> bool:
        if isinstance(node, Tensor):
            node = node.node
        return isinstance(node, Node) and self._by_name.get(node.name) is node

    def find(self, name: str) -> Node | None:
        """The op node called `name`, None if there is none."""
        return self._by_name.get(name)

    def get_operation_by_name(self, name: str) -> Node:
        """The op node called `name`.

        Raises:
            NotFoundError: there is none.
        """
        node = self._by_name.get(name)
        if node is None:
            raise NotFoundError(f"No node named '{name}' in the graph{self._near_miss(name)}", node=name)
        return node

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor called `node:index`; `node` alone means output 0.

        Raises:
            NotFoundError: no such node.
            InvalidArgumentError: no such output.
        """
        head, _, tail = name.rpartition(":")
        node_name, index = (head, int(tail)) if head and tail.isdigit() else (name, 0)
        node = self.get_operation_by_name(node_name)
        if index >= len(node.outputs):
            raise InvalidArgumentError(
                f"Node '{node.name}' (type: '{node.op}', num of outputs: {len(node.outputs)}) does not have output {index}",
                op=node.op,
                node=node.name,
                source=node.source,
            )
        return node.outputs[index]

    def as_graph_element(self, obj: object) -> Node | Tensor:
        """The node or tensor that `obj` (a Node, a Tensor, a name, or something with `as_graph_element`) stands for.

        Raises:
            InvalidArgumentError: it is none of these, or belongs to another graph.
            NotFoundError: no such name.
        """
        convert = getattr(obj, "as_graph_element", None)
        if callable(convert) and not isinstance(obj, Graph):
            obj = convert()
        if isinstance(obj, str):
            return self.get_tensor_by_name(obj) if ":" in obj else self.get_operation_by_name(obj)
        if not isinstance(obj, Node | Tensor):
            raise InvalidArgumentError(f"Required a tensor, a node or a name, got {obj!r} of type {type(obj).__name__}")
        return self._owned(obj)

    def _owned(self, obj: Node | Tensor) -> Node | Tensor:
        node = obj.node if isinstance(obj, Tensor) else obj
        if node.graph is not self:
            raise InvalidArgumentError(
                f"'{obj.name}' (op {node.op}) belongs to another graph than this one", op=node.op, node=node.name, source=node.source
            )
        if self._by_name.get(node.name) is not node:
            raise InvalidArgumentError(
                f"'{obj.name}' (op {node.op}) is no longer in the graph: its cell ran again without making it",
                op=node.op,
                node=node.name,
                source=node.source,
            )
        return obj

    def _near_miss(self, name: str) -> str:
        lowered = name.lower()
        near = [known for known in self._by_name if lowered in known.lower() or known.lower() in lowered][:3]
        return f"; there is {', '.join(repr(item) for item in near)}" if near else ""

    def consumers(self, node: Node) -> list[tuple[Node, int]]:
        """The nodes that take an output of `node`, each with its input slot; -1 for a control edge."""
        return [(edge.dst, edge.dst_input) for edge in self.edge_store.out_edges(node)]

    def tensor_consumers(self, tensor: Tensor) -> list[tuple[Node, int]]:
        """The nodes that take `tensor`, each with its input slot."""
        return [(edge.dst, edge.dst_input) for edge in self.edge_store.out_edges(tensor.node) if edge.src_output == tensor.index]

    def edges(self) -> list[Edge]:
        """All edges, those of source and sink included, by id."""
        return self.edge_store.all_edges()

    def as_graph_def(self) -> GraphDef:
        """The graph as a value."""
        return GraphDef(node=tuple(node.node_def for node in self._by_name.values()), versions=self.versions)

    # ---- changing --------------------------------------------------------------------------------------------------

    def add_node(self, node_def: NodeDef, source: SourceLocation | None = None) -> Node:
        """Add a node whose inputs are named in `node_def`; shapes are inferred.

        A node that an earlier run of the same cell made under this name is replaced in place.

        Raises:
            NotFoundError: the op is not registered.
            InvalidArgumentError: name, inputs, attrs, types or shapes do not fit.
        """
        registration = self.registry.look_up(node_def.op)
        name = node_def.name
        if not is_valid_node_name(name, allow_internal_ops=True):
            raise InvalidArgumentError(f"Node '{name}': Node name contains invalid characters", op=node_def.op, node=name)
        node_def = add_default_attrs(node_def, registration.op_def)
        inputs, controls = self._resolve_inputs(node_def)
        validate_node_def(node_def, registration.op_def)
        input_types, output_types = in_out_types_for_node(node_def, registration.op_def)
        return self.insert(node_def, registration, inputs, controls, tuple(input_types), tuple(output_types), source or caller_location())

    def insert(
        self,
        node_def: NodeDef,
        registration: OpRegistration,
        inputs: list[Tensor],
        controls: list[Node],
        input_types: tuple[DType, ...],
        output_types: tuple[DType, ...],
        source: SourceLocation | None,
    ) -> Node:
        """Add a node whose inputs are resolved already. The way in for all builders; users take `add_node`."""
        if self.finalized:
            raise FailedPreconditionError("The graph has been finalized and takes no new nodes", node=node_def.name, op=node_def.op)
        with self.lock:
            existing = self._by_name.get(node_def.name)
            if existing is not None and not self.cells.may_replace(existing):
                raise InvalidArgumentError(
                    f"Node name '{node_def.name}' already exists in the Graph", op=node_def.op, node=node_def.name, source=existing.source
                )
            rewiring.check_inputs(node_def, input_types, inputs, source)
            node = Node(self, self._next_id, node_def, registration, input_types, output_types, source)
            node.inputs = inputs
            node.control_inputs = controls
            self.refiner.add_node(node)
            if existing is not None:
                return rewiring.replace(self, existing, node)
            self._commit(node)
        return node

    def _commit(self, node: Node) -> None:
        self._next_id += 1
        self._by_name[node.name] = node
        self.names.take(node.name)
        self.edge_store.add_node(node)
        if node.source is not None and node.source.run is not None:
            self.cells.own(node)
        self.publish("added", node)
        if self._dangling:
            self._reattach(node)

    def remove_node(self, node: Node) -> None:
        """Take a node out. Its consumers stay and are marked: they lack an input until a node of that name is back.

        Raises:
            InvalidArgumentError: it is not in this graph.
        """
        self._owned(node)
        with self.lock:
            orphans = self.consumers(node)
            del self._by_name[node.name]
            self.names.free(node.name)
            self.edge_store.remove_node(node)
            self.gradient_records.pop(node.name, None)
            self.cells.disown(node)
            self.publish("removed", node)
            orphans = [(consumer, slot) for consumer, slot in orphans if consumer.is_op]
            if orphans:
                self._dangling.setdefault(node.name, []).extend(orphans)
            rewiring.mark_orphans(self, node, orphans)

    def _reattach(self, node: Node) -> None:
        waiting = self._dangling.pop(node.name, [])
        alive = [(consumer, slot) for consumer, slot in waiting if self._by_name.get(consumer.name) is consumer]
        rewiring.attach(self, node, alive)

    def update_edge(self, src: Node, src_output: int, dst: Node, dst_input: int) -> None:
        """Feed input `dst_input` of `dst` from output `src_output` of `src` instead; shapes follow.

        Raises:
            InvalidArgumentError: no such output or input, another dtype, or the edge would close a cycle.
        """
        self._owned(src)
        self._owned(dst)
        with self.lock:
            rewiring.update_edge(self, src, src_output, dst, dst_input)

    def add_control_edge(self, src: Node, dst: Node) -> bool:
        """Make `dst` wait for `src`. False if it does already.

        Raises:
            InvalidArgumentError: the edge would close a cycle.
        """
        self._owned(src)
        self._owned(dst)
        with self.lock:
            return rewiring.add_control_edge(self, src, dst)

    def remove_control_edge(self, src: Node, dst: Node) -> bool:
        """Undo `add_control_edge`. False if there is no such edge."""
        self._owned(src)
        self._owned(dst)
        with self.lock:
            return rewiring.remove_control_edge(self, src, dst)

    def set_shape(self, tensor: Tensor, shape: object) -> None:
        """Add what is known of a tensor's shape; what follows from it is inferred again.

        Raises:
            InvalidArgumentError: incompatible with what is known.
        """
        self._owned(tensor)
        if self.refiner.set_shape(tensor.node, tensor.index, as_shape(shape)):
            self.publish("shapes", tensor.node)
            rewiring.infer_downstream(self, tensor.node)

    def set_shape_like(self, tensor: Tensor, other: Tensor) -> None:
        """Say that `tensor` always has the shape of `other`; it follows when that changes with what `tensor` depends on."""
        tensor.node.like = {**tensor.node.like, tensor.index: other}
        self.refiner.add_node(tensor.node)
        self.publish("shapes", tensor.node)

    def _resolve_inputs(self, node_def: NodeDef) -> tuple[list[Tensor], list[Node]]:
        inputs: list[Tensor] = []
        controls: list[Node] = []
        for text in node_def.input:
            if text.startswith("^"):
                controls.append(self._input_node(node_def, text[1:]))
                continue
            if controls:
                raise InvalidArgumentError(
                    f"Node '{node_def.name}': Control dependencies must come after regular dependencies", op=node_def.op, node=node_def.name
                )
            head, _, tail = text.rpartition(":")
            name, index = (head, int(tail)) if head and tail.isdigit() else (text, 0)
            producer = self._input_node(node_def, name)
            if index >= len(producer.outputs):
                raise InvalidArgumentError(
                    f"Node '{node_def.name}': Connecting to invalid output {index} of source node {name} "
                    f"which has {len(producer.outputs)} outputs",
                    op=node_def.op,
                    node=node_def.name,
                )
            inputs.append(producer.outputs[index])
        return inputs, controls

    def _input_node(self, node_def: NodeDef, name: str) -> Node:
        node = self._by_name.get(name)
        if node is None:
            raise InvalidArgumentError(f"Node '{node_def.name}': Unknown input node '{name}'", op=node_def.op, node=node_def.name)
        return node

    # ---- telling ---------------------------------------------------------------------------------------------------

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Have `subscriber` called after each change with its record. Returns what ends it."""
        self._subscribers.append(subscriber)

        def unsubscribe() -> None:
            if subscriber in self._subscribers:
                self._subscribers.remove(subscriber)

        return unsubscribe

    def publish(self, kind: ChangeKind, node: Node) -> None:
        """Count a change and tell the subscribers."""
        self.version += 1
        if not self._subscribers:
            return
        change = Change(kind, node.name, self.version)
        for subscriber in tuple(self._subscribers):
            subscriber(change)

    # ---- building --------------------------------------------------------------------------------------------------

    def apply_op(self, op: str, inputs: Sequence[Any] = (), attrs: Mapping[str, Any] | None = None, name: str | None = None) -> Node:
        """Add a node of type `op`: inputs in the order of its OpDef (a list for a list input), values become constants.

        Raises:
            NotFoundError: unknown op.
            InvalidArgumentError: inputs or attrs do not fit.
        """
        return apply_op(self, op, inputs, attrs, name)

    def binary(self, op: str, left: object, right: object, name: str) -> Tensor:
        """A binary op on tensors and values; a value takes the tensor's dtype."""
        return binary_op(self, op, left, right, name)

    def matmul(self, left: object, right: object) -> Tensor:
        """`left @ right`: MatMul for matrices, BatchMatMulV2 where a rank above 2 is known."""
        return matmul_op(self, left, right)

    def as_default(self) -> AbstractContextManager[Graph]:
        """Make this the default graph within a `with` block."""
        return default_graph(self)

    def name_scope(self, name: str | None) -> AbstractContextManager[str]:
        """Prefix the names of nodes made within a `with` block."""
        return name_scope(self, name)

    def device(self, spec: str | DeviceSpec | None) -> AbstractContextManager[None]:
        """Request a device for nodes made within a `with` block."""
        return device_scope(self, spec)

    def control_dependencies(self, inputs: Sequence[Any] | None) -> AbstractContextManager[None]:
        """Make nodes made within a `with` block wait for `inputs`."""
        return control_dependencies(self, inputs)

    def unique_name(self, name: str) -> str:
        """`name` within the current scope, made unique. Does not take it."""
        scope = self.scopes.name
        return self.names.unique(scope + name if scope else name)

    def add_to_collection(self, name: str, item: Any) -> None:
        """Put `item` into a collection; one with the same `.name` is replaced, as re-run cells need it."""
        items = self.collections.setdefault(name, [])
        item_name = getattr(item, "name", None)
        for i, known in enumerate(items):
            if item_name is not None and getattr(known, "name", None) == item_name:
                items[i] = item
                return
        items.append(item)

    def get_collection(self, name: str) -> list[Any]:
        """The items of a collection whose nodes are still in the graph, as a new list."""
        return [item for item in self.collections.get(name, []) if self._is_alive(item)]

    def _is_alive(self, item: object) -> bool:
        node = getattr(item, "op", item)
        return not isinstance(node, Node) or node in self

    def finalize(self) -> None:
        """Make the graph read-only."""
        self.finalized = True

    # ---- cells -----------------------------------------------------------------------------------------------------

    def begin_cell(self, run: CellRun) -> None:
        """From now on `run` runs: what earlier runs of the same cell made may be made again under the same names."""
        with self.lock:
            stale = self.cells.begin(run)
            self.names.release(run.cell, stale)

    def end_cell(self, run: CellRun, *, failed: bool = False) -> list[str]:
        """The cell has ended. What it did not make again is removed; after a failure it stays, marked.

        Returns:
            The names of the removed nodes.
        """
        with self.lock:
            stale = self.cells.end(run, failed=failed)
            if failed:
                self.names.keep_released(run.cell)
                return []
            for node in reversed(stale):
                self.remove_node(node)
            self.names.end_release()
            return [node.name for node in stale]

    def drop_cell(self, cell: str) -> list[str]:
        """A cell is gone: remove what it made. Returns the names."""
        with self.lock:
            owned = self.cells.nodes_of(cell)
            for node in reversed(owned):
                self.remove_node(node)
            return [node.name for node in owned]

    def evaluate(self, tensor: Tensor, feed_dict: dict[Any, Any] | None, session: Any) -> Any:
        """Run `tensor` in `session` or the default session."""
        if Graph.evaluator is None:
            raise FailedPreconditionError("Tensor.eval needs a session: import graphcore and enter `with gc.Session():`")
        return Graph.evaluator(tensor, feed_dict, session)

    def __repr__(self) -> str:
        errors = sum(1 for node in self._by_name.values() if node.error or node.input_errors)
        note = f", {errors} with errors" if errors else ""
        return f"<gc.Graph {len(self._by_name)} nodes{note}>"
