"""Small placed graphs, written as text: the device of a node is that of the first letter of its name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

import graphcore as gc
from graphcore.inference.shape_fns.common_shape_fns import unknown_shape
from graphcore.registry import OpRegistry

A: Final = "/job:a/replica:0/task:0/cpu:0"
B: Final = "/job:a/replica:0/task:0/cpu:1"
INCARNATION: Final = 82
_SIGNATURES: Final = (
    "FloatInput() -> (o:float)",
    "BoolInput() -> (o:bool)",
    "Combine(a:float, b:float) -> (o:float)",
    "Two() -> (a:float, b:float)",
    "Variable[shared:string = '']() -> (ref:Ref(float))",
    "Update(ref:Ref(float), value:float) -> (out:Ref(float))",
    "Whole() -> (o:int32)",
    "Sized(x:float, n:int32) -> (o:float)",
)
_BUILT_IN: Final = (
    *("Const", "Cast", "Enter", "RefEnter", "Exit", "Identity", "LoopCond", "Merge", "NextIteration", "NoOp", "Switch"),
    *("_HostCast", "_HostRecv", "_HostSend", "_Recv", "_Send"),
)


def registry() -> OpRegistry:
    """The test ops, with the ops of control flow and transfers."""
    made = OpRegistry()
    for signature in _SIGNATURES:
        made.register(gc.parse_op_signature(signature.replace("''", '""')), unknown_shape)
    for name in _BUILT_IN:
        made.register(gc.op_registry.look_up(name))
    return made


def node(text: str) -> gc.NodeDef:
    """A node from the text form of nodes, such as `B2 = Combine(A1, B1:1) @ A1`."""
    (found,) = gc.parse_nodes(text)
    return found


def graph_of(*texts: str, place: dict[str, str] | None = None, library: gc.FunctionLibraryDefinition | None = None) -> gc.Graph:
    """A placed graph of these nodes.

    Args:
        texts: the nodes, in the text form.
        place: the device for each first letter; A and B by default.
    """
    graph = gc.Graph(library or registry())
    gc.import_graph_def(gc.GraphDef(node=tuple(map(node, texts)), versions=graph.versions), graph, prefix="")
    devices = place or {"A": A, "B": B}
    for made in graph.nodes:
        made.assigned_device = devices[made.name[0]]
    return graph


def partitions(graph: gc.Graph, **options: Any) -> dict[str, gc.GraphDef]:
    """The partitions of a graph, with the incarnation of the examples."""
    if options:
        return gc.partition_graph(graph, get_incarnation=incarnation, options=gc.PartitionOptions(**options))
    return gc.partition_graph(graph, get_incarnation=incarnation)


def incarnation(_device: str) -> int:
    """The incarnation of every device."""
    return INCARNATION


def plain(nodes: Iterable[gc.NodeDef]) -> set[gc.NodeDef]:
    """The nodes without devices and without attrs that begin with `_`."""
    return {
        msgspec.structs.replace(node, device="", attr={name: value for name, value in node.attr.items() if not name.startswith("_")})
        for node in nodes
    }


def same(graph_def: gc.GraphDef, *texts: str) -> bool:
    """True iff the graph has these nodes, whatever their order and the attrs that begin with `_`."""
    return plain(graph_def.node) == plain(map(node, texts))


def send(name: str, tensor: str, edge: str, ends: tuple[str, str] = (A, B), op: str = "_Send", dtype: str = "float") -> str:
    """The text of a send of `tensor` as `edge`."""
    return f"{name} = {op}[T={dtype}, {_ends(edge, ends)}]({tensor})"


def recv(name: str, edge: str, ends: tuple[str, str] = (A, B), controls: str = "", op: str = "_Recv", dtype: str = "float") -> str:
    """The text of a receive of `edge`."""
    return f"{name} = {op}[tensor_type={dtype}, {_ends(edge, ends)}](){controls and f' @ {controls}'}"


def _ends(edge: str, ends: tuple[str, str]) -> str:
    return (
        f'client_terminated=false, recv_device="{ends[1]}", send_device="{ends[0]}", send_device_incarnation={INCARNATION}, '
        f'tensor_name="{edge}"'
    )


def control_constant(name: str, controls: str = "") -> str:
    """The text of the constant that carries a control edge."""
    return f"{name} = Const[dtype=float, value=Tensor<type: float shape: [0] values: >](){controls and f' @ {controls}'}"


def with_op(graph_def: gc.GraphDef, op: str) -> list[gc.NodeDef]:
    """The nodes of that op."""
    return [node for node in graph_def.node if node.op == op]
