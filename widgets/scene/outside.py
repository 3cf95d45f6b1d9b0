"""Explanations of shapes across open calls: from arguments inside to tensors outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from graphcore.errors import GraphError
from graphcore.graph.provenance.explain_shape import explain_tensor

if TYPE_CHECKING:
    from graphcore.graph import Tensor
    from graphcore.graph.provenance.origins import Fact, Origin

MOST_FACTS: Final = 100
"""The most steps behind forks of an explanation in a picture, which shows few of them."""


class OutsideOrigins:
    """The explanations of arguments of open calls by the tensors given to them, each made once.

    Args:
        given: the tensors given to arguments, by the name of the argument node.
    """

    def __init__(self, given: Mapping[str, Tensor]) -> None:
        self._given = given
        self._found: dict[tuple[str, Fact], Origin | None] = {}

    def of(self, root: Origin) -> Origin | None:
        """The explanation of an argument of an open call `root` by the caller; None elsewhere."""
        tensor = self._given.get(root.node)
        if tensor is None or root.because:
            return None
        key = root.node, root.fact
        if key not in self._found:
            self._found[key] = _explained(root, tensor)
        return self._found[key]


def _explained(root: Origin, tensor: Tensor) -> Origin | None:
    try:
        tensor.node.graph.settle()
        explanation = explain_tensor(tensor, most=MOST_FACTS)
    except GraphError:
        return None
    if root.fact.kind == "rank":
        return explanation.rank
    if root.fact.kind == "dimension" and root.fact.index < len(explanation.dimensions):
        return explanation.dimensions[root.fact.index]
    return None
