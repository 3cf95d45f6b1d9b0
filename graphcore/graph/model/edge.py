"""One edge of a graph, as its users hold it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from graphcore.graph.model.node import Node

CONTROL_SLOT: Final = -1
CONTROL_KEY: Final = (CONTROL_SLOT, CONTROL_SLOT)


class Edge(msgspec.Struct, frozen=True, gc=False):
    """Output `src_output` of `src` feeds input `dst_input` of `dst`; both are -1 for a control edge."""

    id: int
    src: Node
    src_output: int
    dst: Node
    dst_input: int

    @property
    def is_control_edge(self) -> bool:
        """True iff it only orders."""
        return self.src_output == CONTROL_SLOT

    def __str__(self) -> str:
        return f"[id={self.id} {_end_name(self.src)}:{self.src_output} -> {_end_name(self.dst)}:{self.dst_input}]"


def _end_name(node: Node | None) -> str:
    """The name of an end; one that has left the graph since is shown as missing."""
    return "<NULL>" if node is None or node.graph.find_node_id(node.id) is not node else node.name
