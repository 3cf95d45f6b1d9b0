"""Reading a graph: the read-only half of `Graph`."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from graphcore.brief import brief
from graphcore.definitions import GraphDef, NodeDef, VersionDef
from graphcore.definitions.types import FixedAttrs, Nodes
from graphcore.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph.building.scopes import ScopeStack, ThreadScopes
from graphcore.graph.default_session import evaluate
from graphcore.graph.dimension_classes import dimension_classes
from graphcore.graph.editing.editor import GraphEditor
from graphcore.graph.model.edge import Edge
from graphcore.graph.model.edges import EdgeStore
from graphcore.graph.model.journal import Journal
from graphcore.graph.model.node import Node, Tensor
from graphcore.graph.model.node_store import NodeStore
from graphcore.graph.model.tensor_id import parse_tensor_name
from graphcore.graph.shapes.live_refiner import LiveRefiner
from graphcore.graph.shapes.symbolic_refiner import SymbolicRefiner, Symbols, symbols_of
from graphcore.registry import OpRegistration, OpRegistry

if TYPE_CHECKING:
    import networkx as nx

    from graphcore.graph.following.derivations import DerivationStore


class GraphReader:
    """The read-only interface of a graph.

    Attributes:
        registry: the registry of ops other than functions of the library.
        library: the graph's functions.
        versions: the producer of the graph, and its possible consumers.
        other_fields: further fields of the graph's file, serialised, to be written back.
        signatures: the signatures of a saved model, by name.
    """

    registry: OpRegistry
    library: FunctionLibraryDefinition
    versions: VersionDef
    editor: GraphEditor
    journal: Journal
    edge_store: EdgeStore
    refiner: LiveRefiner
    source_node: Node
    sink_node: Node
    lock: threading.RLock
    thread_scopes: ThreadScopes
    other_fields: bytes
    signatures: Mapping[str, Any]
    collections: dict[str, list[Any]]
    derivations: DerivationStore
    node_store: NodeStore

    def settle(self) -> None:
        """Rebuild nodes derived from changed ones: gradients, training steps, initializers, calls.

        Sessions, views and writers of graphs call this first. Nodes that cannot be rebuilt are marked (`Node.error`) and refuse to run.
        """
        self.derivations.settle()

    @property
    def version(self) -> int:
        """A number that increases with every change."""
        return self.journal.version

    # ---- all of it -------------------------------------------------------------------------------------------------

    @property
    def nx(self) -> nx.MultiDiGraph[str]:
        """The graph as a networkx graph, read-only and live.

        Nodes are keyed by name (data: `node`), edges by (src_output, dst_input), control edges by (-1, -1) (data: `id`); a second
        control edge between the same nodes has the key (-1, -2).
        """
        return self.edge_store.view()

    @property
    def nodes(self) -> list[Node]:
        """The op nodes in the order of their ids."""
        return list(self.node_store.by_name.values())

    def op_nodes(self) -> Iterator[Node]:
        """A snapshot of the op nodes in the order of their ids."""
        return iter(self.nodes)

    def edges(self) -> list[Edge]:
        """All edges, including those of source and sink, by id."""
        return self.edge_store.all_edges()

    @property
    def num_node_ids(self) -> int:
        """One more than the largest node id ever given."""
        return self.node_store.next_id

    @property
    def num_nodes(self) -> int:
        """The number of nodes, source and sink included."""
        return len(self.node_store.by_name) + 2

    @property
    def num_op_nodes(self) -> int:
        """The number of nodes without source and sink."""
        return len(self.node_store.by_name)

    @property
    def num_edge_ids(self) -> int:
        """The largest edge id so far, plus one."""
        return self.edge_store.num_edge_ids

    @property
    def num_edges(self) -> int:
        """The number of edges, including those of source and sink."""
        return self.edge_store.view().number_of_edges()

    def __bool__(self) -> bool:
        """True, even if it is empty: `graph or other` tests for None."""
        return True

    def __len__(self) -> int:
        return len(self.node_store.by_name)

    def __contains__(self, node: object) -> bool:
        if isinstance(node, Tensor):
            node = node.node
        return isinstance(node, Node) and self.node_store.by_name.get(node.name) is node

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
                f"as_graph_def gives all nodes, not those since a version: required None as from_version, got {from_version}"
            )
        self.settle()
        with self.lock:
            shared: dict[int, FixedAttrs] = {}
            nodes = Nodes([_definition(node, shared, add_shapes=add_shapes) for node in self.node_store.by_name.values()])
            return GraphDef(node=nodes, versions=self.versions, library=self.library.to_proto(), other_fields=self.other_fields)

    @property
    def scopes(self) -> ScopeStack:
        """The scopes of this thread for new nodes."""
        return self.thread_scopes.here

    def evaluate(self, what: Tensor | Node, feed_dict: dict[Any, Any] | None, session: Any) -> Any:
        """Compute `what` in `session` or the default session."""
        return evaluate(what, feed_dict, session)

    # ---- by name, by id --------------------------------------------------------------------------------------------

    def find(self, name: str) -> Node | None:
        """The op node called `name`, None if there is none."""
        return self.node_store.by_name.get(name)

    def present(self, tensor: Tensor) -> Tensor:
        """The current tensor of the name of `tensor`, whose node may have been replaced.

        Raises:
            InvalidArgumentError: there is none.
        """
        if tensor in self:
            return tensor
        node = self.find(tensor.node.name)
        if node is None or tensor.index >= len(node.outputs):
            raise InvalidArgumentError.at(tensor.node, f"'{tensor.name}' is no longer in the graph")
        return node.outputs[tensor.index]

    def find_node_id(self, node_id: int) -> Node | None:
        """The node with that id, source and sink included; None if there is none or it was removed."""
        if node_id <= 1:
            return self.source_node if node_id == 0 else self.sink_node if node_id == 1 else None
        return self.node_store.by_id.get(node_id)

    def find_edge_id(self, edge_id: int) -> Edge | None:
        """The edge with that id, None if there is none or it was removed."""
        return next((edge for edge in self.edges() if edge.id == edge_id), None)

    def build_node_name_index(self) -> dict[str, Node]:
        """All nodes by name, `_SOURCE` and `_SINK` included."""
        return {self.source_node.name: self.source_node, self.sink_node.name: self.sink_node, **self.node_store.by_name}

    def get_operations(self) -> list[Node]:
        """All nodes but source and sink, as they were added (TF1's name)."""
        return list(self.op_nodes())

    def get_operation_by_name(self, name: str) -> Node:
        """The op node called `name`.

        Raises:
            NotFoundError: there is none.
        """
        node = self.node_store.by_name.get(name)
        if node is None:
            raise NotFoundError(f"No node named '{name}' in the graph{self._near_miss(name)}", node=name)
        return node

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor called `node:index`; `node` alone means output 0.

        Raises:
            NotFoundError: no such node.
            InvalidArgumentError: no such output.
        """
        node_name, index = parse_tensor_name(name)
        node = self.get_operation_by_name(node_name)
        if not 0 <= index < len(node.outputs):
            raise InvalidArgumentError.at(
                node, f"Node '{node.name}' (type: '{node.op}', num of outputs: {len(node.outputs)}) does not have output {index}"
            )
        return node.outputs[index]

    def as_graph_element(self, obj: object) -> Node | Tensor:
        """Convert `obj` (a Node, a Tensor, a name, or an object with `as_graph_element`).

        Raises:
            InvalidArgumentError: it is none of these, or belongs to another graph.
            NotFoundError: no such name.
        """
        convert = getattr(obj, "as_graph_element", None)
        if callable(convert) and not isinstance(obj, GraphReader):
            obj = convert()
        if isinstance(obj, str):
            return self.get_tensor_by_name(obj) if ":" in obj else self.get_operation_by_name(obj)
        if not isinstance(obj, Node | Tensor):
            raise InvalidArgumentError(f"Required a tensor, a node or a name, got {brief(obj)} of type {type(obj).__name__}").advise(
                "Leave it out, or give a tensor, a node, or the name of one in its place.",
                required="a tensor, a node or a name",
                came=f"{brief(obj)} of type {type(obj).__name__}",
            )
        return self.owned(obj)

    def __getitem__(self, name: str) -> Node | Tensor:
        """The node `name`, or the tensor for a name with a colon, such as `W:0`.

        Raises:
            NotFoundError: no such name.
        """
        if not isinstance(name, str):
            raise InvalidArgumentError(f"Required the name of a node or tensor, as in graph['W'] or graph['W:0'], got {brief(name)}")
        return self.as_graph_element(name)

    def owned(self, obj: Node | Tensor) -> Node | Tensor:
        """Return `obj` if it is in this graph.

        Raises:
            InvalidArgumentError: it is not.
        """
        node = obj.node if isinstance(obj, Tensor) else obj
        if node.graph is not self and node.graph.outer is not None:
            place = node.graph.place
            raise InvalidArgumentError.at(node, f"'{obj.name}' (op {node.op}) is inside {place}, and has no value outside of it").advise(
                f"Let {place} return it, and use what is returned.", required="a tensor of this graph", came=f"'{obj.name}' inside {place}"
            )
        if node.graph is not self:
            raise InvalidArgumentError.at(node, f"'{obj.name}' (op {node.op}) belongs to another graph than this one").advise(
                f"Make '{obj.name}' in this graph as well; or use its graph for all, with `with \u00ab{obj.name}\u00bb.graph.as_default():` "
                f"and `gc.Session(\u00ab{obj.name}\u00bb.graph)`.",
                required="a tensor of this graph",
                came=f"'{obj.name}' of another graph",
            )
        if self.node_store.by_id.get(node.id) is not node and self.find_node_id(node.id) is not node:
            in_cell = node.source is not None and node.source.run is not None
            reason = "its cell was deleted or ran again without making it, or it was lowered" if in_cell else "it was removed or lowered"
            raise InvalidArgumentError.at(node, f"'{obj.name}' (op {node.op}) is no longer in the graph: {reason}").advise(
                f"Run the cell that makes '{obj.name}' again; if that cell is deleted, write it anew."
                if in_cell
                else "Use the tensor that took its place: `gc.get_default_graph()` lists what there is.",
                required="a tensor that is in the graph",
                came=f"'{obj.name}', which was removed",
            )
        return obj

    def is_valid_node(self, node: Node | None) -> bool:
        """True if `node` is in this graph, source and sink included; otherwise an error is raised.

        Raises:
            InvalidArgumentError: it is None, or not the node of its id here.
        """
        if node is None:
            raise InvalidArgumentError("Node is null")
        if node.id >= self.node_store.next_id:
            raise InvalidArgumentError.at(node, f"node id {node.id} is >= than number of nodes in graph {self.node_store.next_id}")
        if self.find_node_id(node.id) is not node:
            raise InvalidArgumentError.at(
                node, f"Node with id {node.id} is different from the passed in node. Does it belong to a different graph?"
            )
        return True

    def _near_miss(self, name: str) -> str:
        if not self.num_op_nodes:
            return ", which has no nodes"
        lowered = name.lower()
        near = [other for other in list(self.node_store.by_name) if lowered in other.lower() or other.lower() in lowered][:3]
        return f"; there is {', '.join(repr(item) for item in near)}" if near else ""

    def waiting(self) -> list[tuple[str, Node, int]]:
        """The inputs that wait for a node of some name: name, consumer, slot (-1 for a control input)."""
        with self.lock:
            return self.node_store.awaiting()

    # ---- around a node ---------------------------------------------------------------------------------------------

    def consumers(self, node: Node) -> list[tuple[Node, int]]:
        """The consumers of outputs of `node`, each with the input slot; -1 for a control edge."""
        return self.edge_store.fed_by(node)

    def tensor_consumers(self, tensor: Tensor) -> list[tuple[Node, int]]:
        """The consumers of `tensor`, each with the input slot."""
        return [(edge.dst, edge.dst_input) for edge in self.edge_store.out_edges(tensor.node) if edge.src_output == tensor.index]

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

    def get_collection(self, name: str, scope: str | None = None) -> list[Any]:
        """The items of a collection with nodes that are still in the graph, as a new list.

        Args:
            name: the collection.
            scope: a regular expression that the names of the items begin with; items without a name are left out. None for all items.
        """
        alive = [item for item in self.collections.get(name, []) if self._is_alive(item)]
        return alive if scope is None else [item for item in alive if hasattr(item, "name") and re.match(scope, item.name)]

    def _is_alive(self, item: object) -> bool:
        node = getattr(item, "op", item)
        return not isinstance(node, Node) or node in self

    def look_up(self, op: str) -> OpRegistration:
        """The registration of an op: a function of this graph's library, or an op of its registry.

        Raises:
            NotFoundError: there is neither.
        """
        return self.library.look_up(op)


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
