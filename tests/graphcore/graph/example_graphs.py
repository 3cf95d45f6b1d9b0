"""Small GraphDefs of a few test ops, written `name=Op(input, ...)`."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

import graphcore as gc
from graphcore.attrs import as_attr_value
from graphcore.definitions import PRODUCER_VERSION, FunctionDefLibrary, GraphDef, NodeDef, VersionDef
from graphcore.graph import ImportOptions, ImportResults, import_graph_def
from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import unknown_shape
from graphcore.registry import OpRegistry
from graphcore.text import parse_op_signature

_NODE: Final = re.compile(r"\s*(?P<name>[^=]*?)\s*=\s*(?P<op>\w*)\s*(?:\((?P<inputs>[^)]*)\))?\s*\Z")


def scalar_shape(c: InferenceContext) -> None:
    for index in range(c.num_outputs):
        c.set_output(index, c.scalar())


def merge_shape(c: InferenceContext) -> None:
    """As in TensorFlow: the shape of input 0 unless another input may differ."""
    first = c.input(0)
    same = all(c.rank(other) >= 0 and str(other) == str(first) for other in c.inputs)
    c.set_output(0, first if same else c.unknown_shape())
    c.set_output(1, c.scalar())


def current_version_shape(c: InferenceContext) -> None:
    if c.graph_def_version != PRODUCER_VERSION:
        raise gc.errors.InvalidArgumentError("Wrong graph version for shape")
    c.set_output(0, c.scalar())


SIGNATURES: Final = {
    "TestParams() -> (o:float)": scalar_shape,
    "TestInput() -> (a:float, b:float)": unknown_shape,
    "TestMul(a:float, b:float) -> (o:float)": unknown_shape,
    "TestInt(a:int32) -> ()": unknown_shape,
    "TwoOutputs(x:float) -> (y:float, z:float)": unknown_shape,
    "OneOutput() -> (a:float)": unknown_shape,
    "OneInput(x:float) -> ()": unknown_shape,
    "OneInputTwoOutputs(x:float) -> (y:float, z:float)": unknown_shape,
    "TestDefaultAttr[default_int:int = 31415]() -> ()": unknown_shape,
    "RequiresCurrentGraphVersion() -> (o:float)": current_version_shape,
    "Vector[size:int]() -> (o:float)": lambda c: c.set_output(0, c.vector(c.make_dim(c.int_attr("size")))),
    "BatchNormWithGlobalNormalization() -> ()": unknown_shape,
    "While[T:list(type), cond:func, body:func](input:T) -> (output:T)": unknown_shape,
    "Source[out_types:list(type)]() -> (o:out_types)": unknown_shape,
    "NoOp() -> ()": unknown_shape,
    "Enter[T:type, frame_name:string = 'f'](data:T) -> (output:T)": lambda c: c.set_output(0, c.input(0)),
    "Merge[T:type, N:int >= 1](inputs:N*T) -> (output:T, value_index:int32)": merge_shape,
    "Less(x:float, y:float) -> (z:bool)": unknown_shape,
    "LoopCond(input:bool) -> (output:bool)": unknown_shape,
    "Switch[T:type](data:T, pred:bool) -> (output_false:T, output_true:T)": unknown_shape,
    "Identity[T:type](input:T) -> (output:T)": lambda c: c.set_output(0, c.input(0)),
    "Add(x:float, y:float) -> (z:float)": unknown_shape,
    "NextIteration[T:type](data:T) -> (output:T)": lambda c: c.set_output(0, c.input(0)),
    "Exit[T:type](data:T) -> (output:T)": lambda c: c.set_output(0, c.input(0)),
}
_DEPRECATED: Final = gc.OpDeprecation(9, "Use tf.nn.batch_normalization()")
FLOATS: Final = frozenset({"Enter", "Merge", "Switch", "Identity", "NextIteration", "Exit"})


def registry() -> OpRegistry:
    """A registry with only the test ops."""
    made = OpRegistry()
    for signature, shape_fn in SIGNATURES.items():
        op_def = parse_op_signature(signature)
        if op_def.name == "BatchNormWithGlobalNormalization":
            op_def = msgspec.structs.replace(op_def, deprecation=_DEPRECATED)
        made.register(op_def, shape_fn)
    return made


def node(text: str, device: str = "", **attrs: Any) -> NodeDef:
    """A node from text, such as `C=TwoOutputs(B:1, ^X)`. Ops of loops carry floats."""
    found = _NODE.match(text)
    assert found is not None, text
    inputs = tuple([item.strip() for item in (found["inputs"] or "").split(",") if item.strip()])
    given = {name: as_attr_value(value) for name, value in attrs.items()}
    if found["op"] in FLOATS:
        given.setdefault("T", gc.float32)
    if found["op"] == "Merge":
        given.setdefault("N", sum(not item.startswith("^") for item in inputs))
    return NodeDef(found["name"], found["op"], inputs, device, given)


def graph_def(*nodes: str | NodeDef, versions: VersionDef | None = None, library: FunctionDefLibrary | None = None) -> GraphDef:
    """A GraphDef, by default of the current version."""
    made = tuple([node(item) if isinstance(item, str) else item for item in nodes])
    return GraphDef(node=made, versions=versions or VersionDef(PRODUCER_VERSION), library=library or FunctionDefLibrary())


def import_into(graph: gc.Graph, *nodes: str | NodeDef, results: ImportResults | None = None, **options: Any) -> None:
    """Import nodes with options."""
    import_graph_def(graph_def(*nodes), graph, ImportOptions(**options), results=results)


LOOP: Final = (
    "enter=Enter(W1)",
    "merge=Merge(enter, next)",
    "less=Less(merge, W1)",
    "cond=LoopCond(less)",
    "switch=Switch(merge, cond)",
    "body=Identity(switch:1)",
    "add=Add(body, W1)",
    "next=NextIteration(add)",
    "exit=Exit(switch)",
)


def has_edge(graph: gc.Graph, src: str, output: int, dst: str, slot: int) -> bool:
    """True iff there is such an edge; both numbers are -1 for a control edge."""
    return graph.nx.has_edge(src, dst, (output, slot))


def inputs_of(graph: gc.Graph, name: str) -> list[str]:
    """The node's inputs, as text."""
    return list(graph.get_operation_by_name(name).node_def.input)


