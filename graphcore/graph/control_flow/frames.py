"""The frames of a graph's loops: the frame of each node, and checks of loops."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from graphcore.attrs import attr_text
from graphcore.errors import GraphError, InternalError, InvalidArgumentError
from graphcore.graph.model.node import Node, Tensor
from graphcore.graph.model.plain_graph import PlainGraph
from graphcore.plumbing import ENTER, EXIT, LOOP_COND

_LOOP_COUNTER: Final = "LoopCounter"


class NodeFrame(NamedTuple):
    """The frame of a node.

    Attributes:
        frame: the Enter node through which the walk entered its frame; None for the root frame. An Enter node is in the frame that
            it opens.
        parent_frame: the same for the surrounding frame.
        frame_name: the frame's name, "" for the root.
    """

    frame: Node | None
    parent_frame: Node | None
    frame_name: str


OUTERMOST: Final = NodeFrame(None, None, "")


def build_control_flow_info(graph: PlainGraph) -> dict[Node, NodeFrame]:
    """The frame of every node with incoming edges.

    `Exit` nodes are in the frame that they leave; the source is its own frame and parent.

    Raises:
        InvalidArgumentError: a node has inputs from different frames, an Enter has no frame name, a loop has two LoopConds.
        InternalError: one frame lies within two others.
    """
    return {graph.source_node: NodeFrame(graph.source_node, graph.source_node, ""), **control_flow_info(graph.op_nodes())}


def control_flow_info(nodes: Iterable[Node], fed: Collection[Tensor] = ()) -> dict[Node, NodeFrame]:
    """The frames of some nodes of a graph, given feeds `fed`.

    Raises:
        InvalidArgumentError, InternalError: as `build_control_flow_info`.
    """
    nodes = sorted(nodes, key=lambda node: node.id)
    roots, successors = _successors(nodes, fed)
    info: dict[Node, NodeFrame] = {}
    came_from: dict[Node, Node] = {}
    for root in roots:
        info[root] = _entered(root, OUTERMOST)
    ready = deque(roots)
    while ready:
        node = ready.popleft()
        inside = info[node]
        if node.op in EXIT:
            inside = frame_around(info, inside)
        for successor in successors.get(node, ()):
            frame = info.get(successor)
            if frame is None:
                info[successor] = _entered(successor, inside)
                came_from[successor] = node
                ready.append(successor)
                continue
            there = frame_around(info, frame) if successor.op in ENTER else frame
            if there.frame_name != inside.frame_name:
                raise _different_frames(successor, node, inside.frame_name, came_from.get(successor), there.frame_name)
    _validate(nodes, info)
    return info


def _successors(nodes: list[Node], fed: Collection[Tensor]) -> tuple[list[Node], dict[Node, list[Node]]]:
    roots: list[Node] = []
    successors: dict[Node, list[Node]] = {}
    within = set(nodes)
    for node in nodes:
        producers = [tensor.node for tensor in node.inputs if tensor not in fed]
        producers += node.control_inputs
        producers = [producer for producer in producers if producer in within]
        if not producers:
            roots.append(node)
        for producer in producers:
            successors.setdefault(producer, []).append(node)
    return roots, successors


def frame_name(enter: Node) -> str:
    """The name of the frame of an Enter, "" if it has none."""
    return attr_text(enter.node_def.attr.get("frame_name"))


def _entered(node: Node, around: NodeFrame) -> NodeFrame:
    if node.op not in ENTER:
        return around
    name = frame_name(node)
    if not name:
        raise _located(InvalidArgumentError, f"The Enter {{{{node {node.name}}}}} must have a frame name.", node)
    return NodeFrame(node, around.frame, name)


def frame_around(info: Mapping[Node, NodeFrame], inside: NodeFrame) -> NodeFrame:
    """The frame around `inside`; the root frame around itself."""
    return OUTERMOST if inside.parent_frame is None else info[inside.parent_frame]


def _different_frames(node: Node, one: Node, frame: str, other: Node | None, other_frame: str) -> GraphError:
    name = "_SOURCE" if other is None else other.name
    return _located(
        InvalidArgumentError,
        f"{{{{node {node.name}}}}} has inputs from different frames. The input {{{{node {one.name}}}}} is in frame '{frame}'. "
        f"The input {{{{node {name}}}}} is in frame '{other_frame}'.",
        node,
    )


def _validate(nodes: list[Node], info: Mapping[Node, NodeFrame]) -> None:
    parents: dict[str, str] = {}
    conditions: dict[str, Node] = {}
    for node in nodes:
        frame = info.get(node)
        if frame is None:
            continue
        name, parent = frame.frame_name, frame_around(info, frame).frame_name
        other_parent = parents.setdefault(name, parent)
        if other_parent != parent:
            raise _located(
                InternalError,
                f'Invalid loop structure: Mismatched parent frames for "{name}": "{parent}" vs "{other_parent}". '
                f"The node giving this error: {{{{node {node.name}}}}}.",
                node,
            )
        if node.op != LOOP_COND:
            continue
        first = conditions.setdefault(name, node)
        if first is not node and _LOOP_COUNTER not in first.name and _LOOP_COUNTER not in node.name:
            raise _located(
                InvalidArgumentError,
                f'Invalid loop structure: Loop "{name}" has more than one LoopCond node: '
                f"{{{{node {node.name}}}}} and {{{{node {first.name}}}}}.",
                node,
            )
        conditions[name] = node


def _located(kind: type[GraphError], text: str, node: Node) -> GraphError:
    return kind.at(node, text)
