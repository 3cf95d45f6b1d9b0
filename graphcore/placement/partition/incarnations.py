"""Incarnations: numbers that tell a device from the same device before a restart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from graphcore.attrs import AttrValue, attr_text
from graphcore.definitions import GraphDef, NodeDef

GetIncarnation = Callable[[str], int]
"""The incarnation of a device, by its name."""
FIRST_INCARNATION: Final = 1
_NOT_SET: Final = 0
_TRANSFERS: Final = frozenset({"_Send", "_Recv"})
_ATTR: Final = "send_device_incarnation"


def first_incarnation(device: str) -> int:  # noqa: ARG001 - the signature is that of GetIncarnation
    """The incarnation of a device that never restarts."""
    return FIRST_INCARNATION


def set_incarnation(graph_def: GraphDef, get_incarnation: GetIncarnation) -> GraphDef:
    """Fill in the incarnation of the sending device in `_Send` and `_Recv` nodes that have none.

    Nodes in functions are filled in too. Nodes with another number than 0, or without a sending device, stay as they are.

    Args:
        graph_def: the graph.
        get_incarnation: the incarnation of a device, by its name.
    """
    nodes = _with_incarnations(graph_def.node, get_incarnation)
    functions = []
    for function in graph_def.library.function:
        body = _with_incarnations(function.node_def, get_incarnation)
        functions.append(function if body is function.node_def else msgspec.structs.replace(function, node_def=body))
    library = msgspec.structs.replace(graph_def.library, function=tuple(functions))
    return msgspec.structs.replace(graph_def, node=nodes, library=library)


def _with_incarnations(nodes: tuple[NodeDef, ...], get_incarnation: GetIncarnation) -> tuple[NodeDef, ...]:
    lacking = [number for number, node in enumerate(nodes) if node.op in _TRANSFERS and _lacks_incarnation(node)]
    if not lacking:
        return nodes
    changed = list(nodes)
    for number in lacking:
        node = nodes[number]
        incarnation: AttrValue = get_incarnation(attr_text(node.attr["send_device"]))
        changed[number] = msgspec.structs.replace(node, attr={**node.attr, _ATTR: incarnation})
    return tuple(changed)


def _lacks_incarnation(node: NodeDef) -> bool:
    return bool(node.attr.get("send_device")) and node.attr.get(_ATTR, _NOT_SET) == _NOT_SET
