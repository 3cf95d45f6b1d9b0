"""The record of a backward pass, for explanations of gradients."""

from __future__ import annotations

from graphcore.graph import Node, Tensor


class GradientTrace:
    """The course of one backward pass.

    Attributes:
        contributions: for each forward tensor its gradients, each with the node (and its input) that passed it back; None for
            the seed at a y.
        dropped: nodes of which an output has no gradient though one arrives at it, and the reason.
        sums: for each forward tensor the gradient that is the sum of its contributions.
    """

    __slots__ = ("contributions", "dropped", "sums")

    def __init__(self) -> None:
        self.contributions: dict[Tensor, list[tuple[Tensor, Node | None, int]]] = {}
        self.dropped: dict[Node, str] = {}
        self.sums: dict[Tensor, Tensor] = {}

    def arrived(self, tensor: Tensor, gradient: Tensor, node: Node | None, slot: int) -> None:
        """Record that `node` passed `gradient` back to its input `slot`, which is `tensor`."""
        self.contributions.setdefault(tensor, []).append((gradient, node, slot))
