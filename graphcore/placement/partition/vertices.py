"""Vertices: the nodes of a graph, and those of control loops, with device and location."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from graphcore.attrs import AttrValue
from graphcore.definitions import NodeDef
from graphcore.device_spec import parse_full_name
from graphcore.dtypes import DType
from graphcore.errors import InternalError, InvalidArgumentError
from graphcore.graph.graph import Graph
from graphcore.graph.model.node import Node

_CPU: Final = "CPU"


class Vertex:
    """A node that goes into a partition.

    Attributes:
        node: the node of the graph; None for one of a control loop.
        name, op, attr: those of its NodeDef.
        inputs: the producer and its output for each input.
        controls: the nodes that run before it.
        input_types, output_types: dtypes by slot.
        device: the device that runs it.
        location: the key of its partition.
        on_cpu: True iff the device is a CPU.
    """

    __slots__ = ("attr", "controls", "device", "input_types", "inputs", "location", "name", "node", "on_cpu", "op", "output_types")

    def __init__(self, name: str, op: str, attr: Mapping[str, AttrValue], node: Node | None = None) -> None:
        self.node = node
        self.name = name
        self.op = op
        self.attr = attr
        self.inputs: list[tuple[Vertex, int]] = []
        self.controls: list[Vertex] = []
        self.input_types: tuple[DType, ...] = () if node is None else node.input_types
        self.output_types: tuple[DType, ...] = () if node is None else node.output_types
        self.device = self.location = ""
        self.on_cpu = True

    def __repr__(self) -> str:
        return f"<Vertex {self.name} on {self.device}>"

    def move_to(self, other: Vertex) -> None:
        """Take the place of `other`."""
        self.device, self.location, self.on_cpu = other.device, other.location, other.on_cpu

    def node_def(self, inputs: list[str], more: Mapping[str, AttrValue]) -> NodeDef:
        """Its NodeDef in a partition.

        Args:
            inputs: the inputs there.
            more: further attrs.
        """
        attr = {**self.attr, **more} if more else self.attr
        if self.node is None:
            return NodeDef(self.name, self.op, tuple(inputs), self.device, attr)
        own = self.node.node_def
        return NodeDef(
            self.name, self.op, tuple(inputs), self.device, attr, own.original_node_names, own.original_func_names, own.other_fields
        )


def vertices_of(graph: Graph, node_to_loc: Callable[[Node], str] | None) -> dict[Node, Vertex]:
    """The vertex of each node, in the order of ids.

    Args:
        node_to_loc: the key of a node's partition; its assigned device by default. It is also the device of nodes without one.

    Raises:
        InvalidArgumentError: a node lacks an input.
        InternalError: a node has no device.
    """
    devices: dict[str, bool] = {}
    vertices: dict[Node, Vertex] = {}
    for node in graph.nodes:
        vertex = vertices[node] = Vertex(node.name, node.op, node.attr, node)
        location = node.assigned_device if node_to_loc is None else node_to_loc(node)
        device = node.assigned_device or location
        if device not in devices:
            devices[device] = _is_cpu(device, node)
        vertex.device, vertex.location, vertex.on_cpu = device, location, devices[device]
    for node, vertex in vertices.items():
        missing = sum(tensor.node not in vertices for tensor in node.inputs)
        if missing:
            raise InvalidArgumentError.at(node, f"Incomplete graph, missing {missing} inputs for {node.name}")
        vertex.inputs = [(vertices[tensor.node], tensor.index) for tensor in node.inputs]
        if node.control_inputs:
            vertex.controls = [vertices[control] for control in node.control_inputs if control in vertices]
    return vertices


def _is_cpu(device: str, node: Node) -> bool:
    try:
        spec = parse_full_name(device)
    except InvalidArgumentError:
        spec = None
    if spec is None or not device:
        raise InternalError.at(node, f"Malformed assigned device '{device}'")
    return spec.type in (None, _CPU)
