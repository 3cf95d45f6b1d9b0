"""Initializers that run only to give a variable some value: they leave a value that is there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from graphcore.graph import Node
from graphcore.kernel_context import RefVariable
from graphcore.plumbing import KEEPS_VALUE
from graphcore.registry import Kernel


def mild_initializers(targets: Iterable[Node], needed: Sequence[Node]) -> frozenset[str]:
    """The names of the initializers that a run needs only so that variables have values.

    Args:
        targets: the nodes that are to run.
        needed: all nodes of the run.
    """
    waiting = {node for node in needed if node.attr.get(KEEPS_VALUE)}
    if not waiting:
        return frozenset()
    waited = {control for node in waiting for control in node.control_inputs}
    others: set[Node] = set(targets)
    for node in needed:
        others.update([tensor.node for tensor in node.inputs])
        if node not in waiting:
            others.update(node.control_inputs)
    return frozenset([node.name for node in waited - others])


def unless_initialized(kernel: Kernel) -> Kernel:
    """The kernel of an assignment that does nothing to a variable with a value."""

    def assign(ref: RefVariable, value: Any) -> Any:
        return kernel(ref, value) if ref.value is None else ref

    return assign
