"""Resolution of the inputs in a NodeDef to tensors and nodes of a graph."""

from __future__ import annotations

from graphcore.definitions import NodeDef
from graphcore.errors import InvalidArgumentError
from graphcore.graph.model.node import Node, Tensor
from graphcore.graph.model.plain_graph import PlainGraph
from graphcore.graph.model.tensor_id import parse_tensor_name


def resolve_inputs(graph: PlainGraph, node_def: NodeDef) -> tuple[list[Tensor], list[Node]]:
    """The data inputs and the control inputs.

    Raises:
        InvalidArgumentError: one is not in the graph, or data comes after control.
    """
    inputs: list[Tensor] = []
    controls: list[Node] = []
    for text in node_def.input:
        if text.startswith("^"):
            controls.append(_input_node(graph, node_def, text[1:], text))
            continue
        if controls:
            raise InvalidArgumentError(
                f"Node '{node_def.name}': Control dependencies must come after regular dependencies", op=node_def.op, node=node_def.name
            )
        name, index = parse_tensor_name(text) if ":" in text else (text, 0)
        producer = _input_node(graph, node_def, name, text)
        if index >= len(producer.outputs):
            raise InvalidArgumentError(
                f"Node '{node_def.name}': Connecting to invalid output {index} of source node {name} which has "
                f"{len(producer.outputs)} outputs",
                op=node_def.op,
                node=node_def.name,
            )
        inputs.append(producer.outputs[index])
    return inputs, controls


def _input_node(graph: PlainGraph, node_def: NodeDef, name: str, text: str) -> Node:
    node = graph.find(name)
    if node is None:
        raise InvalidArgumentError(f"Node '{node_def.name}': Unknown input node '{text}'", op=node_def.op, node=node_def.name)
    return node
