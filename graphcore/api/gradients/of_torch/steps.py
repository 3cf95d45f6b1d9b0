"""The way of a gradient of PyTorch: calls with their backward functions, and sums."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from graphcore.api.gradients.explanation import BackwardNode, GradientPart, GradientStep, GradientSum
from graphcore.api.gradients.of_torch.forward import Forward
from graphcore.frontends.torch_calls.backward import Backward
from graphcore.frontends.torch_calls.ways import Ref
from graphcore.passes.gradients.explanation.paths import MOST_COUNTED


class Steps:
    """The way of a gradient from the results to a leaf.

    Args:
        forward, backward: the computation and its backward pass.
        end: the function at which the gradient arrives.
        carrying: the tensors that depend on the leaf.

    Attributes:
        on_way: the backward functions on the way, from the results on.
        steps, sums, paths, path_count: as in `GradientExplanation`.
    """

    def __init__(self, forward: Forward, backward: Backward, end: Any, carrying: Collection[Ref]) -> None:
        self._forward = forward
        self._backward = backward
        leading = {end}
        for function in reversed(backward.order):
            if any(following in leading for following, _ in function.next_functions):
                leading.add(function)
        self.on_way = [function for function in backward.order if function in leading]
        self._start: Ref = (backward.owner(end), 0)
        made: dict[str, list[BackwardNode]] = {}
        for function in self.on_way:
            node, kind = backward.node_of[function], type(function).__name__
            made.setdefault(backward.owner(function), []).append(BackwardNode(name=forward.shown(node), op=f"torch.{kind}", body_node=kind))
        order = [name for name in reversed(forward.nodes) if name in made]
        self._slots = {name: [slot for slot, ref in enumerate(forward.nodes[name].inputs) if ref in carrying] for name in order}
        self.steps = tuple(
            [
                GradientStep(
                    node=forward.shown(name),
                    op=forward.op(name),
                    inputs=tuple(self._slots[name]),
                    backward=tuple(made[name]),
                    source=forward.source(name),
                )
                for name in order
            ]
        )
        self.sums = tuple([self._sum(function, number) for function, number in backward.parts if function in leading])
        path = forward.path_to_result(self._start)
        self.paths = (tuple([forward.shown(name) for name in path]),) if path else ()
        self.path_count = max(self._count(carrying), 1)

    def _count(self, carrying: Collection[Ref]) -> int:
        """The number of ways, by calls."""
        counts: dict[str, int] = {self._start[0]: 1}
        for name in self._forward.nodes:
            taken = [ref[0] for ref in self._forward.sources(name) if ref in carrying]
            if taken:
                counts[name] = min(sum(counts.get(source, 0) for source in taken), MOST_COUNTED)
        return min(sum(counts.get(node, 0) for node, _ in self._forward.results), MOST_COUNTED)

    def _sum(self, function: Any, number: int) -> GradientSum:
        forward, backward = self._forward, self._backward
        owner = backward.owner(function)
        owners = {node: backward.owner(other) for other, node in backward.node_of.items()}
        parts = []
        for ref in backward.parts[function, number]:
            taker = owners.get(ref[0], "")
            inputs = forward.nodes[taker].inputs if taker in forward.nodes else ()
            slot = next((slot for slot, taken in enumerate(inputs) if taken is not None and taken[0] == owner), 0)
            parts.append(GradientPart(gradient=forward.name(ref), node=forward.shown(taker) if taker else "", input=slot))
        return GradientSum(tensor=forward.name((owner, 0)), gradient=forward.name(backward.arriving[function, number]), parts=tuple(parts))
