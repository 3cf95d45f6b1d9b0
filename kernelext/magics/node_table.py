"""A list of nodes as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from graphcore.graph import Node
from graphcore.support.shown import html_text
from widgets.scene.lenses import cell_label

_MOST_ROWS: Final = 50
_HEAD: Final = ("name", "op", "outputs", "cell")


class NodeTable(Sequence[Node]):
    """Nodes that were found; a sequence that displays as a table.

    Args:
        nodes: the nodes.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = list(nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, index: int) -> Node:  # type: ignore[override]  # a slice of a table is not needed
        return self._nodes[index]

    def _rows(self) -> list[tuple[str, ...]]:
        return [_row(node) for node in self._nodes[:_MOST_ROWS]]

    @property
    def _more(self) -> str:
        return f"and {len(self) - _MOST_ROWS:,} more" if len(self) > _MOST_ROWS else ""

    def __repr__(self) -> str:
        if not self._nodes:
            return "no nodes"
        rows = [_HEAD, *self._rows()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
        lines = ["  ".join([f"{text:{width}}" for text, width in zip(row, widths, strict=True)]).rstrip() for row in rows]
        return "\n".join([*lines, *filter(None, [self._more])])

    def _repr_html_(self) -> str:
        if not self._nodes:
            return "<p>no nodes</p>"
        head = "".join([f"<th style='text-align:left'>{text}</th>" for text in _HEAD])
        rows = ["".join([f"<td style='text-align:left'>{html_text(text)}</td>" for text in row]) for row in self._rows()]
        return f"<table><tr>{head}</tr>{''.join([f'<tr>{row}</tr>' for row in rows])}</table><p>{self._more}</p>"


def _row(node: Node) -> tuple[str, ...]:
    outputs = ", ".join([f"{tensor.dtype.text} {tensor.shape}" for tensor in node.outputs])
    return node.name, node.op, outputs if node.error is None else f"error: {node.error.message.partition(chr(10))[0]}", cell_label(node)
