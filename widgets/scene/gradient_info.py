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
from widgets.scene.boxes import Visible
from widgets.scene.mirror import Mirrored

if TYPE_CHECKING:
    from graphcore.graph import GradientRecord, Graph, Node

_UNNAMED: Final = ("", "_")
MAX_BUILT: Final = 200


def gradient_info(graph: Graph, node: Node, visible: Visible) -> GradientInfo | None:
    """For a gradient node: the differentiated node and the function's part; None for other nodes."""
    record = graph.gradient_records.get(node.name)
    return None if record is None else _from_record(graph, node, record, visible, record.body_node)


def body_info(graph: Graph, path: str, nodes: list[Node], visible: Visible) -> GradientInfo | None:
    """For a scope that is one inlined gradient function: the same. None for any other scope."""
    if not visible.roles.body_of(path) or not nodes:
        return None
    record = graph.gradient_records.get(nodes[0].name)
    return None if record is None else _from_record(graph, nodes[0], record, visible, "")


def mirrored_info(graph: Graph, part: Mirrored, visible: Visible) -> GradientInfo | None:
    """For the gradient of one node in a mirrored picture: the same. None for the gradient of a scope."""
    nodes = part.all_nodes() if part.is_body else []
    records = graph.gradient_records
    node = next((node for node in nodes if node.name in records and records[node.name].function is not None), None)
    return None if node is None else _from_record(graph, node, records[node.name], visible, "")


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


def _from_record(graph: Graph, node: Node, record: GradientRecord, visible: Visible, body_node: str) -> GradientInfo:
    forward = graph.find(record.forward)
    box = visible.box_of.get(record.forward)
    return msgspec.structs.replace(
        recorded_gradient(record, "" if forward is None else forward.op),
        differentiates_id="" if box is None else box.id,
        body_node=body_node,
        built="" if record.function is None else _built(graph, node),
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


def _built(graph: Graph, node: Node) -> str:
    """The nodes of an inlined body, by their names in it."""
    scope = node.name.rpartition("/")[0] + "/"
    records = graph.gradient_records
    function = records[node.name].function
    names = [name for name, record in records.items() if record.function is function and name.startswith(scope)]
    found = [other for other in map(graph.find, names) if other is not None]
    return "\n".join([debug_string(other.node_def).strip("\n").replace(scope, "") for other in found[:MAX_BUILT]])


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
