"""What a graph remembers besides nodes and edges."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from graphcore.attrs import Attrs
from graphcore.definitions import FunctionDef

if TYPE_CHECKING:
    from graphcore.graph.model.node import Node


class GradientRecord:
    """Why a gradient node is there.

    Attributes:
        forward: the name of the node it differentiates.
        function: the registered gradient function of that node's op, None for sums and seeds of the backward pass.
        attrs: the attrs the function was instantiated with.
        body_node: which node of the function's body it is.
    """

    __slots__ = ("attrs", "body_node", "forward", "function")

    def __init__(self, forward: str, function: FunctionDef | None, attrs: Attrs, body_node: str) -> None:
        self.forward = forward
        self.function = function
        self.attrs = attrs
        self.body_node = body_node


class ScopeStack:
    """What applies to the node that is built next.

    Attributes:
        name: the current name scope with a trailing "/", "" at the top.
        device: the merged device request.
        controls: the nodes every new node waits for.
    """

    __slots__ = ("controls", "device", "name")

    def __init__(self) -> None:
        self.name = ""
        self.device = ""
        self.controls: tuple[Node, ...] = ()


class ThreadScopes(threading.local):
    """The scopes that each thread is in: what one thread opens does not concern the nodes that another builds meanwhile.

    Attributes:
        here: those of this thread; a new thread is in none.
    """

    def __init__(self) -> None:
        self.here = ScopeStack()
