"""The plain graph: nodes, edges, names and the rest of its state, behind one journal.

It knows nothing above it. The rooms that infer, edit and build graphs work on a `PlainGraph`; `Graph` is the one that users make.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, Protocol

from graphcore.attrs import AttrValue
from graphcore.brief import brief
from graphcore.definitions import PRODUCER_VERSION, FunctionDefLibrary, NodeDef, OpDef, VersionDef
from graphcore.device_spec import DeviceSpec
from graphcore.dtypes import DType
from graphcore.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph.model.cells import CellOwnership
from graphcore.graph.model.changes import Subscriber
from graphcore.graph.model.edges import EdgeStore
from graphcore.graph.model.gradient_record import GradientRecord
from graphcore.graph.model.journal import Attributes, Journal, Lists, Part, Table
from graphcore.graph.model.names import NameTable
from graphcore.graph.model.node import NO_CONTROLS, Edge, Node, Tensor
from graphcore.graph.model.node_store import NodeStore
from graphcore.graph.model.scopes import ScopeStack, ThreadScopes
from graphcore.graph.model.tensor_id import parse_tensor_name
from graphcore.registry import OpRegistration, OpRegistry
from graphcore.source import SourceLocation
from graphcore.support.critical_section import critical_section
from graphcore.support.forking import new_rlock

if TYPE_CHECKING:
    import networkx as nx

FINALIZED: Final = "The graph has been finalized and cannot be modified"
_SOURCE_OP: Final = OpRegistration(OpDef(name="_Source"))
_SINK_OP: Final = OpRegistration(OpDef(name="_Sink"))


class Builder(Protocol):
    """The `GraphBuilder` of a graph, as lower rooms know it: it adds nodes."""

    def insert(
        self,
        definition: NodeDef | Mapping[str, AttrValue],
        registration: OpRegistration,
        inputs: list[Tensor],
        controls: list[Node],
        input_types: tuple[DType, ...],
        output_types: tuple[DType, ...],
        source: SourceLocation | None,
        *,
        name: str = "",
        fits: bool = False,
    ) -> Node:
        """Add a node with resolved inputs."""


class Editor(Protocol):
    """The `GraphEditor` of a graph, as lower rooms know it: it changes nodes and edges."""

    def remove_node(self, node: Node) -> None:
        """See `Graph.remove_node`."""

    def remove_all(self, nodes: Sequence[Node]) -> None:
        """Remove nodes, consumers before producers if given in creation order."""

    def update_edge(self, src: Node, src_output: int, dst: Node, dst_input: int) -> None:
        """See `Graph.update_edge`."""

    def set_requested_device(self, node: Node, spec: str | DeviceSpec) -> None:
        """See `Graph.set_requested_device`."""


class PlainGraph:
    """Nodes and edges, with all that changes together with them.

    Args:
        registry: the registry of ops other than functions of its library (by default the global one), or a library to copy.

    Attributes:
        registry: the registry of ops other than functions of the library.
        library: the graph's functions.
        versions: the producer of the graph, and its possible consumers.
        other_fields: further fields of the graph's file, serialised, to be written back.
        signatures: the signatures of a saved model, by name.
        builder, editor: its parts that add nodes, and that change them.
    """

    builder: Builder
    editor: Editor
    outer: PlainGraph | None = None
    """The graph around a function's body while that is traced."""
    place: str = ""
    """The user's words for the body of a function, such as "the body of loop 'while'"."""
    run_count: int = 0
    """The number of runs of its sessions that have ended; other changes of their values count too."""
    saver_nodes: frozenset[str] = frozenset()
    """The names of the nodes by which a SavedModel saves and restores, and of those that run afterwards."""
    lock: threading.RLock
    """Held by the thread that changes the graph or reads several parts of it.

    A body under construction shares the lock of the graph around it, so that no thread can hold one and wait for the other.
    """

    def __init__(self, registry: OpRegistry | FunctionLibraryDefinition | None = None) -> None:
        self.library = FunctionLibraryDefinition.over(registry)
        self.registry = self.library.default_registry
        self.versions = VersionDef(producer=PRODUCER_VERSION)
        self.seed: int | None = None
        self.other_fields = b""
        self.signatures: Mapping[str, Any] = {}
        self.collections: dict[str, list[Any]] = {}
        self.named_variables: dict[str, Any] = {}
        self.gradient_records: dict[str, GradientRecord] = {}
        self.names = NameTable()
        self.thread_scopes = ThreadScopes()
        self.cells = CellOwnership()
        self.finalized = False
        self.ranks_are_stale = False
        self.lock = new_rlock()
        self.edge_store = EdgeStore(self.lock)
        self.node_store = NodeStore()
        self.journal = Journal(self.node_store, self.edge_store, self._parts)
        self.source_node = self._end(0, "_SOURCE", _SOURCE_OP)
        self.sink_node = self._end(1, "_SINK", _SINK_OP)
        self.names.take_all(["_SOURCE", "_SINK"])
        self.edge_store.add_ends(self.source_node, self.sink_node)

    def _end(self, number: int, name: str, registration: OpRegistration) -> Node:
        definition = NodeDef(name, registration.op_def.name)
        return Node(self, number, name, definition, registration, [], NO_CONTROLS, (), (), None)  # type: ignore[arg-type]  # it is a `Graph`

    # ---- changes ---------------------------------------------------------------------------------------------------

    def _parts(self) -> tuple[Part, ...]:
        """The parts beside nodes and edges that transactions and undo restore."""
        return (
            Attributes(self, "versions", "seed", "other_fields", "signatures", "ranks_are_stale", "finalized"),
            self.node_store,
            Lists(self.collections),
            Table(self.named_variables),
            Table(self.gradient_records),
            self.names,
            self.cells,
            self.library,
        )

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` after each change with its record, in the changing thread.

        Returns:
            A function that unsubscribes.
        """
        return self.journal.subscribe(subscriber)

    def transaction(self) -> AbstractContextManager[None]:
        """Make the changes of a `with` block atomic: after an error the graph is unchanged.

        Subscribers are notified when the (outermost) block has succeeded.
        """
        return self.journal.transaction()

    def refuse_finalized(self) -> None:
        """Check that the graph is not read-only.

        Raises:
            FailedPreconditionError: it has been finalized.
        """
        if self.finalized:
            raise FailedPreconditionError(FINALIZED)

    def add_function_library(self, library: FunctionDefLibrary | FunctionLibraryDefinition) -> None:
        """Add the functions and gradients of `library`; equal ones may exist already.

        Raises:
            InvalidArgumentError: one conflicts with an existing one; nothing is added then.
        """
        with self.lock, critical_section:
            self.refuse_finalized()
            self.library.add_library(library)

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

    @property
    def scopes(self) -> ScopeStack:
        """The scopes of this thread for new nodes."""
        return self.thread_scopes.here

    def overridden_gradients(self) -> Mapping[str, str]:
        """The names of the gradients of new nodes by op, where `gradient_override_map` gives them others."""
        return self.scopes.gradients

    def wait_outside(self, node: Node) -> bool:  # noqa: ARG002 - see `FunctionGraph.wait_outside`
        """False: only the bodies of functions have nodes outside that they can wait for."""
        return False

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
        if callable(convert) and not isinstance(obj, PlainGraph):
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
