"""The graph that users make: it infers shapes, takes ops and scopes, and follows cells and edits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, Final
from weakref import WeakSet

import msgspec

from graphcore.brief import brief
from graphcore.definitions import GraphDef, NodeDef
from graphcore.definitions.types import FixedAttrs, Nodes
from graphcore.device_spec import DeviceSpec
from graphcore.errors import InvalidArgumentError, UnimplementedError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph.building.apply import apply_op
from graphcore.graph.building.builder import GraphBuilder
from graphcore.graph.building.colocation import colocate_with
from graphcore.graph.building.scopes import container_scope, control_dependencies, device_scope, gradient_overrides, name_scope
from graphcore.graph.copying import copy_graph
from graphcore.graph.default_session import evaluate
from graphcore.graph.dimension_classes import dimension_classes
from graphcore.graph.editing.editor import GraphEditor
from graphcore.graph.following import cell_edits
from graphcore.graph.following.derivations import DerivationStore
from graphcore.graph.model.argument_errors import refuse
from graphcore.graph.model.default_stack import default_graph, stack
from graphcore.graph.model.device_functions import DeviceFunction
from graphcore.graph.model.journal import Part
from graphcore.graph.model.node import Edge, Node, Tensor
from graphcore.graph.provenance.explain_shape import explain_error
from graphcore.graph.recorded import RecordedRun, RecordingOptions
from graphcore.graph.saved_values import AbsentValues, SavedValues
from graphcore.graph.shapes.shaped_graph import ShapedGraph
from graphcore.graph.shapes.symbolic_refiner import SymbolicRefiner, Symbols, refiner_for, symbols_of
from graphcore.registry import OpRegistry
from graphcore.shapes import as_shape
from graphcore.source import CellRun, SourceLocation, caller_location

_live: Final[WeakSet[Graph]] = WeakSet()


class Graph(ShapedGraph):
    """A dataflow graph under construction.

    A method that fails leaves the graph unchanged. Several threads may build one graph and run it meanwhile; each has its own scopes, and
    changes are atomic. While one is in a transaction, or traces Python functions (`gc.function`, branches, loops), the others wait; so it
    must not wait for a thread that builds the same graph. Let that thread finish first, or build a separate graph.

    Args:
        registry: the registry of ops other than functions of its library (by default the global one), or a library to copy.
        infer: "symbolic" gives unknown sizes names (`batch`, `n1`), with equalities and arithmetic.

    Raises:
        InvalidArgumentError: there is no such mode of inference.
    """

    builder: GraphBuilder
    editor: GraphEditor
    outer: Graph | None = None
    """The graph around a function's body while that is traced."""
    trace: RecordedRun | None = None
    """The last recorded run of a session of this graph, also of one that is closed."""
    fed_shapes: Mapping[str, tuple[int, ...]] = MappingProxyType({})
    """The shapes of the last feeds of tensors whose shape the graph does not know, by the name of the tensor."""
    saved_values: tuple[SavedValues, ...] = ()
    """The values that lie beside the files it was loaded from."""
    absent_values: tuple[AbsentValues, ...] = ()
    """The values that were looked for beside those files, and are not restored."""
    recording: RecordingOptions | None = None
    """The `RunOptions` by which sessions of this graph record all their runs, also those without options of their own; None for none."""

    def __init__(self, registry: OpRegistry | FunctionLibraryDefinition | None = None, *, infer: str = "") -> None:
        super().__init__(registry)
        self.attached: dict[object, object] = {}  # by the `Attached` of its owner
        self.refiner = refiner_for(infer, self.versions.producer, explain_error)
        self.derivations = DerivationStore(self)
        self.editor = GraphEditor(self)
        self.builder = GraphBuilder(self)
        _live.add(self)

    def _parts(self) -> tuple[Part, ...]:
        """Those of the plain graph, and what is inferred and derived."""
        return (*super()._parts(), self.refiner, self.derivations)

    def settle(self) -> None:
        """Rebuild nodes derived from changed ones: gradients, training steps, initializers, calls.

        Sessions, views and writers of graphs call this first. Nodes that cannot be rebuilt are marked (`Node.error`) and refuse to run.
        """
        self.derivations.settle()

    # ---- changing --------------------------------------------------------------------------------------------------

    def add_node(self, node_def: NodeDef, source: SourceLocation | None = None) -> Node:
        """Add a node with the inputs named in `node_def`; shapes are inferred.

        A node that an earlier run of the same cell made under this name is replaced in place.

        Raises:
            NotFoundError: the op is not registered.
            InvalidArgumentError: name, inputs, attrs, types or shapes do not fit.
        """
        return self.builder.add_node(node_def, source or caller_location())

    def remove_node(self, node: Node) -> None:
        """Remove a node. Its consumers are kept and marked: they lack an input until a node of that name is added.

        Raises:
            InvalidArgumentError: it is not in this graph, or its own source or sink.
        """
        self.editor.remove_node(node)

    def copy(self) -> Graph:
        """A new graph with the same nodes, edges, versions and functions; see `copy_graph`."""
        self.settle()
        copied = Graph(self.registry, infer="symbolic" if isinstance(self.refiner, SymbolicRefiner) else "")
        copy_graph(self, copied)
        copied.derivations.take_over(self.derivations)
        return copied

    def clear(self) -> None:
        """Remove all nodes; ids are not reused."""
        self.editor.clear()

    def add_edge(self, src: Node, src_output: int, dst: Node, dst_input: int) -> Edge:
        """Connect output `src_output` of `src` to the open input `dst_input` of `dst`.

        An edge from a node to itself may be added; the node is marked with the error.

        Raises:
            InvalidArgumentError: no such output or input, it is connected already, another dtype, or the edge would close a cycle.
        """
        return self.editor.add_edge(src, src_output, dst, dst_input)

    def remove_edge(self, edge: Edge) -> None:
        """Remove an edge. Its consumer is marked until the input is connected again.

        Raises:
            InvalidArgumentError: it is not in this graph.
        """
        self.editor.remove_edge(edge)

    def update_edge(self, src: Node, src_output: int, dst: Node, dst_input: int) -> None:
        """Reconnect input `dst_input` of `dst` to output `src_output` of `src`; shapes are inferred again.

        An edge from a node to itself is allowed, as in `add_edge`; the node is marked with the error.

        Raises:
            InvalidArgumentError: no such output or input, another dtype, or the edge would close a cycle.
        """
        self.editor.update_edge(src, src_output, dst, dst_input)

    def add_control_edge(self, src: Node, dst: Node, *, allow_duplicates: bool = False) -> Edge | None:
        """Add a control edge from `src` to `dst`, with an input `^src` in the NodeDef of `dst`.

        The graph's source and sink have no such inputs.

        Args:
            src, dst: nodes of this graph.
            allow_duplicates: add an edge even if there is one already; it adds no input.

        Returns:
            The new edge, None if there was one already.

        Raises:
            InvalidArgumentError: the edge would close a cycle.
        """
        return self.editor.add_control_edge(src, dst, allow_duplicates=allow_duplicates)

    def remove_control_edge(self, src: Node, dst: Node) -> bool:
        """Undo `add_control_edge`: edges and input. False if there is no such edge."""
        return self.editor.remove_control_edge(src, dst)

    def set_attr(self, node: Node, name: str, value: object) -> None:
        """Set attr `name` of `node`, or remove it with None; shapes are inferred again.

        Raises:
            InvalidArgumentError: the op allows no such attr or value, or needs it, or the types of inputs and outputs depend on it.
        """
        self.editor.set_attr(node, name, value)

    def set_requested_device(self, node: Node, spec: str | DeviceSpec) -> None:
        """Request a device for `node`, given by a full or partial name; "" for none.

        Sessions place the graph again before their next run.

        Raises:
            InvalidArgumentError: the name is malformed.
        """
        self.editor.set_requested_device(node, spec)

    def shrink_type_info(self, node: Node, index_mapping: Mapping[int, int], type_attr_name: str = "T") -> None:
        """Keep only the entries in `index_mapping` of the list attr `type_attr_name`.

        The inputs and outputs typed by it are reduced likewise.

        Raises:
            InvalidArgumentError: there is no such list, or a removed output has consumers.
        """
        self.editor.shrink_type_info(node, index_mapping, type_attr_name)

    def set_shape(self, tensor: Tensor, shape: object) -> None:
        """Merge `shape` into the shape of a tensor; shapes downstream are inferred again.

        Raises:
            InvalidArgumentError: incompatible with the known shape.
        """
        self.editor.set_shape(tensor, as_shape(shape))

    def set_shape_like(self, tensor: Tensor, other: Tensor) -> None:
        """Declare that `tensor` always has the shape of `other`, also after later changes.

        Raises:
            InvalidArgumentError: `tensor` is not in this graph.
        """
        self.editor.set_shape_like(tensor, other)

    # ---- shapes, values and definitions ------------------------------------------------------------------------------

    def dimension_classes(self, names: Iterable[str] | None = None) -> dict[str, tuple[int, ...]]:
        """The classes of equal dimensions, which a view highlights together.

        Args:
            names: the tensors; all by default.

        Returns:
            For each tensor of known rank a number for each dimension. Equal numbers: one dimension, passed from op to op or found to be
            equal by a merge. Sizes that merely happen to be equal have different numbers.
        """
        return dimension_classes(self, names)

    def symbols(self) -> Symbols:
        """The names of unknown sizes of a graph made with `infer="symbolic"`; empty for others."""
        return symbols_of(self)

    def size_texts(self, tensor: Tensor) -> list[str]:
        """The sizes of a tensor of known rank as text: a number, `?`, or the name of an unknown size."""
        handles, sizes = tensor.node.output_handles, tensor.shape.dims or ()
        if None not in sizes or not isinstance(self.refiner, SymbolicRefiner) or tensor.index >= len(handles):
            return ["?" if size is None else str(size) for size in sizes]
        symbols = self.symbols()
        return [symbols.text(dim) for dim in handles[tensor.index].dims or ()]

    def shape_text(self, tensor: Tensor) -> str:
        """The shape of a tensor as text, with names in symbolic graphs: `[batch,2*n1+1]`."""
        return "?" if tensor.shape.dims is None else f"[{','.join(self.size_texts(tensor))}]"

    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> GraphDef:
        """The graph with its function library as a value.

        Args:
            from_version: must be None.
            add_shapes: put the shapes of the outputs of each node into its attr `_output_shapes`.

        Raises:
            UnimplementedError: only a part of the nodes is asked for.
        """
        if from_version is not None:
            raise UnimplementedError(
                f"as_graph_def gives all nodes, not those since a version: required None as from_version, got {brief(from_version)}"
            )
        self.settle()
        with self.lock:
            shared: dict[int, FixedAttrs] = {}
            nodes = Nodes([_definition(node, shared, add_shapes=add_shapes) for node in self.node_store.by_name.values()])
            return GraphDef(node=nodes, versions=self.versions, library=self.library.to_proto(), other_fields=self.other_fields)

    def evaluate(self, what: Tensor | Node, feed_dict: dict[Any, Any] | None, session: Any) -> Any:
        """Compute `what` in `session` or the default session."""
        return evaluate(what, feed_dict, session)

    # ---- building --------------------------------------------------------------------------------------------------

    def apply_op(self, op: str, inputs: Sequence[Any] = (), attrs: Mapping[str, Any] | None = None, name: str | None = None) -> Node:
        """Add a node of type `op`.

        Inputs are in the order of its OpDef (a list for a list input); values become constants.

        Raises:
            NotFoundError: unknown op.
            InvalidArgumentError: inputs or attrs do not fit.
        """
        return apply_op(self, op, inputs, attrs, name)

    def building(self) -> Graph:
        """The graph for nodes of operators on its tensors: the function body being traced, or itself.

        A body that is no longer traced takes no more nodes; the default graph refuses its tensors, with the reason.
        """
        graphs = stack.graphs
        if self.outer is None and (not graphs or graphs[-1].outer is None):
            return self  # no function is traced
        innermost = innermost_default()
        if innermost is not None and self in surrounding(innermost):
            return innermost
        if self.outer is not None and self not in graphs:
            return outermost(self) if innermost is None else innermost
        return self

    def as_default(self) -> AbstractContextManager[Graph]:
        """Make this the default graph within a `with` block."""
        return default_graph(self)

    def name_scope(self, name: str | None) -> AbstractContextManager[str]:
        """Prefix the names of nodes made within a `with` block."""
        return name_scope(self, name)

    def device(self, spec: str | DeviceSpec | DeviceFunction | None) -> AbstractContextManager[None]:
        """Request a device for nodes made within a `with` block; a function chooses it for each node."""
        return device_scope(self, spec)

    def colocate_with(self, op: Any, ignore_existing: bool = False) -> AbstractContextManager[None]:
        """Put nodes made within a `with` block on the device of `op`, by attr `_class`.

        Device requests around the block do not hold for them.

        Args:
            op: a node, tensor or variable; None for no colocation, together with `ignore_existing`.
            ignore_existing: leave out the blocks of this kind around this one.

        Raises:
            InvalidArgumentError: `op` is none of these, or of another graph.
        """
        return colocate_with(self, op, ignore_existing=ignore_existing)

    def container(self, container_name: str) -> AbstractContextManager[str]:
        """Put variables, queues, tables and readers made within a `with` block into a container.

        `Session.reset` clears it.

        Raises:
            InvalidArgumentError: the name is no text.
        """
        if not isinstance(container_name, str):
            refuse("container_name", "the name of a container", container_name)
        return container_scope(self, container_name)

    def gradient_override_map(self, op_type_map: Any) -> AbstractContextManager[None]:
        """Give nodes of some ops made within a `with` block other gradients.

        Nodes of branches and loops within the block are among them; a `gc.function` has blocks of its own.

        Args:
            op_type_map: the names of gradients by op: of `gc.RegisterGradient`, or of another op.

        Raises:
            InvalidArgumentError: it is no dict of names.
        """
        if not isinstance(op_type_map, Mapping) or not all(isinstance(name, str) for pair in op_type_map.items() for name in pair):
            raise InvalidArgumentError(f"op_type_map: required a dict of names of ops and gradients, got {brief(op_type_map)}")
        return gradient_overrides(self, op_type_map)

    def control_dependencies(self, inputs: Sequence[Any] | None) -> AbstractContextManager[None]:
        """Add control inputs from `inputs` to nodes made within a `with` block."""
        return control_dependencies(self, inputs)

    def unique_name(self, name: str) -> str:
        """`name` within the current scope, made unique, without reserving it."""
        scope = self.scopes.name
        with self.lock:
            return self.names.unique(scope + name if scope else name)

    def new_name(self, prefix: str) -> str:
        """An unused name that begins with `prefix`, and that this method has not returned before."""
        with self.lock:
            return self.node_store.new_name(prefix)

    def add_to_collection(self, name: str, value: Any) -> None:
        """Put `value` into a collection; one with the same `.name` is replaced, so that cells can run again."""
        with self.lock:
            self.refuse_finalized()
            items = self.collections.setdefault(name, [])
            own_name = getattr(value, "name", None)
            names = [getattr(item, "name", None) for item in items]
            if own_name is not None and own_name in names:
                items[names.index(own_name)] = value
            else:
                items.append(value)

    def add_to_collections(self, names: Iterable[str], value: Any) -> None:
        """Put `value` into several collections."""
        for name in dict.fromkeys([names] if isinstance(names, str) else names):
            self.add_to_collection(name, value)

    def get_collection_ref(self, name: str) -> list[Any]:
        """A collection itself: a change of the list changes it."""
        with self.lock:
            return self.collections.setdefault(name, [])

    def clear_collection(self, name: str) -> None:
        """Empty a collection."""
        with self.lock:
            self.refuse_finalized()
            self.collections.pop(name, None)

    def get_all_collection_keys(self) -> list[str]:
        """The names of the collections that hold something."""
        return [name for name, items in self.collections.items() if items]

    def finalize(self) -> None:
        """Make the graph read-only: every later change is a FailedPreconditionError. It can be run and copied."""
        self.finalized = self.library.finalized = True

    # ---- cells -----------------------------------------------------------------------------------------------------

    def begin_cell(self, run: CellRun) -> None:
        """Begin the cell run `run`: it may make the nodes of the cell's earlier runs again by name."""
        self.journal.atomically(cell_edits.begin_cell, self, run)

    def end_cell(self, run: CellRun, *, failed: bool = False, error: BaseException | None = None) -> list[str]:
        """End the cell run. Nodes it did not make again are removed; after a failure they are kept, marked.

        Args:
            run: the run.
            failed: True if it ended with an error.
            error: this error, if it is known. The node that it names is the one at which the cell failed.

        Returns:
            The names of the removed nodes.
        """
        removed = self.journal.atomically(cell_edits.end_cell, self, run, failed=failed, error=error)
        self.settle()
        return removed

    def drop_unmade(self, but_for: Iterable[Tensor]) -> None:
        """Remove now the nodes that the end of the cell would remove, except those that some tensors need."""
        self.journal.atomically(cell_edits.drop_unmade, self, but_for)

    def delete_cell(self, cell: str) -> None:
        """Mark the nodes of a deleted cell as being without one; they stay until `forget_deleted_cells`."""
        self.journal.atomically(cell_edits.delete_cell, self, cell)

    def forget_deleted_cells(self) -> list[str]:
        """Remove the nodes of deleted cells. Returns their names."""
        return self.journal.atomically(cell_edits.forget_deleted_cells, self)

    def drop_cell(self, cell: str) -> list[str]:
        """Remove the nodes of a deleted cell. Returns their names."""
        return self.journal.atomically(cell_edits.drop_cell, self, cell)

    def __repr__(self) -> str:
        errors = sum(1 for node in self.nodes if node.error or node.input_errors)
        note = f", {errors} with errors" if errors else ""
        return f"<gc.Graph {len(self)} nodes{note}>"


