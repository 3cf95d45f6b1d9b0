"""The reads of a variable, and the values of a node for the gradient of its single output."""

from __future__ import annotations

from graphcore.graph import Node, Tensor


def reads_of(handle: Tensor) -> list[Tensor]:
    """The reads of a variable through its handle, of all or of rows, outside of functions and loops."""
    return [
        node.outputs[0] for node, slot in handle.graph.tensor_consumers(handle) if slot == 0 and node.registration.traits.reads_variable
    ]


class OneGradient:
    """The values of a node, and the gradient of its single output."""

    def __init__(self, node: Node, gradient: Tensor) -> None:
        self.node = node
        self.given = gradient

    def input(self, slot: int) -> Tensor:
        """The value of input `slot`."""
        return self.node.inputs[slot]

    def output(self, index: int) -> Tensor:
        """The value of output `index`."""
        return self.node.outputs[index]

    def gradient(self, _: int) -> Tensor:
        """The gradient of the output."""
        return self.given
