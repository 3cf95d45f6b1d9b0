"""Partitions: one GraphDef for each device, joined by sends and receives."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from graphcore.attrs import AttrValue
from graphcore.definitions import FunctionDefLibrary, GraphDef, NodeDef
from graphcore.dtypes import DType, float32
from graphcore.graph.graph import Graph
from graphcore.graph.model.node import CONTROL_SLOT, Edge, Node
from graphcore.placement.partition.control_loops import ControlLoops, Crossing, NewName, colocate_control_flow, empty_constant
from graphcore.placement.partition.host_memory import in_host_memory
from graphcore.placement.partition.incarnations import GetIncarnation, first_incarnation, set_incarnation
from graphcore.placement.partition.start_times import START_TIME
from graphcore.placement.partition.traces import with_traces
from graphcore.placement.partition.vertices import Vertex, vertices_of
from graphcore.plumbing import ENTER
from graphcore.support.gc_pause import paused_collector


class PartitionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Further options of `partition_graph`.

    Args:
        tensor_name: the name under which the value of an edge is sent; `edge_<id>_<source>` by default.
        should_cast: the type in which the value of an edge between devices is sent; its own by default.
        host_memory: True for a port in host memory: called with node, slot, and `is_output`; used for devices other than CPUs.
        start_times: the start time of nodes without attr `_start_time`. With it, all nodes of the partitions have the attr.
        stack_traces: add the line of user code that made each node to the debug info of its partition.
    """

    tensor_name: Callable[[Edge], str] | None = None
    should_cast: Callable[[Edge], DType] | None = None
    host_memory: Callable[..., bool] = in_host_memory
    start_times: Callable[[Node], int] | None = None
    stack_traces: bool = False


_NO_OPTIONS: Final = PartitionOptions()


def partition_graph(
    graph: Graph,
    node_to_loc: Callable[[Node], str] | None = None,
    new_name: NewName | None = None,
    get_incarnation: GetIncarnation = first_incarnation,
    options: PartitionOptions = _NO_OPTIONS,
) -> dict[str, GraphDef]:
    """Split a graph into partitions that exchange values by `_Send` and `_Recv` nodes. The graph is unchanged.

    A value is sent once to each partition that needs it. Control edges between devices carry an empty constant. In a loop across devices
    each device gets a control loop, by which it learns whether there is another iteration. Switch and Exit nodes go to the device of
    their input, Enter and NextIteration nodes to that of their first consumer.

    Args:
        graph: the graph.
        node_to_loc: the key of a node's partition; by default the device that is assigned to it. It is also the device of a node
            that has none.
        new_name: makes an unused name from a prefix; `<prefix>/_<number>` by default.
        get_incarnation: the incarnation of a device, by its name; 1 by default.
        options: further options.

    Returns:
        The partitions by key, in the order of their first nodes.

    Raises:
        InvalidArgumentError: a node lacks an input, or a loop across devices has no LoopCond.
        InternalError: a node has no device.
    """
    with graph.lock, paused_collector():
        graph.settle()
        return _Partitioner(graph, node_to_loc, new_name or _numbered(graph), get_incarnation, options).partitions()


def _numbered(graph: Graph) -> NewName:
    numbers = itertools.count()

    def new_name(prefix: str) -> str:
        return next(name for number in numbers if (name := f"{prefix}/_{number}") not in graph.node_store.by_name)

    return new_name


class _Draft:
    """A node of a partition, whose inputs are still being collected."""

    __slots__ = ("attr", "device", "inputs", "name", "op", "vertex")

    def __init__(self, name: str, op: str, device: str, attr: dict[str, AttrValue], inputs: list[str]) -> None:
        self.name = name
        self.op = op
        self.device = device
        self.attr = attr
        self.inputs = inputs
        self.vertex: Vertex | None = None

    def node_def(self) -> NodeDef:
        if self.vertex is not None:
            return self.vertex.node_def(self.inputs, self.attr)
        return NodeDef(self.name, self.op, tuple(self.inputs), self.device, self.attr)


class _Arrival:
    """A value that arrives in a partition.

    Attributes:
        recv: the node that receives it.
        last: the node that consumers read: `recv`, or a Cast or Identity behind it.
    """

    __slots__ = ("last", "recv")

    def __init__(self, recv: _Draft, last: _Draft) -> None:
        self.recv = recv
        self.last = last

    def needed_at(self, time: int) -> None:
        """Set its start time to the earliest start time of its consumers."""
        start = self.recv.attr.get(START_TIME, time)
        assert isinstance(start, int)
        self.recv.attr[START_TIME] = self.last.attr[START_TIME] = min(start, time)


