"""Likeness: symbols for equal op structure, and differences of ops.

Names, shapes and attr values do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from typing import TYPE_CHECKING, Final

from graphcore.plumbing import NO_OP
from widgets.scene.structure.decompose import Order, Span
from widgets.scene.structure.naming import plain
from widgets.scene.structure.serving import is_end, is_plumbing

if TYPE_CHECKING:
    from graphcore.graph import Node

OTHER: Final = 0.2
"""Near-alike groups differ in at most this share of their ops."""
_ROUNDS: Final = 2


class Symbols:
    """Whole numbers for structures: equal structures have equal numbers."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def of(self, structure: Hashable) -> int:
        """The number of a structure."""
        return self._numbers.setdefault(structure, len(self._numbers))

    def of_nodes(self, nodes: Sequence[Node]) -> int:
        """The number of a set of nodes: their ops, and those before each within two steps."""
        if len(nodes) == 1:
            return self.of(nodes[0].op)
        marks: dict[str, int] = {node.name: self.of(node.op) for node in nodes}
        for _ in range(_ROUNDS):
            marks = {node.name: self.of((marks[node.name], *[marks.get(tensor.node.name, -1) for tensor in node.inputs])) for node in nodes}
        return self.of(tuple(sorted(marks.values())))

    def of_span(self, order: Order, marks: Sequence[int], span: Span) -> int:
        """The number of an interval of items with the edges between them."""
        if span.size == 1:
            return marks[span.start]
        local: dict[int, int] = {}
        for position in range(span.start, span.stop):
            local[position] = self.of((marks[position], *[local.get(source, -1) for source in order.inputs[position]]))
        return self.of(tuple(sorted(local.values())))


def main_ops(nodes: Collection[Node], serving: Collection[str]) -> Counter[str]:
    """The ops of nodes by number, without those of parameters, constants and plumbing."""
    return Counter(
        [node.op for node in nodes if node.op != NO_OP and node.name not in serving and not is_plumbing(node) and not is_end(node)]
    )


def difference(ours: Counter[str], theirs: Counter[str]) -> float:
    """The share of ops of the larger that the smaller has not."""
    larger = max(ours.total(), theirs.total())
    return 1.0 - (ours & theirs).total() / larger if larger else 0.0


def near(ours: Counter[str], theirs: Counter[str]) -> bool:
    """True iff at most a fifth of the ops are other ones."""
    return difference(ours, theirs) <= OTHER + 1e-9


def differences(instances: Sequence[Counter[str]]) -> str:
    """The ops in which instances differ from most of them, in words: `first also: Conv2D, Relu`."""
    usual = Counter(tuple(sorted(ops.items())) for ops in instances).most_common(1)[0][0]
    usual_ops = Counter(dict(usual))
    words = []
    for number, ops in enumerate(instances):
        more, less = sorted((ops - usual_ops).elements()), sorted((usual_ops - ops).elements())
        place = "first" if number == 0 else "last" if number == len(instances) - 1 else f"number {number + 1}"
        if more:
            words.append(f"{place} also: {', '.join(dict.fromkeys(map(plain, more)))}")
        if less:
            words.append(f"{place} without: {', '.join(dict.fromkeys(map(plain, less)))}")
    return "; ".join(words[:3]) + ("; …" if len(words) > 3 else "")
