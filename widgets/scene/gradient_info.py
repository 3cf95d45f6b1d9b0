"""The origin of a gradient: the forward node, the registered function, and its body for this use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from graphcore.definitions import FunctionDef
from graphcore.errors import GraphError
from graphcore.functions import instantiate_function
from graphcore.registry import get_op_gradient_creator
from graphcore.text import debug_string
from widgets.inspection import GradientInfo

if TYPE_CHECKING:
    from graphcore.graph import GradientRecord, Node

_UNNAMED: Final = ("", "_")


def registered_gradient(node: Node) -> GradientInfo | None:
    """The registered gradient of a node's op, for this node's attrs. None if there is none."""
    try:
        creator = get_op_gradient_creator(node.op)
        function = None if creator is None else creator(node.node_def.attr)
    except GraphError:
        return None
    if function is None:
        return None
    named = _named(function, node.op)
    return GradientInfo(
        differentiates="",
        differentiates_id="",
        function=named.name,
        definition=debug_string(named).strip("\n"),
        instantiated=_instantiated(function, node.node_def.attr),
    )


def recorded_gradient(record: GradientRecord, op: str) -> GradientInfo:
    """The texts of a gradient node's function.

    Args:
        record: the origin of the gradient node.
        op: the op of the node that it differentiates.
    """
    function = None if record.function is None else _named(record.function, op)
    return GradientInfo(
        differentiates=record.forward,
        differentiates_id="",
        function="" if function is None else function.name,
        definition="" if function is None else debug_string(function).strip("\n"),
        instantiated="" if record.function is None else _instantiated(record.function, record.attrs),
    )


def _named(function: FunctionDef, op: str) -> FunctionDef:
    """Name an unnamed function of an op's block after the op."""
    if function.name not in _UNNAMED:
        return function
    return msgspec.structs.replace(function, signature=msgspec.structs.replace(function.signature, name=f"{op}Grad"))


def _instantiated(function: FunctionDef, attrs: Mapping[str, object]) -> str:
    try:
        return debug_string(instantiate_function(function, attrs).nodes).strip("\n")
    except GraphError as error:
        return f"cannot be instantiated: {error.message}"