class _Partitioner:
    def __init__(
        self,
        graph: Graph,
        node_to_loc: Callable[[Node], str] | None,
        new_name: NewName,
        get_incarnation: GetIncarnation,
        options: PartitionOptions,
    ) -> None:
        self.graph = graph
        self.new_name = new_name
        self.get_incarnation = get_incarnation
        self.options = options
        self.of_node = vertices_of(graph, node_to_loc)
        colocate_control_flow(graph, self.of_node)
        self.vertices = list(self.of_node.values())
        self.loops = self._control_loops()
        self.drafts: dict[str, list[_Draft]] = {}
        self.arrivals: dict[tuple[Vertex, int, str, bool], _Arrival] = {}

    def partitions(self) -> dict[str, GraphDef]:
        for vertex in self.vertices:
            self._add(vertex)
        library = self.graph.library
        partitions = {}
        for location, drafts in self.drafts.items():
            nodes = tuple([draft.node_def() for draft in drafts])
            functions = library.reachable_definitions(nodes).to_proto() if len(library) else FunctionDefLibrary()
            partition = set_incarnation(GraphDef(node=nodes, versions=self.graph.versions, library=functions), self.get_incarnation)
            partitions[location] = with_traces(partition, self.graph) if self.options.stack_traces else partition
        return partitions

    def _control_loops(self) -> ControlLoops | None:
        if not any(vertex.op in ENTER for vertex in self.vertices):
            return None
        crossings = [
            Crossing(self._edge_number(src, index, dst, slot), src, dst)
            for dst in self.vertices
            for src, index, slot in _in_edges(dst)
            if src.device != dst.device
        ]
        if not crossings:
            return None
        loops = ControlLoops(self.graph, self.of_node, self.new_name)
        loops.add(crossings)
        self.vertices += loops.added
        return loops

    def _edge_number(self, src: Vertex, index: int, dst: Vertex, slot: int) -> int:
        edge = self._edge(src, index, dst, slot)
        if edge is not None:
            return edge.id
        assert self.loops is not None
        return self.loops.edges[src, dst, slot]

    def _edge(self, src: Vertex, index: int, dst: Vertex, slot: int) -> Edge | None:
        """The edge of the graph; None for one to a node of a control loop."""
        if src.node is None or dst.node is None:
            return None
        return self.graph.edge_store.find(src.node, dst.node, (index, slot))

    # ---- the edges of one node -------------------------------------------------------------------------------------

    def _add(self, dst: Vertex) -> None:
        """Add a node with its inputs, and the transfers that these need."""
        inputs: list[str] = []
        draft = self._draft(dst.location, dst.name, dst.op, dst.device, {}, inputs)
        draft.vertex = dst
        if self.options.start_times is not None:
            draft.attr[START_TIME] = self._start_time(dst)
        location, is_split, from_elsewhere = dst.location, False, 0
        merge: Vertex | None = None
        local: list[str] = []  # what a receive of a variable's value waits for
        late: list[_Draft] = []
        for src, index, slot in _in_edges(dst):
            on_device = src.location == location and (dst.on_cpu or not self._changes_memory(src, index, dst, slot))
            if src.device != dst.device and self.loops is not None:
                merge = self.loops.merge_for(dst)
                from_elsewhere += merge is not None
            if on_device:
                inputs.append(_text(src.name, index))
                if index == CONTROL_SLOT or not src.output_types[index].is_ref:
                    local.append(src.name)
                continue
            is_split = True
            is_variable = index != CONTROL_SLOT and src.output_types[index].is_ref
            key = (src, index, location, dst.on_cpu or self._on_host(dst, slot, is_output=False))
            arrival = None if is_variable else self.arrivals.get(key)
            if arrival is None:
                arrival = self._transfer(src, index, dst, slot, merge)
                from_elsewhere -= merge is not None
            if is_variable:
                late.append(arrival.recv)
            else:
                self.arrivals[key] = arrival
                local.append(arrival.last.name)
            if self.options.start_times is not None:
                arrival.needed_at(self._start_time(dst))
            inputs.append(_text(arrival.last.name, CONTROL_SLOT if index == CONTROL_SLOT else 0))
        for recv in late:
            recv.inputs += [_text(name, CONTROL_SLOT) for name in local]
        if merge is not None and from_elsewhere > 0:
            inputs.append(_text(merge.name, CONTROL_SLOT))
        if is_split:  # identical control inputs are one
            inputs[len(dst.inputs) :] = dict.fromkeys(inputs[len(dst.inputs) :])

    def _on_host(self, vertex: Vertex, slot: int, *, is_output: bool) -> bool:
        if vertex.on_cpu or slot == CONTROL_SLOT or vertex.node is None:
            return False
        return self.options.host_memory(vertex.node, slot, is_output=is_output)

    def _changes_memory(self, src: Vertex, index: int, dst: Vertex, slot: int) -> bool:
        """True for an edge of one device between host memory and device memory."""
        if index == CONTROL_SLOT or src.device != dst.device:
            return False
        return self._on_host(src, index, is_output=True) != self._on_host(dst, slot, is_output=False)

    def _start_time(self, vertex: Vertex) -> int:
        own = vertex.attr.get(START_TIME)
        if isinstance(own, int):
            return own
        assert self.options.start_times is not None
        return 0 if vertex.node is None else self.options.start_times(vertex.node)

    # ---- transfers -------------------------------------------------------------------------------------------------

    def _transfer(self, src: Vertex, index: int, dst: Vertex, slot: int, merge: Vertex | None) -> _Arrival:
        """Send a value, and receive it."""
        is_control = index == CONTROL_SLOT
        edge = self._edge(src, index, dst, slot)
        options, crosses = self.options, src.location != dst.location
        dtype = float32 if is_control else dst.input_types[slot].base
        sent = dtype if edge is None or options.should_cast is None or not crosses else options.should_cast(edge)
        text = _text(src.name, index)
        if is_control:
            text = self._new(f"{src.name}/ctrl", "Const", src, empty_constant(), [text]).name
        attrs = self._ends(src, dst, edge, self._edge_number(src, index, dst, slot))
        in_host = self._on_host(src, index, is_output=True)
        if sent is not dtype:
            text = self._cast(src, src, text, dtype, sent, in_host=in_host).name
        send = self._new(src.name, "_HostSend" if in_host else "_Send", src, {"T": sent, **attrs}, [text])
        in_host = self._on_host(dst, slot, is_output=False)
        recv = self._new(src.name, "_HostRecv" if in_host else "_Recv", dst, {"tensor_type": sent, **attrs}, [])
        if options.start_times is not None:
            del recv.attr[START_TIME]
        if not crosses:
            recv.inputs.append(_text(send.name, CONTROL_SLOT))  # a receive that began first would wait for nothing
        elif merge is not None:
            recv.inputs.append(_text(merge.name, CONTROL_SLOT))
        last = recv
        if sent is not dtype:
            last = self._cast(src, dst, recv.name, sent, dtype, in_host=in_host)
        elif is_control:
            last = self._new(src.name, "Identity", dst, {"T": float32}, [recv.name])
        return _Arrival(recv, last)

    def _ends(self, src: Vertex, dst: Vertex, edge: Edge | None, number: int) -> dict[str, AttrValue]:
        named = self.options.tensor_name
        name = f"edge_{number}_{src.name}" if named is None or edge is None else named(edge)
        return {
            "tensor_name": name.encode(),
            "send_device": src.device.encode(),
            "send_device_incarnation": self.get_incarnation(src.device),
            "recv_device": dst.device.encode(),
            "client_terminated": False,
            "_src": src.name.encode(),
            "_dst": dst.name.encode(),
        }

    def _cast(self, src: Vertex, at: Vertex, text: str, held: DType, wanted: DType, *, in_host: bool) -> _Draft:
        attrs: dict[str, AttrValue] = {"SrcT": held, "DstT": wanted, "Truncate": wanted.text == "bfloat16"}
        return self._new(src.name, "_HostCast" if in_host else "Cast", at, attrs, [text])

    def _new(self, prefix: str, op: str, at: Vertex, attr: Mapping[str, AttrValue], inputs: list[str]) -> _Draft:
        """Add a node to the partition of `at`; its time is that of `at`."""
        attrs = dict(attr)
        if self.options.start_times is not None:
            attrs[START_TIME] = self._start_time(at)
        return self._draft(at.location, self.new_name(prefix), op, at.device, attrs, inputs)

    def _draft(self, location: str, name: str, op: str, device: str, attr: dict[str, AttrValue], inputs: list[str]) -> _Draft:
        draft = _Draft(name, op, device, attr, inputs)
        self.drafts.setdefault(location, []).append(draft)
        return draft


def _in_edges(dst: Vertex) -> list[tuple[Vertex, int, int]]:
    """The producer, its output and the slot for each data input, then for each control input."""
    edges = [(src, index, slot) for slot, (src, index) in enumerate(dst.inputs)]
    if dst.controls:
        edges += [(src, CONTROL_SLOT, CONTROL_SLOT) for src in dst.controls]
    return edges


def _text(name: str, index: int) -> str:
    return name if index == 0 else f"^{name}" if index == CONTROL_SLOT else f"{name}:{index}"
