"""The clashing inputs of a node, and the origins of the sizes that clash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from widgets.inspection import Clash, SourceRow

if TYPE_CHECKING:
    from graphcore.graph import Node, Tensor
    from graphcore.source import SourceLocation

MAX_STEPS: Final = 10_000


def clashes_of(node: Node) -> list[Clash]:
    """The inputs named by the node's error, each followed by the origin of its size. [] without an error."""
    if (node.error is None or node.error.is_left) and not node.input_errors:
        return []
    wrong = [tensor for slot, tensor in enumerate(node.inputs) if slot in node.input_errors] or node.inputs
    rows = []
    for tensor in wrong:
        rows.append(_row(tensor, tensor.name))
        others = [other for other in wrong if other is not tensor]
        odd = _sizes(tensor).difference(*map(_sizes, others)) if others else set()
        size, origin = _origin(tensor, odd)
        if origin.node.source != tensor.node.source:
            rows.append(_row(origin, f"{origin.name}, where {size} comes from"))
    return rows


def source_row(source: SourceLocation | None) -> SourceRow | None:
    """A source location for the inspector; None for code of the interpreter itself.

    Such locations occur in programs like `python -m graphcore`.
    """
    if source is None or source.file.startswith("<frozen "):
        return None
    holder = source.holder
    run = holder or source.run
    return SourceRow(
        cell="" if run is None else run.label,
        line=source.line,
        text=source.text,
        file=source.file if run is None else "",  # that of a cell is a temporary one, and means nothing in a saved notebook
        cell_id="" if holder is None else holder.cell,
    )


def _row(tensor: Tensor, text: str) -> Clash:
    return Clash(tensor=text, shape=f"{tensor.dtype.base.text} {tensor.shape}", source=source_row(tensor.node.source))


def _sizes(tensor: Tensor) -> set[int]:
    return {size for size in tensor.shape.dims or () if size is not None and size != 1}


def _origin(tensor: Tensor, sizes: set[int]) -> tuple[int, Tensor]:
    """Follow one of `sizes` upstream as long as an input has it too."""
    for size in sorted(sizes):
        current = tensor
        for _ in range(MAX_STEPS):
            before = next((source for source in current.node.inputs if size in _sizes(source)), None)
            if before is None or before is current:
                break
            current = before
        if current is not tensor:
            return size, current
    return 0, tensor
