"""Control loops, by which every device of a loop learns whether there is another iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from graphcore.attrs import AttrValue, TensorValue
from graphcore.dtypes import DType, bool_, float32, int32
from graphcore.errors import InvalidArgumentError
from graphcore.graph.control_flow.frames import OUTERMOST, NodeFrame, build_control_flow_info, frame_around
from graphcore.graph.graph import Graph
from graphcore.graph.model.node import Node
from graphcore.graph.traversal import dfs
from graphcore.placement.partition.vertices import Vertex
from graphcore.plumbing import ANY_SWITCH, CONST, ENTER, EXIT, LOOP_COND, NEXT_ITERATION

_PREFIX: Final = "_cloop"
_MOVED: Final = ANY_SWITCH | ENTER | EXIT | NEXT_ITERATION
_PARALLEL: Final = "parallel_iterations"
_USUAL_PARALLEL: Final = 10
_TYPES: Final[dict[str, tuple[tuple[DType, ...], tuple[DType, ...]]]] = {
    "Const": ((), (float32,)),
    "Enter": ((float32,), (float32,)),
    "Merge": ((float32, float32), (float32, int32)),
    "Switch": ((float32, bool_), (float32, float32)),
    "NextIteration": ((float32,), (float32,)),
}

NewName = Callable[[str], str]
"""Makes a name that begins with a prefix."""


def empty_constant() -> dict[str, AttrValue]:
    """The attrs of a constant without elements, which carries control only."""
    return {"dtype": float32, "value": TensorValue([], float32)}


class Crossing(NamedTuple):
    """An edge between devices, with its id."""

    number: int
    src: Vertex
    dst: Vertex


class ControlLoop(NamedTuple):
    """The nodes of a control loop that others are connected to."""

    enter: Vertex
    merge: Vertex


def colocate_control_flow(graph: Graph, vertices: Mapping[Node, Vertex]) -> None:
    """Move control-flow nodes to the devices of their values.

    Switch and Exit go to the device of their input, Enter and NextIteration to that of their first consumer. An Enter of a reference stays.
    """
    if not any(vertex.op in _MOVED for vertex in vertices.values()):
        return

    def visit(node: Node) -> None:
        if node.op in ANY_SWITCH | EXIT and node.inputs:
            vertices[node].move_to(vertices[node.inputs[0].node])
        elif node.op in NEXT_ITERATION or (node.op in ENTER and not node.input_types[0].is_ref):
            consumer = next((edge.dst for edge in node.out_edges() if not edge.is_control_edge), None)
            if consumer is not None and consumer.is_op:
                vertices[node].move_to(vertices[consumer])

    dfs(graph, visit)


class ControlLoops:
    """The control loops of one partitioning.

    Args:
        graph: the graph.
        vertices: the vertices of its nodes.
        new_name: makes the names of new nodes.

    Attributes:
        added: the new nodes.
        edges: the number of each edge to a new node, by source, target and slot.
    """

    def __init__(self, graph: Graph, vertices: Mapping[Node, Vertex], new_name: NewName) -> None:
        self.new_name = new_name
        self.added: list[Vertex] = []
        self.edges: dict[tuple[Vertex, Vertex, int], int] = {}
        self._next_edge = graph.num_edge_ids
        self._info = build_control_flow_info(graph)
        self._frames: dict[Vertex, NodeFrame] = {vertices[node]: frame for node, frame in self._info.items() if node in vertices}
        self._conditions = {frame.frame_name: vertex for vertex, frame in self._frames.items() if vertex.op == LOOP_COND}
        self._loops: dict[tuple[str, str], ControlLoop] = {}

    def add(self, crossings: Iterable[Crossing]) -> None:
        """Add the loops that edges between devices require.

        Raises:
            InvalidArgumentError: a loop has no LoopCond.
        """
        for crossing in sorted(crossings, key=lambda edge: edge.number):
            self._add_loops(self._output_frame(crossing.src), crossing.dst)

    def merge_for(self, dst: Vertex) -> Vertex | None:
        """The Merge of the control loop for the inputs of `dst`; None outside of loops across devices."""
        loop = self._loops.get((self._input_frame(dst).frame_name, dst.device))
        return None if loop is None else loop.merge

    def _output_frame(self, vertex: Vertex) -> NodeFrame:
        frame = self._frames.get(vertex, OUTERMOST)
        return frame_around(self._info, frame) if vertex.op in EXIT else frame

    def _input_frame(self, vertex: Vertex) -> NodeFrame:
        frame = self._frames.get(vertex, OUTERMOST)
        return frame_around(self._info, frame) if vertex.op in ENTER else frame

    def _add_loops(self, frame: NodeFrame, dst: Vertex) -> None:
        """Add a loop for `frame` on the device of `dst`, and those around it, unless there are any."""
        inner: ControlLoop | None = None
        while frame.frame_name:
            existing = self._loops.get((frame.frame_name, dst.device))
            loop = existing or self._new_loop(frame, dst)
            if inner is not None:
                self._connect(loop.merge, inner.enter)
            if existing is not None:
                return
            inner, frame = loop, frame_around(self._info, frame)
        if inner is not None:
            self._connect(self._new(self.new_name(dst.name), CONST, empty_constant(), dst, frame), inner.enter)

    def _new_loop(self, frame: NodeFrame, dst: Vertex) -> ControlLoop:
        condition = self._conditions.get(frame.frame_name)
        if condition is None:
            raise InvalidArgumentError(f"A cross-device loop must have a pivot predicate: {frame.frame_name}", node=dst.name, op=dst.op)
        assert frame.frame is not None
        attrs: dict[str, AttrValue] = {"T": float32}
        entry: dict[str, AttrValue] = {
            "frame_name": frame.frame_name.encode(),
            "is_constant": False,
            _PARALLEL: frame.frame.attr.get(_PARALLEL, _USUAL_PARALLEL),
        }
        names = [_PREFIX + self.new_name(dst.name) for _ in range(4)]
        enter = self._new(names[0], "Enter", {**attrs, **entry}, dst, frame)
        merge = self._new(names[1], "Merge", {**attrs, "N": 2}, dst, frame)
        switch = self._new(names[2], "Switch", attrs, dst, frame)
        next_iteration = self._new(names[3], "NextIteration", attrs, dst, frame)
        self._connect(merge, switch)
        self._connect(condition, switch)
        self._connect(switch, next_iteration, 1)
        self._connect(enter, merge)
        self._connect(next_iteration, merge)
        loop = self._loops[frame.frame_name, dst.device] = ControlLoop(enter, merge)
        return loop

    def _new(self, name: str, op: str, attr: dict[str, AttrValue], dst: Vertex, frame: NodeFrame) -> Vertex:
        vertex = Vertex(name, op, attr)
        vertex.input_types, vertex.output_types = _TYPES[op]
        vertex.move_to(dst)
        self._frames[vertex] = frame
        self.added.append(vertex)
        return vertex

    def _connect(self, src: Vertex, dst: Vertex, output: int = 0) -> None:
        self.edges[src, dst, len(dst.inputs)] = self._next_edge
        self._next_edge += 1
        dst.inputs.append((src, output))