def everything(graph: gc.Graph) -> tuple[Any, ...]:
    """The complete state of a graph, in order, which a failed change must not affect."""
    nodes = [
        (node, node.id, node.node_def, node.inputs, node.control_inputs, node.outputs, [str(h) for h in node.output_handles])
        for node in graph.nodes
    ]
    states = [(node.error, node.input_errors, node.assigned_device, node.source, node.registration, node.like) for node in graph.nodes]
    edges = [str(edge) for edge in graph.edges()]
    adjacency = [(u, list(graph.nx.succ[u].items()), list(graph.nx.pred[u])) for u in graph.nx.nodes]
    counters = (graph.version, graph.num_node_ids, graph.num_edge_ids, graph.versions, graph.refiner.graph_def_version)
    tables = (graph.names.state(), graph.cells.state(), graph.library.to_proto(), {k: list(v) for k, v in graph.collections.items()})
    return nodes, states, edges, adjacency, counters, tables, dict(graph.gradient_records)


def ranks_fit(graph: gc.Graph) -> bool:
    """True iff every edge, except loop back edges and self-loops, goes to a node of higher rank."""
    pairs = [(edge.src, edge.dst) for edge in graph.edges() if edge.src.is_op and edge.dst.is_op and edge.src is not edge.dst]
    return all(src.rank < dst.rank or (src.op, dst.op) == ("NextIteration", "Merge") for src, dst in pairs)


def is_well(node: gc.Node) -> bool:
    """True iff no node has an error."""
    return node.error is None and not node.input_errors
