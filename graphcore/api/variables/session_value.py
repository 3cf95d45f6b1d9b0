"""The value of a variable in one session, read and set from outside of the graph."""

from __future__ import annotations

from typing import Any, Protocol

from graphcore.api.variables.collections import TRAINABLE_VARIABLES
from graphcore.graph import Graph, Node, Tensor


class _Held(Protocol):
    @property
    def graph(self) -> Graph:
        """The graph of the variable."""

    @property
    def initializer(self) -> Node:
        """The node that sets the initial value."""

    def as_graph_element(self) -> Tensor:
        """The tensor for fetches."""


class SessionValue:
    """The part of a variable that concerns its value in a session."""

    @property
    def trainable(self: _Held) -> bool:
        """True if optimizers change it unless they are given a list of variables."""
        return any(held is self for held in self.graph.collections.get(TRAINABLE_VARIABLES, ()))

    def eval(self: _Held, session: Any = None) -> Any:
        """Its value in `session` (the default session if None)."""
        return self.as_graph_element().eval(session=session)

    def load(self: _Held, value: Any, session: Any = None) -> None:
        """Set its value in `session` (the default session if None), without new nodes."""
        initializer = self.initializer
        initializer.run({initializer.inputs[1]: value}, session)
