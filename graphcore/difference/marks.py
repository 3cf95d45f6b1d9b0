"""The difference of two graphs by the nodes and edges of the graph that shows both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, get_args

import msgspec

from graphcore.difference.diff import counts_text
from graphcore.graph.attached import Attached

MarkKind = Literal["added", "removed", "changed", "renamed", "moved", "follows"]
"""`renamed` alone, or `moved` with its scope; `follows`: only types and shapes follow from a change."""
TOUCHED: Final = frozenset({"added", "removed", "changed", "renamed"})
"""The kinds that a picture opens scopes for."""


class Mark(msgspec.Struct, frozen=True):
    """The difference of one node: its kind, and what has changed in words."""

    kind: MarkKind
    text: str = ""


class OldEdge(msgspec.Struct, frozen=True):
    """An edge that is no longer there: names in the graph that shows both. Slot -1 stands for a control edge."""

    producer: str
    output: int
    consumer: str
    slot: int


class Marks(msgspec.Struct, frozen=True, eq=False):
    """The differences, for pictures of the graph that shows both states.

    Attributes:
        nodes: the marks of nodes; unchanged ones have none.
        new_inputs: consumer and slot of each edge between kept nodes that was not there before; slot -1 with the producer's name after
            it stands for a control edge.
        old_edges: edges to kept nodes that are gone.
        scopes: the former names of renamed scopes by their later ones.
        summary: the counts.
        functions: the marks of the nodes in the bodies of changed functions, by function and name in it.
    """

    nodes: dict[str, Mark]
    new_inputs: frozenset[tuple[str, int, str]]
    old_edges: tuple[OldEdge, ...]
    scopes: dict[str, str]
    summary: str
    functions: dict[str, dict[str, Mark]] = {}

    def within(self, function: str, path: str) -> Marks:
        """The marks of the body of a function whose nodes are named below `path`."""
        nodes = {f"{path}/{name}": mark for name, mark in self.functions.get(function, {}).items()}
        return Marks(nodes, frozenset(), (), {}, "", self.functions)

    def kind_of(self, name: str) -> MarkKind | None:
        """The kind of difference of a node, None for an unchanged one."""
        mark = self.nodes.get(name)
        return None if mark is None else mark.kind

    def is_touched(self, name: str) -> bool:
        """True iff a node itself is different, not only its scope or a node before it."""
        mark = self.nodes.get(name)
        return mark is not None and mark.kind in TOUCHED

    def counts(self, names: Iterable[str]) -> str:
        """The differences among some nodes, counted: `+3 −1 ~2`; "" if there are none."""
        totals = dict.fromkeys(get_args(MarkKind), 0)
        for name in names:
            mark = self.nodes.get(name)
            if mark is not None:
                totals[mark.kind] += 1
        counts = counts_text(totals["added"], totals["removed"], totals["changed"], totals["renamed"])
        return counts or (f"{totals['follows']:,} of other shapes" if totals["follows"] else "")

    def is_new_edge(self, producer: str, consumer: str, slot: int) -> bool:
        """True iff the edge was not there before."""
        kinds = (self.kind_of(producer), self.kind_of(consumer))
        return "added" in kinds or (consumer, slot, producer if slot < 0 else "") in self.new_inputs


shown_difference: Final[Attached[Marks]] = Attached()
"""The marks of the difference that a graph shows; none for other graphs."""
