"""Gradient functions that replace a size of -1, "the rest", by the actual size."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from graphcore.attrs import Placeholder
from graphcore.definitions import FunctionDef, NodeDef

_SLICE: Final = "Slice"
_ACTUAL: Final = NodeDef("actual_size", "Shape", ("dy",), "", {"T": Placeholder("T")})


def with_actual_sizes(op: str, function: FunctionDef) -> FunctionDef:
    """The gradient function of `op`; that of Slice takes the size from the incoming gradient.

    So a size of -1 is handled too.
    """
    if op != _SLICE or all(node.name != "xs_b_s" for node in function.node_def):
        return function
    nodes: list[NodeDef] = []
    for node in function.node_def:
        if node.name == "xs_b_s":
            nodes.append(_ACTUAL)
            node = replace(node, input=(node.input[0], "actual_size:output:0"))
        nodes.append(node)
    return replace(function, node_def=tuple(nodes))
