"""Variables that keep a value although their initial value is another one now."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from graphcore.graph import Graph, Node
from graphcore.graph.model.reachability import names_downstream
from graphcore.kernel_context import ResourceManager

_VARIABLES: Final = "variables"


class InitialValues:
    """Notes for one session which of its variables hold a value that a changed initializer no longer gives.

    Attributes:
        outdated: the names of such variables, by the names of their initializers.
    """

    def __init__(self) -> None:
        self.outdated: dict[str, str] = {}

    def note_changes(self, graph: Graph, resources: ResourceManager, changed: set[str]) -> None:
        """These nodes have changed."""
        with_value = {variable.owner for variable in list(resources.variables.values()) if variable.value is not None}
        listed: list[Any] = [each for each in graph.get_collection(_VARIABLES) if each.op.name in with_value]
        if listed and changed:
            reached = names_downstream(graph, changed)
            self.outdated.update({each.initializer.name: each.op.name for each in listed if each.initializer.name in reached})

    def note_run(self, nodes: Iterable[Node]) -> None:
        """A run of these nodes has been prepared: it gives the variables whose initializers are among them their new initial values."""
        if self.outdated:
            for node in nodes:
                self.outdated.pop(node.name, None)