def innermost_default() -> Graph | None:
    """The graph of the innermost `with graph.as_default()` of this thread, None outside of all."""
    graph = stack.graphs[-1] if stack.graphs else None
    assert graph is None or isinstance(graph, Graph)
    return graph


def surrounding(graph: Graph) -> list[Graph]:
    """The graphs around the body of a function while it is traced, the innermost first."""
    graphs: list[Graph] = []
    while graph.outer is not None:
        graph = graph.outer
        graphs.append(graph)
    return graphs


def outermost(graph: Graph) -> Graph:
    """The graph around all functions being traced, `graph` itself outside of any."""
    return [graph, *surrounding(graph)][-1]


def live_graphs() -> list[Graph]:
    """All live graphs, in no particular order, however they are held."""
    return list(_live)


def _definition(node: Node, shared: dict[int, FixedAttrs], *, add_shapes: bool) -> NodeDef:
    """The definition of a node with attrs that do not change, which nodes share as they do in the graph."""
    definition = node.node_def
    if add_shapes and node.outputs:
        shapes = tuple([tensor.shape for tensor in node.outputs])
        return msgspec.structs.replace(definition, attr=FixedAttrs({**definition.attr, "_output_shapes": shapes}))
    if type(definition.attr) is FixedAttrs:
        return definition
    attrs = shared.get(id(definition.attr))
    if attrs is None:
        attrs = shared[id(definition.attr)] = FixedAttrs(definition.attr)
    return msgspec.structs.replace(definition, attr=attrs)
