"""Explanations that only a kernel can give: origins of shapes, reasons for devices, values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphcore.definitions import summarize_node_def
from graphcore.passes import InstantiatedFunctions
from widgets.inspection import Explanation
from widgets.scene.calls import Call, Opener, has_hub
from widgets.scene.node_facts import node_def_text
from widgets.scene.outside import OutsideOrigins
from widgets.scene.placement_info import placement_of
from widgets.scene.shapes.why import why_of
from widgets.scene.values import values_of

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node, Tensor
    from widgets.scene.calls import CallBody


class Located:
    """A node of a graph, or of a body of one of its calls.

    Attributes:
        node: the node.
        outer_arguments: the tensors given to the arguments of the bodies around it, by argument.
    """

    def __init__(self, node: Node, outer_arguments: dict[str, Tensor]) -> None:
        self.node = node
        self.outer_arguments = outer_arguments


def locate(graph: Graph, name: str) -> Located | None:
    """The node of this name in views: within a call, names follow that of the call and a colon. None if there is none."""
    opener, where, outer_arguments = Opener(InstantiatedFunctions(graph.library)), graph, dict[str, "Tensor"]()
    while True:
        node = where.find(name)
        if node is not None:
            return Located(node, outer_arguments)
        call = _call_around(where, name, opener)
        if call is None:
            return None
        body = next((body for body in call.bodies() if name.startswith(f"{body.path}/")), None)
        if body is None:
            return None
        outer_arguments = outer_arguments if has_hub(call.node) else {**outer_arguments, **arguments(call.node, body)}
        where, opener = body.graph, opener.inner(body)


def _call_around(graph: Graph, name: str, opener: Opener) -> Call | None:
    """The call in a graph with a body that may have this node."""
    for end in [place for place, letter in enumerate(name) if letter == ":"]:
        node = graph.find(name[:end])
        if node is not None:
            return Call(node, opener)
    return None


def arguments(call: Node, body: CallBody) -> dict[str, Tensor]:
    """The tensors given to a body, by argument."""
    return {arg.name: tensor for arg, tensor in zip(body.args, call.inputs, strict=False)}


def explain(graph: Graph, name: str) -> Explanation | None:
    """The explanation of a node. None if there is no such node.

    Args:
        graph: the graph.
        name: its name in views.
    """
    located = locate(graph, name)
    if located is None:
        return None
    node = located.node
    return Explanation(
        node_def=node_def_text(node.node_def),
        summary=summarize_node_def(node.node_def),
        placement=placement_of(node),
        why=why_of(node, OutsideOrigins(located.outer_arguments)),
        values=values_of(node),
    )
