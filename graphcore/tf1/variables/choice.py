"""The choice of the variables of a call."""

from __future__ import annotations

from collections.abc import Sequence

from graphcore.dtypes import DType
from graphcore.graph import Graph, Node
from graphcore.source import current_run
from graphcore.tf1.variables.collections import VARIABLES
from graphcore.tf1.variables.variables import Variable


class VariableChoice:
    """The variables of a call: given ones, or those in a collection at its time.

    In a notebook that means all that earlier cells make: running one of these again may add and remove some.

    Args:
        graph: the graph of the variables.
        variables: these variables; None for a collection.
        collection: the name of the collection.
    """

    def __init__(self, graph: Graph, variables: Sequence[Variable] | None = None, collection: str = VARIABLES) -> None:
        self.graph = graph
        self._given = None if variables is None else list(variables)
        self._collection = collection
        self._run = current_run.get()
        self._number = graph.derivations.count
        self._first = frozenset([variable.op.name for variable in graph.get_collection(collection)])

    def now(self) -> list[Variable]:
        """The current variables."""
        graph = self.graph
        if self._given is not None:
            present = {variable.op.name: variable for variable in graph.get_collection(VARIABLES)}
            return [present.get(variable.op.name, variable) for variable in self._given]
        return [variable for variable in graph.get_collection(self._collection) if self._concerns(variable.op)]

    def _concerns(self, node: Node) -> bool:
        graph = self.graph
        return node.name in self._first or graph.cells.comes_before(node, self._run) or graph.derivations.made_before(node, self._number)

    def names(self) -> list[str]:
        """Their names."""
        return [variable.op.name for variable in self.now()]

    def initializers(self) -> list[str]:
        """The names of the nodes that initialise them."""
        return [variable.initializer.name for variable in self.now()]

    def kinds(self) -> list[tuple[str, DType, str, bool]]:
        """Name, dtype, shape, and True for a resource, of each: a training step depends on these."""
        return [(variable.op.name, variable.dtype, str(variable.shape), variable.is_resource) for variable in self.now()]
