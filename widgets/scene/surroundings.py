"""The picture of the place of an error: its node, neighbours, and the paths of clashing numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from widgets.scene.neighborhood import path_between
from widgets.scene.outside import OutsideOrigins
from widgets.scene.shapes.clash_lines import chain_steps
from widgets.scene.types import NodeKind, Scene, SceneEdge, SceneNode
from widgets.scene.words import counted, kind_of_op, last_part, node_detail, node_kind, tensor_label

if TYPE_CHECKING:
    from graphcore.errors import GraphError
    from graphcore.graph import Graph, Node, Tensor

MOST_BOXES: Final = 12
"""As many as fit below a cell without scrolling."""
_SHORT: Final = 3
"""The steps of a path that are all shown; of a longer one only the first and the last."""


def surroundings(graph: Graph, error: GraphError) -> Scene | None:
    """The neighbourhood of an error in a graph; None if the error names no place in it.

    A refused node is drawn with the inputs that it was to take.
    """
    node = graph.find(error.node) if error.node else None
    if node is None and not error.inputs:
        return None
    picture = _Picture(graph, error)
    is_about_input = node is not None and error.input != error.node and any(tensor.node is node for tensor in error.inputs)
    if node is None or (error.inputs and not is_about_input):
        picture.add_refused(error.inputs)
    else:
        picture.add_existing(node)
    for number, chain in enumerate(error.chains, 1):
        picture.add_chain(chain, number)
    return picture.scene()


class _Picture:
    def __init__(self, graph: Graph, error: GraphError) -> None:
        self._graph = graph
        self._error = error
        self._center = error.node or error.op
        self._boxes: dict[str, SceneNode] = {}
        self._edges: dict[tuple[str, str], SceneEdge] = {}

    def add_refused(self, inputs: Sequence[Tensor]) -> None:
        """Add a node that could not be made."""
        op = self._error.op
        self._boxes[self._center] = SceneNode(
            id=self._center,
            label=last_part(self._center),
            kind=kind_of_op(op) or "op",
            op=op,
            state="error",
            error=self._error.message,
        )
        for tensor in inputs[: MOST_BOXES - 1]:
            self._add(tensor.node)
            self._connect(tensor.node.name, self._center, tensor_label(tensor))
            if tensor.node.name == self._center:
                self._connect(self._center, self._center, "a circle", error=True)
            elif tensor.node.name == self._error.input:
                self._add_circle(tensor.node)

    def add_existing(self, node: Node) -> None:
        """Add a node of the graph, its inputs, and the nodes that take its outputs."""
        self._add(node)
        for tensor in node.inputs[: MOST_BOXES // 2]:
            self._add(tensor.node)
            self._connect(tensor.node.name, node.name, tensor_label(tensor))
        for consumer, slot in [taker for tensor in node.outputs for taker in self._graph.tensor_consumers(tensor)][: MOST_BOXES // 3]:
            self._add(consumer)
            self._connect(node.name, consumer.name, tensor_label(consumer.inputs[slot]))

    def add_chain(self, chain: Any, number: int) -> None:
        """Add the path of a clashing number to the line that wrote it."""
        steps = list(chain_steps(chain, self._center, OutsideOrigins({})))
        for producer, consumer, note, hidden in _shortened(steps):
            node = self._find(producer)
            if node is None or consumer not in self._boxes or (producer not in self._boxes and len(self._boxes) >= MOST_BOXES):
                continue
            self._add(node, "" if note is None else note[1])
            edge = self._edges.get((producer, consumer))
            label = f"{counted(hidden, 'node')} between" if hidden else "" if edge is None else edge.label
            self._connect(producer, consumer, label, clash=number)

    def scene(self) -> Scene:
        """The picture."""
        boxes = list(self._boxes.values())
        summary = f"{counted(len(boxes), 'box', 'boxes')} around '{self._center}'"
        return Scene(title="the place of the error", nodes=boxes, edges=list(self._edges.values()), total_nodes=len(boxes), summary=summary)

    def _add_circle(self, node: Node) -> None:
        """Mark the way from the existing node of the center's name to an input of the center."""
        names = path_between(self._graph, self._center, node.name) if self._graph.find(self._center) is not None else []
        for consumer in [self._graph.find(name) for name in names[:MOST_BOXES]]:
            for tensor in () if consumer is None or consumer.name == self._center else consumer.inputs:
                if tensor.node.name in names and consumer is not None:
                    self._add(consumer)
                    self._connect(tensor.node.name, consumer.name, tensor_label(tensor), error=True)
        if names:
            self._connect(node.name, self._center, "a circle", error=True)

    def _find(self, name: str) -> Node | None:
        source = next((tensor.node for tensor in self._error.inputs if tensor.node.name == name), None)
        return source or self._graph.find(name)

    def _add(self, node: Node, note: str = "") -> None:
        box = self._boxes.get(node.name)
        if box is None or (note and not box.clash):
            is_center = node.name == self._center
            kind: NodeKind = node_kind(node)
            self._boxes[node.name] = SceneNode(
                id=node.name,
                label=last_part(node.name),
                kind=kind,
                op=node.op,
                detail=node_detail(node),
                clash=note,
                state="error" if is_center else "normal",
                error=self._error.message if is_center else "",
            )

    def _connect(self, source: str, target: str, label: str, *, clash: int = 0, error: bool = False) -> None:
        self._edges[source, target] = SceneEdge(
            id=f"{source}->{target}", source=source, target=target, label=label, clash=clash, error="closes a circle" if error else ""
        )


_Step = tuple[str, str, tuple[str, str] | None]


def _shortened(steps: Sequence[_Step]) -> list[tuple[str, str, tuple[str, str] | None, int]]:
    """The steps of a path, each with the number of nodes left out in it."""
    if len(steps) <= _SHORT:
        return [(*step, 0) for step in steps]
    last = steps[-1]
    return [(*steps[0], 0), (last[0], steps[0][0], last[2], len(steps) - 2)]
