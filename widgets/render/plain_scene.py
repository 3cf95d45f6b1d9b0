"""The plain scene of a graph: its first nodes by name scopes, where nothing can compile a picture."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from widgets.scene.types import Scene, SceneEdge, SceneGroup, SceneNode
from widgets.scene.words import counted, node_detail, node_kind, op_label, tensor_label

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node

MOST_NODES: Final = 200
"""The nodes that are listed."""


def plain_scene(graph: Graph, title: str, reason: str) -> Scene:
    """The first nodes of a graph, oldest first, with their inputs, in the frames of their scopes.

    Args:
        graph: the graph.
        title: the title of the picture.
        reason: the reason for which there is no picture, for the summary.
    """
    nodes = list(islice(graph.nodes, MOST_NODES))
    scopes: dict[str, SceneGroup] = {}
    for node in nodes:
        _add_scopes(scopes, node.name.rpartition("/")[0])
    total = len(graph)
    listed = "" if total == len(nodes) else f", of which the first {len(nodes)} are listed"
    return Scene(
        title=title,
        nodes=[_box(node) for node in nodes],
        edges=[edge for node in nodes for edge in _edges(node)],
        groups=list(scopes.values()),
        total_nodes=total,
        hidden_nodes=total - len(nodes),
        summary=f"{counted(total, 'node')}{listed}; no picture: {reason}",
    )


def _add_scopes(scopes: dict[str, SceneGroup], path: str) -> None:
    if not path or f"{path}/" in scopes:
        return
    around, _, label = path.rpartition("/")
    _add_scopes(scopes, around)
    scopes[f"{path}/"] = SceneGroup(id=f"{path}/", label=label, parent=f"{around}/" if around else "")


def _box(node: Node) -> SceneNode:
    scope, _, label = node.name.rpartition("/")
    shapes = ", ".join(tensor_label(tensor) for tensor in node.outputs)
    return SceneNode(
        id=node.name,
        label=label,
        kind=node_kind(node),
        op=op_label(node),
        detail=shapes or node_detail(node),
        group=f"{scope}/" if scope else "",
    )


def _edges(node: Node) -> list[SceneEdge]:
    data = [
        SceneEdge(id=f"{tensor.name}->{node.name}:{slot}", source=tensor.node.name, target=node.name)
        for slot, tensor in enumerate(node.inputs)
    ]
    waits = [
        SceneEdge(id=f"^{other.name}->{node.name}", source=other.name, target=node.name, kind="control") for other in node.control_inputs
    ]
    return data + waits
