"""One edge of a graph, in the public form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from graphcore.graph.model.node import Node

CONTROL_SLOT: Final = -1
CONTROL_KEY: Final = (CONTROL_SLOT, CONTROL_SLOT)


class Edge(msgspec.Struct, frozen=True, gc=False):
    """An edge from output `src_output` of `src` to input `dst_input` of `dst`; both are -1 for control."""

    id: int
    src: Node
    src_output: int
    dst: Node
    dst_input: int

    @property
    def is_control_edge(self) -> bool:
        """True iff it is a control edge."""
        return self.src_output == CONTROL_SLOT

    def __str__(self) -> str:
        return f"[id={self.id} {_end_name(self.src)}:{self.src_output} -> {_end_name(self.dst)}:{self.dst_input}]"


def _end_name(node: Node | None) -> str:
    """The name of an end; missing if it was removed."""
    return "<NULL>" if node is None or node.graph.find_node_id(node.id) is not node else node.name
