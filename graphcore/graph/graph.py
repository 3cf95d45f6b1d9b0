"""The graph: nodes and edges in one networkx.MultiDiGraph, changed through a few methods that publish what they did."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from graphcore.attrs import AttrValue
from graphcore.definitions import (
    PRODUCER_VERSION,
    FunctionDefLibrary,
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
from graphcore.errors import InvalidArgumentError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph.building.apply import apply_op, binary_op, matmul_op
from graphcore.graph.building.resolving import resolve_inputs
from graphcore.graph.building.scopes import control_dependencies, device_scope, name_scope
from graphcore.graph.copying import copy_graph
from graphcore.graph.editing import node_edits, rewiring
from graphcore.graph.editing.transaction import transaction
from graphcore.graph.following import cell_edits
from graphcore.graph.following.derivations import DerivationBook
from graphcore.graph.model.atomic_change import edit, refuse_finalized, undivided
from graphcore.graph.model.cells import CellBook
from graphcore.graph.model.change_publisher import ChangeTeller
from graphcore.graph.model.default_stack import default_graph
from graphcore.graph.model.edge import Edge
from graphcore.graph.model.edges import EdgeStore
from graphcore.graph.model.input_checks import check_inputs
from graphcore.graph.model.live_graphs import note_graph
from graphcore.graph.model.names import NameTable
from graphcore.graph.model.node import NO_CONTROLS, Node, Tensor
from graphcore.graph.model.records import GradientRecord, ThreadScopes
from graphcore.graph.provenance.explain_shape import explain_error
from graphcore.graph.reading import GraphReader
from graphcore.graph.shapes.symbolic_refiner import SymbolicRefiner, refiner_for
from graphcore.registry import OpRegistration, OpRegistry
from graphcore.shapes import as_shape
from graphcore.source import CellRun, SourceLocation, caller_location
from graphcore.support.critical_section import critical_section

_SOURCE_OP = OpRegistration(OpDef(name="_Source"))
_SINK_OP = OpRegistration(OpDef(name="_Sink"))


class Graph(GraphReader, ChangeTeller):
    """A dataflow graph under construction.

    Every method that fails leaves the graph as it was. Several threads may build one graph, and run it meanwhile: each is in its own
    scopes, and what one does with the graph is done when the next gets it. While one is in a transaction, or Python functions of its are being
    traced (`gc.function`, branches, loops), the others wait: within these it must not wait for a thread that builds the same graph. Let that
    thread finish first, or build a graph of its own.

    Args:
        registry: where ops are looked up that are no function of its library (the global one by default), or a library to copy.
        infer: "symbolic" gives unknown sizes names (`batch`, `n1`), keeps which are equal, and calculates with them.

    Raises:
        InvalidArgumentError: there is no such way to infer.
    """

    outer: Graph | None = None
    """The graph around a function's body while that is traced."""
    lock: threading.RLock
    """Held by the thread that changes the graph or looks at more than one thing of it. A body under construction has that of the graph around
    it, so that nobody can hold the one and wait for the other."""

    def __init__(self, registry: OpRegistry | FunctionLibraryDefinition | None = None, *, infer: str = "") -> None:
        super().__init__()
        self.library = FunctionLibraryDefinition.over(registry)
        self.registry = self.library.default_registry
        self.versions = VersionDef(producer=PRODUCER_VERSION)
        self.seed: int | None = None
        self.other_fields = b""
        self.signatures: Mapping[str, Any] = {}
        self.collections: dict[str, list[Any]] = {}
        self.gradient_records: dict[str, GradientRecord] = {}
        self.names = NameTable()
        self.thread_scopes = ThreadScopes()
        self.cells = CellBook()
        self.derivations = DerivationBook(self)
        self.lock = threading.RLock()
        self.edge_store = EdgeStore(self.lock)
        self.refiner = refiner_for(infer, self.versions.producer, explain_error)
        self.finalized = False
        self.ranks_are_stale = False
        self._by_name: dict[str, Node] = {}
        self._by_id: dict[int, Node] = {}
        self._dangling: dict[str, list[tuple[Node, int]]] = {}
        self._next_id = 2
        self._name_counter = 0
        self.source_node = Node(self, 0, "_SOURCE", NodeDef("_SOURCE", "_Source"), _SOURCE_OP, [], NO_CONTROLS, (), (), None)
        self.sink_node = Node(self, 1, "_SINK", NodeDef("_SINK", "_Sink"), _SINK_OP, [], NO_CONTROLS, (), (), None)
        self.names.take_all(["_SOURCE", "_SINK"])
        self.edge_store.add_ends(self.source_node, self.sink_node)
        note_graph(self)

    # ---- changing --------------------------------------------------------------------------------------------------

    def add_node(self, node_def: NodeDef, source: SourceLocation | None = None) -> Node:
        """Add a node whose inputs are named in `node_def`; shapes are inferred.

        A node that an earlier run of the same cell made under this name is replaced in place.

        Raises:
            NotFoundError: the op is not registered.
            InvalidArgumentError: name, inputs, attrs, types or shapes do not fit.
        """
        source = source or caller_location()
        registration = self.library.look_up(node_def.op)
        name = node_def.name
        if not is_valid_node_name(name, allow_internal_ops=True):
            raise InvalidArgumentError(f"Node '{name}': Node name contains invalid characters", op=node_def.op, node=name)
        with self.lock:
            node_def = add_default_attrs(node_def, registration.op_def)
            inputs, controls = resolve_inputs(self, node_def)
            validate_node_def(node_def, registration.op_def)
            input_types, output_types = in_out_types_for_node(node_def, registration.op_def)
            return self.insert(node_def, registration, inputs, controls, tuple(input_types), tuple(output_types), source)

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
        with self.lock:
            rewiring.require_new(self, node_def.name, node_def.op)
            check_inputs(node_def, input_types, inputs, source)
            return self.insert_matched(node_def.name, registration, node_def, inputs, controls, input_types, output_types, source)

    def insert_matched(
        self,
        name: str,
        registration: OpRegistration,
        definition: NodeDef | Mapping[str, AttrValue],
        inputs: list[Tensor],
        controls: list[Node],
        input_types: tuple[DType, ...],
        output_types: tuple[DType, ...],
        source: SourceLocation | None,
    ) -> Node:
        """Add a node whose inputs and attrs are known to fit. For who holds the lock since he chose the name.

        Args:
            definition: the NodeDef, or the attrs alone if that has nothing else but the inputs.
        """
        if self.finalized or name in self._by_name or name in rewiring.RESERVED:
            rewiring.require_new(self, name, registration.op_def.name)
        node = Node(self, self._next_id, name, definition, registration, inputs, controls, input_types, output_types, source)
        self.refiner.add_node(node)
        return self.admit(node)

    def admit(self, node: Node) -> Node:
        """Enter a node that has been checked: into the place of the one that has its name, if there is one, which is given then.

        For who holds the lock since he looked whether there is one.
        """
        name = node.name
        existing = self._by_name.get(name)
        if existing is not None:
            return edit(self, rewiring.replace, existing, node)
        if self._dangling and self._dangling.get(name):
            return edit(self, Graph._admit_awaited, node)
        self._enter(node)
        return node

    @critical_section.cover
    def _enter(self, node: Node) -> None:
        critical_section.begin()
        try:
            self._next_id += 1
            self.edge_store.add_node(node)
            self.names.take(node.name)
            if node.source is not None and node.source.run is not None:
                self.cells.own(node)
            self._by_id[node.id] = self._by_name[node.name] = node
            self.version = self._last_version = self._last_version + 1  # as `publish` does
            if self._subscribers:
                self._announce("added", node)
        finally:
            if critical_section.deferred is not None:
                critical_section.end()

    def _admit_awaited(self, node: Node) -> Node:
        """Enter a node, and feed those that wait for one of its name from it."""
        waiting = self._dangling.pop(node.name)
        self._enter(node)
        refused = rewiring.attach(self, node, [(consumer, slot) for consumer, slot in waiting if consumer in self])
        if refused:
            self._dangling[node.name] = refused
        return node

    def remove_node(self, node: Node) -> None:
        """Take a node out. Its consumers stay and are marked: they lack an input until a node of that name is back.

        Raises:
            InvalidArgumentError: it is not in this graph, or its own source or sink.
        """
        edit(self, rewiring.remove_node, node)

    def strike(self, node: Node, orphans: list[tuple[Node, int]]) -> None:
        """Take a node without edges out of the tables; `orphans` wait for one of its name from then on."""
        del self._by_name[node.name]
        del self._by_id[node.id]
        self.stop_waiting(node)
        self.names.free(node.name)
        self.gradient_records.pop(node.name, None)
        self.cells.disown(node)
        if orphans:
            self._dangling[node.name] = [*self._dangling.get(node.name, ()), *orphans]

    def wait_for(self, name: str, consumer: Node, slot: int) -> None:
        """Feed input `slot` of `consumer` when a node called `name` is added."""
        with self.lock:
            entries = self._dangling.setdefault(name, [])
            if (consumer, slot) not in entries:
                entries.append((consumer, slot))

    def stop_waiting(self, consumer: Node, slots: Collection[int] | None = None) -> None:
        """Input slots of `consumer` (-1 for the control inputs), all if None, wait for nothing any more: they are gone or about to be fed."""
        for name in {tensor.node.name for tensor in consumer.inputs} | {control.name for control in consumer.control_inputs}:
            left = [
                entry for entry in self._dangling.get(name, ()) if entry[0] is not consumer or (slots is not None and entry[1] not in slots)
            ]
            if left:
                self._dangling[name] = left
            else:
                self._dangling.pop(name, None)

    def waiting(self) -> list[tuple[str, Node, int]]:
        """The inputs that wait for a node of some name: name, consumer, slot (-1 for a control input)."""
        with self.lock:
            found = [(name, consumer, slot) for name, entries in self._dangling.items() for consumer, slot in entries]
        return [(name, consumer, slot) for name, consumer, slot in found if consumer in self]

    def take_over(self, nodes: Iterable[Node]) -> None:
        """Count nodes made elsewhere among this graph's; their edges are entered already and no cell owns them."""
        with self.lock:
            for node in nodes:
                self._by_name[node.name] = self._by_id[node.id] = node
                self._next_id = node.id + 1
                self.names.take(node.name)
                self.publish("added", node)

    def copy(self) -> Graph:
        """A new graph with the same nodes, edges, versions and functions; see `copy_graph`."""
        self.settle()
        copied = Graph(self.registry, infer="symbolic" if isinstance(self.refiner, SymbolicRefiner) else "")
        copy_graph(self, copied)
        copied.derivations.take_over(self.derivations)
        return copied

    def clear(self) -> None:
        """Remove all nodes; ids go on from where they were."""
        edit(self, rewiring.clear)

    def add_edge(self, src: Node, src_output: int, dst: Node, dst_input: int) -> Edge:
        """Feed input `dst_input` of `dst`, which nothing feeds at present, from output `src_output` of `src`.

        An edge from a node to itself may be added; the node is marked with the error.

        Raises:
            InvalidArgumentError: no such output or input, it is fed already, another dtype, or the edge would close a cycle.
        """
        return edit(self, node_edits.add_edge, src, src_output, dst, dst_input)

    def remove_edge(self, edge: Edge) -> None:
        """Take an edge away. Its consumer is marked until something feeds that input again.

        Raises:
            InvalidArgumentError: it is not in this graph.
        """
        edit(self, node_edits.remove_edge, edge)

    def update_edge(self, src: Node, src_output: int, dst: Node, dst_input: int) -> None:
        """Feed input `dst_input` of `dst` from output `src_output` of `src` instead; shapes follow.

        An edge from a node to itself is allowed, as in `add_edge`; the node is marked with the error.

        Raises:
            InvalidArgumentError: no such output or input, another dtype, or the edge would close a cycle.
        """
        edit(self, node_edits.update_edge, src, src_output, dst, dst_input)

    def add_control_edge(self, src: Node, dst: Node, *, allow_duplicates: bool = False) -> Edge | None:
        """Make `dst` wait for `src`; `^src` becomes an input of its NodeDef, unless one of them is the graph's source or sink.

        Args:
            src, dst: nodes of this graph.
            allow_duplicates: add an edge even if there is one already; it adds no input.

        Returns:
            The new edge, None if there was one already.

        Raises:
            InvalidArgumentError: the edge would close a cycle.
        """
        return edit(self, rewiring.add_control_edge, src, dst, allow_duplicates=allow_duplicates)

    def remove_control_edge(self, src: Node, dst: Node) -> bool:
        """Undo `add_control_edge`: edges and input. False if there is no such edge."""
        return edit(self, rewiring.remove_control_edge, src, dst)

    def set_attr(self, node: Node, name: str, value: object) -> None:
        """Set attr `name` of `node`, or take it away with None; shapes follow.

        Raises:
            InvalidArgumentError: the op allows no such attr or value, or needs it, or the types of inputs and outputs depend on it.
        """
        edit(self, node_edits.set_attr, node, name, value)

    def shrink_type_info(self, node: Node, index_mapping: Mapping[int, int], type_attr_name: str = "T") -> None:
        """Keep of the list attr `type_attr_name`, and of the inputs and outputs it types, only the entries that are keys of `index_mapping`.

        Raises:
            InvalidArgumentError: there is no such list, or an output that would go feeds something.
        """
        edit(self, node_edits.shrink_type_info, node, index_mapping, type_attr_name)

    def add_function_library(self, library: FunctionDefLibrary | FunctionLibraryDefinition) -> None:
        """Add the functions and gradients of `library`; equal ones may be there already.

        Raises:
            InvalidArgumentError: something in it conflicts with what is here; nothing is added then.
        """
        with self.lock, critical_section:
            refuse_finalized(self)
            self.library.add_library(library)

    def transaction(self) -> AbstractContextManager[None]:
        """Make what a `with` block changes happen together or not at all: if it raises, the graph is exactly as it was before.

        Subscribers learn of the changes when the (outermost) block has ended well.
        """
        return transaction(self)

    def set_shape(self, tensor: Tensor, shape: object) -> None:
        """Add what is known of a tensor's shape; what follows from it is inferred again.

        Raises:
            InvalidArgumentError: incompatible with what is known.
        """
        edit(self, node_edits.set_shape, tensor, as_shape(shape))

    def set_shape_like(self, tensor: Tensor, other: Tensor) -> None:
        """Say that `tensor` always has the shape of `other`; it follows when that changes with what `tensor` depends on.

        Raises:
            InvalidArgumentError: `tensor` is not in this graph.
        """
        edit(self, node_edits.set_shape_like, tensor, other)

    # ---- transactions ----------------------------------------------------------------------------------------------

    def registers(self) -> tuple[Any, ...]:
        """What a transaction keeps of the graph's own tables."""
        waiting = {name: list(entries) for name, entries in self._dangling.items()}
        return dict(self._by_name), dict(self._by_id), waiting, self._next_id, self._name_counter, self.ranks_are_stale

    def restore_registers(self, registers: tuple[Any, ...]) -> None:
        """Bring them back."""
        self._by_name, self._by_id, self._dangling, self._next_id, self._name_counter, self.ranks_are_stale = registers

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
        with self.lock:
            return self.names.unique(scope + name if scope else name)

    def new_name(self, prefix: str) -> str:
        """A name beginning with `prefix` that no node has and that this method has not given before."""
        with self.lock:
            while True:
                name = f"{prefix}/_{self._name_counter}"
                self._name_counter += 1
                if name not in self._by_name:
                    return name

    def add_to_collection(self, name: str, item: Any) -> None:
        """Put `item` into a collection; one with the same `.name` is replaced, as re-run cells need it."""
        with self.lock:
            refuse_finalized(self)
            items = self.collections.get(name, ())
            item_name = getattr(item, "name", None)
            for i, known in enumerate(items):
                if item_name is not None and getattr(known, "name", None) == item_name:
                    self.collections[name][i] = item
                    return
            if not items:
                self.collections[name] = [item]
            else:
                self.collections[name].append(item)

    def finalize(self) -> None:
        """Make the graph read-only: every change is a FailedPreconditionError from then on. It can still be run, copied and explained."""
        self.finalized = self.library.finalized = True

    # ---- cells -----------------------------------------------------------------------------------------------------

    def begin_cell(self, run: CellRun) -> None:
        """From now on `run` runs: what earlier runs of the same cell made may be made again under the same names."""
        undivided(self, cell_edits.begin_cell, run)

    def end_cell(self, run: CellRun, *, failed: bool = False) -> list[str]:
        """The cell has ended. What it did not make again is removed; after a failure it stays, marked.

        Returns:
            The names of the removed nodes.
        """
        removed = undivided(self, cell_edits.end_cell, run, failed=failed)
        self.settle()
        return removed

    def drop_unmade(self, but_for: Iterable[Tensor]) -> None:
        """Remove at once what the end of the running cell would remove now, but for what some tensors depend on."""
        undivided(self, cell_edits.drop_unmade, but_for)

    def drop_cell(self, cell: str) -> list[str]:
        """A cell is gone: remove what it made. Returns the names."""
        return undivided(self, cell_edits.drop_cell, cell)

    def __repr__(self) -> str:
        errors = sum(1 for node in self.nodes if node.error or node.input_errors)
        note = f", {errors} with errors" if errors else ""
        return f"<gc.Graph {len(self._by_name)} nodes{note}>"
