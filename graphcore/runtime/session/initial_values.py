"""Variables that keep a value although their initial value has changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from graphcore.dtypes import DType
from graphcore.graph import Graph, Node
from graphcore.graph.model.reachability import names_downstream
from graphcore.kernel_context import ResourceManager
from graphcore.shapes import Shape

_VARIABLES: Final = "variables"


class InitialValues:
    """Records which variables of a session hold a value from an initializer that has changed.

    Attributes:
        outdated: the names of such variables, by the names of their initializers.
        lost: the names of variables whose value does not fit their new declaration, by the names of their initializers.
    """

    def __init__(self) -> None:
        self.outdated: dict[str, str] = {}
        self.lost: dict[str, str] = {}

    def note_changes(self, graph: Graph, resources: ResourceManager, changed: set[str]) -> None:
        """Record changed nodes."""
        with_value = set(resources.initialised())
        listed: list[Any] = [variable for variable in graph.get_collection(_VARIABLES) if variable.op.name in with_value]
        if listed and changed:
            reached = names_downstream(graph, changed)
            for variable in [variable for variable in listed if variable.initializer.name in reached]:
                lost = resources.is_declared_otherwise(variable.op.name, *_declared(variable.op))
                (self.lost if lost else self.outdated)[variable.initializer.name] = variable.op.name
                (self.outdated if lost else self.lost).pop(variable.initializer.name, None)

    def note_run(self, nodes: Iterable[Node]) -> None:
        """Record a prepared run of these nodes: it initialises the variables of initializers among them."""
        if self.outdated or self.lost:
            for node in nodes:
                self.outdated.pop(node.name, None)
                self.lost.pop(node.name, None)


def _declared(variable: Node) -> tuple[DType, Shape]:
    dtype, shape = variable.node_def.attr.get("dtype"), variable.node_def.attr.get("shape")
    assert isinstance(dtype, DType)
    assert isinstance(shape, Shape)
    return dtype, shape
