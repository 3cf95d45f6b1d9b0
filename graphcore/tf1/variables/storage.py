"""The storage of a variable: its nodes, and its value in a session."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Self

from graphcore.errors import UnimplementedError
from graphcore.graph import Graph, Node, Tensor, get_default_graph
from graphcore.graph.graph import surrounding
from graphcore.plumbing import KEEPS_VALUE
from graphcore.tf1.variables.collections import TRAINABLE_VARIABLES


class VariableOps(NamedTuple):
    """The ops that create, read and change variables of one kind."""

    storage: str
    read: str
    read_name: str
    is_initialized: str
    assign: str
    assign_add: str
    assign_sub: str
    scatter_update: str
    scatter_add: str
    scatter_sub: str


REF: Final = VariableOps(
    storage="VariableV2",
    read="Identity",
    read_name="read",
    is_initialized="IsVariableInitialized",
    assign="Assign",
    assign_add="AssignAdd",
    assign_sub="AssignSub",
    scatter_update="ScatterUpdate",
    scatter_add="ScatterAdd",
    scatter_sub="ScatterSub",
)
RESOURCE: Final = VariableOps(
    storage="VarHandleOp",
    read="ReadVariableOp",
    read_name="Read/ReadVariableOp",
    is_initialized="VarIsInitializedOp",
    assign="AssignVariableOp",
    assign_add="AssignAddVariableOp",
    assign_sub="AssignSubVariableOp",
    scatter_update="ResourceScatterUpdate",
    scatter_add="ResourceScatterAdd",
    scatter_sub="ResourceScatterSub",
)


class Storage:
    """The part of a variable that concerns its nodes, and its value in a session."""

    _ops: VariableOps
    _variable: Tensor
    _initializer: Node
    _initial_value: Tensor
    _read: Tensor

    @property
    def is_resource(self) -> bool:
        """True for a resource, False for a reference."""
        return self._ops is RESOURCE

    @property
    def handle(self) -> Tensor:
        """The handle or reference, as taken by ops that change it."""
        return self._variable

    @property
    def name(self) -> str:
        """The name of its handle or reference, such as `W:0`."""
        return self._variable.name

    @property
    def op(self) -> Node:
        """The node of the variable."""
        return self._variable.node

    @property
    def graph(self) -> Graph:
        """The graph it belongs to."""
        return self._variable.graph

    @property
    def device(self) -> str:
        """The requested device."""
        return self._variable.device

    @property
    def initializer(self) -> Node:
        """The node that assigns the initial value."""
        return self._initializer

    @property
    def initial_value(self) -> Tensor:
        """The initial value."""
        return self._initial_value

    @property
    def snapshot(self) -> Tensor:
        """The read of its value that was made with it."""
        return self._read

    def as_graph_element(self) -> Tensor:
        """The tensor for fetches and feeds: the reference, or the value of a resource."""
        return self._read if self.is_resource else self._variable

    def is_initialized(self, name: str | None = None) -> Tensor:
        """True iff it has a value, at run time. -> initialized: bool, a scalar."""
        return self._graph_for_nodes().apply_op(self._ops.is_initialized, [self._variable], None, name).outputs[0]

    def _graph_for_nodes(self) -> Graph:
        """The graph for its nodes: its own, or the body being built, which captures a resource's handle."""
        here = get_default_graph()
        return here if self.is_resource and self.graph in surrounding(here) else self.graph

    @property
    def trainable(self) -> bool:
        """True if optimizers change it unless they are given a list of variables."""
        return any(held is self for held in self.graph.collections.get(TRAINABLE_VARIABLES, ()))

    def count_up_to(self, limit: int) -> Tensor:
        """Increase it by 1 at run time, and give the value before; OutOfRangeError at `limit`.

        Raises:
            UnimplementedError: it is a resource.
        """
        if not self.handle.dtype.is_ref:
            raise UnimplementedError(
                f"'{self.handle.name}' is a resource; required a reference variable, which `gc.Variable(..., use_resource=False)` makes"
            )
        return self.graph.apply_op("CountUpTo", [self.handle], {"limit": limit}, None).outputs[0]

    def initialized_value(self) -> Tensor:
        """The value if there is one at run time, else the initial value.

        For the initial value of another variable. Of a reference variable it is an Identity that waits for the initializer, which then sets
        only a variable that has no value yet.
        """
        graph, handle = self.graph, self.handle
        if handle.dtype.is_ref:
            with graph.control_dependencies(None), graph.control_dependencies([self.initializer]):
                name = f"{handle.node.name.rpartition('/')[2]}_initialized"
                return graph.apply_op("Identity", [handle], {KEEPS_VALUE: True}, name).outputs[0]
        with graph.control_dependencies(None), graph.name_scope(f"{handle.node.name.rpartition('/')[2]}_initialized") as scope:
            is_set = self.is_initialized()
            held = graph.apply_op("Switch", [handle, is_set], None, "held").outputs[1]
            read = graph.apply_op("ReadVariableOp", [held], {"dtype": self.initial_value.dtype.base}, "read").outputs[0]
            initial = graph.apply_op("Switch", [self.initial_value, is_set], None, "initial").outputs[0]
            value: Tensor = graph.apply_op("Merge", [[initial, read]], None, scope).outputs[0]
            value.set_shape(self.initial_value.shape)
            return value

    def eval(self, session: Any = None) -> Any:
        """Its value in `session` (the default session if None)."""
        return self.as_graph_element().eval(session=session)

    def load(self, value: Any, session: Any = None) -> None:
        """Set its value in `session` (the default session if None), without new nodes."""
        initializer = self.initializer
        initializer.run({initializer.inputs[1]: value}, session)

    def __deepcopy__(self, memo: object) -> Self:
        """Itself: copies of layers and cells refer to the same variables."""
        return self
