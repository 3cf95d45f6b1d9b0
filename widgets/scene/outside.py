"""Explanations of shapes across open calls: from arguments inside to tensors outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphcore.api import explain_shape
from graphcore.errors import GraphError
from widgets.scene.visible import Visible

if TYPE_CHECKING:
    from graphcore.graph.provenance.origins import Origin


def from_outside(root: Origin, visible: Visible) -> Origin | None:
    """Extend the explanation of an argument of an open call `root` to the caller; None elsewhere."""
    tensor = visible.given.get(root.node)
    if tensor is None or root.because:
        return None
    try:
        explanation = explain_shape(tensor)
    except GraphError:
        return None
    if root.fact.kind == "rank":
        return explanation.rank
    if root.fact.kind == "dimension" and root.fact.index < len(explanation.dimensions):
        return explanation.dimensions[root.fact.index]
    return None
