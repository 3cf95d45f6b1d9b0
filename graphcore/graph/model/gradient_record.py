"""Records of the origins of gradient nodes."""

from __future__ import annotations

from graphcore.attrs import Attrs
from graphcore.definitions import FunctionDef


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
