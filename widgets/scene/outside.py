"""Explanations of shapes across open calls: from arguments inside to tensors outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from graphcore.api import explain_shape
from graphcore.errors import GraphError

if TYPE_CHECKING:
    from graphcore.graph import Tensor
    from graphcore.graph.provenance.origins import Origin


def from_outside(root: Origin, given: Mapping[str, Tensor]) -> Origin | None:
    """Extend the explanation of an argument of an open call `root` to the caller; None elsewhere.

    Args:
        given: the tensors given to arguments, by the name of the argument node.
    """
    tensor = given.get(root.node)
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
