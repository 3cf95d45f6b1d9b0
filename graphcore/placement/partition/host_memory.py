"""The memory of a port: host or device."""

from __future__ import annotations

from typing import Final

from graphcore.dtypes import int32, resource, string
from graphcore.graph.model.node import Node
from graphcore.plumbing import ANY_SWITCH, LOOP_COND

ON_HOST: Final = frozenset({int32, string, resource})
"""The types whose values are in host memory."""
_PREDICATE_SLOT: Final = 1


def in_host_memory(node: Node, slot: int, *, is_output: bool) -> bool:
    """True iff a port is in host memory when its node is on a device that is no CPU.

    That holds for handles, strings and int32, for what control flow depends on, and for values that decide shapes.

    Args:
        node: the node.
        slot: the index of the input or output.
        is_output: True for an output.
    """
    dtype = node.output_types[slot] if is_output else node.input_types[slot]
    if dtype.base in ON_HOST or node.op == LOOP_COND:
        return True
    if is_output:
        return node.registration.traits.numbers_from_shapes is not None
    return (node.op in ANY_SWITCH and slot == _PREDICATE_SLOT) or decides_shapes(node, slot)


def decides_shapes(node: Node, slot: int) -> bool:
    """True iff an input is an integer whose value decides the shape of an output."""
    return node.input_types[slot].base.is_integer and bool(node.requested_values >> slot & 1)
