"""Variables that keep a value although their initial value has changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from graphcore.graph import Graph, Node
from graphcore.graph.model.reachability import names_downstream
from graphcore.kernel_context import ResourceManager

_VARIABLES: Final = "variables"


class InitialValues:
    """Records which variables of a session hold a value from an initializer that has changed.

    Attributes:
        outdated: the names of such variables, by the names of their initializers.
    """

    def __init__(self) -> None:
        self.outdated: dict[str, str] = {}

    def note_changes(self, graph: Graph, resources: ResourceManager, changed: set[str]) -> None:
        """Record changed nodes."""
        with_value = set(resources.initialised())
        listed: list[Any] = [each for each in graph.get_collection(_VARIABLES) if each.op.name in with_value]
        if listed and changed:
            reached = names_downstream(graph, changed)
            self.outdated.update({each.initializer.name: each.op.name for each in listed if each.initializer.name in reached})

    def note_run(self, nodes: Iterable[Node]) -> None:
        """Record a prepared run of these nodes: it initialises the variables of initializers among them."""
        if self.outdated:
            for node in nodes:
                self.outdated.pop(node.name, None)
