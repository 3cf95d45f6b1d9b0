"""Explanations of shapes across open calls: from arguments inside to tensors outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from graphcore.errors import GraphError
from graphcore.graph.provenance.explain_shape import KnownSteps, explain_fact
from graphcore.graph.provenance.origins import Fact

if TYPE_CHECKING:
    from graphcore.graph import Graph, Tensor
    from graphcore.graph.provenance.origins import Origin

MOST_FACTS: Final = 100
"""The most steps behind forks of an explanation in a picture, which shows few of them."""


class StepsByGraph:
    """The known steps of explanations of each graph or body, while none of them changes."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Graph, KnownSteps]] = {}

    def of(self, graph: Graph) -> KnownSteps:
        """The steps of one graph; new ones may be added."""
        return self._known.setdefault(id(graph), (graph, KnownSteps()))[1]


class OutsideOrigins:
    """The explanations of arguments of open calls by the tensors given to them, each made once.

    Args:
        arguments: the tensors given to arguments, by the name of the argument node.
        steps: those of explanations made before; new ones are added.

    Attributes:
        steps: the steps of all explanations.
    """

    def __init__(self, arguments: Mapping[str, Tensor], steps: StepsByGraph | None = None) -> None:
        self.steps = steps or StepsByGraph()
        self._arguments = arguments
        self._found: dict[tuple[str, Fact], Origin | None] = {}

    def of(self, root: Origin) -> Origin | None:
        """The explanation of an argument of an open call `root` by the caller; None elsewhere."""
        tensor = self._arguments.get(root.node)
        if tensor is None or root.because:
            return None
        key = root.node, root.fact
        if key not in self._found:
            self._found[key] = self._explained(root, tensor)
        return self._found[key]

    def _explained(self, root: Origin, tensor: Tensor) -> Origin | None:
        kind, index = root.fact.kind, root.fact.index
        graph = tensor.node.graph
        try:
            graph.settle()
            if kind != "rank" and not (kind == "dimension" and index < (tensor.shape.rank or 0)):
                return None
            return explain_fact(tensor, Fact(tensor.name, kind, index), self.steps.of(graph), MOST_FACTS)
        except GraphError:
            return None
