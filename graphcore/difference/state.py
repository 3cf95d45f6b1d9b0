"""States: a graph, or the body of a function, as it is at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from graphcore.definitions import FunctionDef, NodeDef
from graphcore.dtypes import DType
from graphcore.errors import NotFoundError
from graphcore.inference import ShapeHandle
from graphcore.plumbing import NO_OP
from graphcore.registry import OpRegistration, OpRegistry, op_registry
from graphcore.source import SourceLocation
from graphcore.support.gc_pause import paused_collector

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node
    from graphcore.graph.model.gradient_record import GradientRecord


class NodeState(msgspec.Struct, frozen=True, eq=False):
    """A node at one moment.

    Attributes:
        node_def: its definition.
        input_types, output_types: its types, empty if they are unknown.
        shapes: the shape of each output.
        device: the device that the placer assigned, "" before placement.
        error: its error in words, "" if there is none.
        registration: its op, None if that is not registered.
        source: the line of user code that made it.
    """

    node_def: NodeDef
    input_types: tuple[DType, ...] = ()
    output_types: tuple[DType, ...] = ()
    shapes: tuple[ShapeHandle, ...] = ()
    device: str = ""
    error: str = ""
    registration: OpRegistration | None = None
    source: SourceLocation | None = None

    @property
    def op(self) -> str:
        """The op type."""
        return self.node_def.op

    @property
    def attr(self) -> Mapping[str, object]:
        """The attrs."""
        return self.node_def.attr


class GraphState(msgspec.Struct, frozen=True, eq=False):
    """A graph at one moment; later changes of the graph do not reach it.

    Attributes:
        nodes: its nodes by name, in the order in which they were made.
        functions: the functions of its library by name.
        gradients: the registered gradient functions, by the function that they differentiate.
        gradient_records: the origins of its gradient nodes, by name.
        registry: the ops other than functions.
        classes: for a model of another framework, the classes of modules by the paths of scopes.
        title: the name by which users know it, such as that of its file; "" for none.
    """

    nodes: dict[str, NodeState]
    functions: dict[str, FunctionDef]
    gradients: dict[str, str]
    gradient_records: dict[str, GradientRecord]
    registry: OpRegistry
    classes: Mapping[str, str] = {}
    title: str = ""

    def __repr__(self) -> str:
        return f"<gc.GraphState of {len(self.nodes):,} nodes>"


def state_of_graph(graph: Graph, earlier: GraphState | None = None) -> GraphState:
    """The state of a graph now. Nodes derived from changed ones are rebuilt first.

    Args:
        graph: the graph.
        earlier: an earlier state of it; the states of unchanged nodes are taken from there.
    """
    graph.settle()
    earlier_nodes = {} if earlier is None else earlier.nodes
    with graph.lock, paused_collector():
        library = graph.library.to_proto()
        return GraphState(
            nodes={node.name: _node_state(node, earlier_nodes.get(node.name)) for node in graph.op_nodes()},
            functions={function.name: function for function in library.function},
            gradients={entry.function_name: entry.gradient_func for entry in library.gradient},
            gradient_records=dict(graph.gradient_records),
            registry=graph.registry,
        )


def _node_state(node: Node, earlier: NodeState | None) -> NodeState:
    definition = node.node_def
    if (
        earlier is not None
        and earlier.node_def is definition
        and earlier.shapes is node.output_handles
        and earlier.device == node.assigned_device
        and not (earlier.error or node.error or node.input_errors)
    ):
        return earlier
    return NodeState(
        definition,
        node.input_types,
        node.output_types,
        node.output_handles,
        node.assigned_device,
        _error(node) if node.error is not None or node.input_errors else "",
        node.registration,
        node.source,
    )


def _error(node: Node) -> str:
    """The error of a node; none for a node that is only left by a cell that failed."""
    return (
        node.error.message
        if node.error is not None and not node.error.is_left
        else "; ".join(text for _, text in sorted(node.input_errors.items()))
    )


def state_of_function(function: FunctionDef) -> GraphState:
    """The body of a function as it is defined: arguments, nodes and returns. Types that follow from attrs are unknown."""
    nodes = {}
    for index, arg in enumerate(function.signature.input_arg):
        attrs = {"index": index} | ({} if arg.type is None else {"T": arg.type})
        nodes[arg.name] = _defined(NodeDef(arg.name, "_Arg", (), "", attrs))
    nodes |= {node.name: _defined(node) for node in function.node_def}
    for index, (name, tensor) in enumerate(function.ret.items()):
        nodes[f"return {name}"] = _defined(NodeDef(f"return {name}", "_Retval", (tensor,), "", {"index": index}))
    for name, node in function.control_ret.items():
        nodes[f"return {name}"] = _defined(NodeDef(f"return {name}", NO_OP, (f"^{node}",)))
    return GraphState(nodes, {}, {}, {}, op_registry)


def _defined(node_def: NodeDef) -> NodeState:
    try:
        return NodeState(node_def, registration=op_registry.look_up(node_def.op))
    except NotFoundError:
        return NodeState(node_def)
