"""Nodes that may fail, which run even if only their statically known shape is needed.

TensorFlow runs them too: its optimiser replaces the shape by a constant and keeps a control dependency on the node. Nodes
that cannot fail and have no effect are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphcore.attrs import Array
from graphcore.definitions import name_ranges_for_node
from graphcore.graph.model.node import Node
from graphcore.traits import FailsOn


def may_fail(node: Node, constants: Sequence[Array | None], *, reads_variable: bool) -> bool:
    """True if running `node` may raise an error, as far as known before the run.

    Args:
        constants: the inputs that are the same in every run, None for the others.
        reads_variable: True if an input is a variable, which may be uninitialised.
    """
    can_fail = node.registration.traits.can_fail
    if reads_variable or can_fail is True:
        return True
    if any(not tensor.shape.is_fully_defined for tensor in node.inputs):
        return True  # they may be inconsistent
    return can_fail is not False and _may_fail_on(can_fail, node, constants)


def _may_fail_on(fails_on: FailsOn, node: Node, constants: Sequence[Array | None]) -> bool:
    checked: set[int] = set()
    if fails_on.values:
        ranges = name_ranges_for_node(node.node_def, node.op_def)[0]
        for name in fails_on.values:
            checked.update(range(*ranges[name]))
    if any(constants[slot] is None for slot in checked):
        return True
    others = [tensor for slot, tensor in enumerate(node.inputs) if slot not in checked]
    if fails_on.integers and any(tensor.dtype.base.is_integer for tensor in others):
        return True
    if fails_on.vectors and any(len(tensor.shape) < 2 for tensor in others):
        return True
    return fails_on.empty and any(tensor.shape.num_elements == 0 for tensor in (*others, *node.outputs))
