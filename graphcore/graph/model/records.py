"""Further data of a graph besides nodes and edges."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from graphcore.attrs import Attrs
from graphcore.definitions import FunctionDef

if TYPE_CHECKING:
    from graphcore.graph.model.node import Node


class GradientRecord:
    """The origin of a gradient node.

    Attributes:
        forward: the name of the node it differentiates.
        function: the registered gradient function of that node's op, None for sums and seeds of the backward pass.
        attrs: the attrs the function was instantiated with.
        body_node: the corresponding node of the function's body.
    """

    __slots__ = ("attrs", "body_node", "forward", "function")

    def __init__(self, forward: str, function: FunctionDef | None, attrs: Attrs, body_node: str) -> None:
        self.forward = forward
        self.function = function
        self.attrs = attrs
        self.body_node = body_node


class ScopeStack:
    """The scopes of the next node.

    Attributes:
        name: the current name scope with a trailing "/", "" at the top.
        device: the merged device request.
        controls: the control inputs of every new node.
    """

    __slots__ = ("controls", "device", "name")

    def __init__(self) -> None:
        self.name = ""
        self.device = ""
        self.controls: tuple[Node, ...] = ()


class ThreadScopes(threading.local):
    """The scopes of each thread, which do not affect the nodes of other threads.

    Attributes:
        here: those of this thread; a new thread has none.
    """

    def __init__(self) -> None:
        self.here = ScopeStack()
