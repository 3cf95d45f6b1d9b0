"""Search for nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from widgets.messages import SearchHit, SearchMessage
from widgets.scene.lenses import cell_label
from widgets.scene.query import Query, Searched
from widgets.scene.shapes.unknowns import shape_text
from widgets.scene.words import attr_text

if TYPE_CHECKING:
    from graphcore.graph import Node

MAX_HITS: Final = 50


def matching(query: str, nodes: Iterable[Node]) -> list[Node]:
    """The nodes that match a query, in their order."""
    parsed = Query(query)
    return [node for node in nodes if parsed.rank(_NodeFacts(node)) is not None]


def hits(query: str, searched: Iterable[Searched], *, limit: int = MAX_HITS) -> SearchMessage:
    """The best `limit` of the nodes searched that match, in order of rank, length of name, and place."""
    parsed = Query(query)
    ranked = [(rank, len(node.name), place, node) for place, node in enumerate(searched) if (rank := parsed.rank(node)) is not None]
    ranked.sort(key=lambda item: item[:3])
    best = [SearchHit(node=node.name, name=node.name, op=node.op) for *_, node in ranked[: max(limit, 0)]]
    return SearchMessage(query=query, hits=best, total=len(ranked))


class _NodeFacts:
    """The facts of a node of a graph, read when a query needs them."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.name = node.name
        self.op = node.op

    @property
    def cell(self) -> str:
        return cell_label(self.node)

    @property
    def device(self) -> str:
        return self.node.assigned_device or self.node.device

    @property
    def dtypes(self) -> Sequence[str]:
        return [tensor.dtype.text for tensor in self.node.outputs]

    @property
    def shapes(self) -> Sequence[str]:
        return [shape_text(tensor) for tensor in self.node.outputs]

    @property
    def attrs(self) -> dict[str, str]:
        return {name: attr_text(value) for name, value in sorted(self.node.node_def.attr.items())}
