"""The value of a variable in one session, read and set from outside of the graph."""

from __future__ import annotations

from typing import Any, Protocol, Self

from graphcore.errors import UnimplementedError
from graphcore.graph import Graph, Node, Tensor
from graphcore.plumbing import KEEPS_VALUE
from graphcore.tf1.variables.collections import TRAINABLE_VARIABLES


class _Held(Protocol):
    @property
    def graph(self) -> Graph:
        """The graph of the variable."""

    @property
    def initializer(self) -> Node:
        """The node that sets the initial value."""

    @property
    def initial_value(self) -> Tensor:
        """The initial value."""

    @property
    def handle(self) -> Tensor:
        """The reference or the handle."""

    def is_initialized(self) -> Tensor:
        """True iff it has a value, at run time."""

    def as_graph_element(self) -> Tensor:
        """The tensor for fetches."""


class SessionValue:
    """The part of a variable that concerns its value in a session."""

    @property
    def trainable(self: _Held) -> bool:
        """True if optimizers change it unless they are given a list of variables."""
        return any(held is self for held in self.graph.collections.get(TRAINABLE_VARIABLES, ()))

    def count_up_to(self: _Held, limit: int) -> Tensor:
        """Increase it by 1 at run time, and give the value before; OutOfRangeError at `limit`.

        Raises:
            UnimplementedError: it is a resource.
        """
        if not self.handle.dtype.is_ref:
            raise UnimplementedError(
                f"'{self.handle.name}' is a resource; required a reference variable, which `gc.Variable(..., use_resource=False)` makes"
            )
        return self.graph.apply_op("CountUpTo", [self.handle], {"limit": limit}, None).outputs[0]

    def initialized_value(self: _Held) -> Tensor:
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

    def eval(self: _Held, session: Any = None) -> Any:
        """Its value in `session` (the default session if None)."""
        return self.as_graph_element().eval(session=session)

    def load(self: _Held, value: Any, session: Any = None) -> None:
        """Set its value in `session` (the default session if None), without new nodes."""
        initializer = self.initializer
        initializer.run({initializer.inputs[1]: value}, session)

    def __deepcopy__(self, memo: object) -> Self:
        """Itself: copies of layers and cells refer to the same variables."""
        return self
