"""GraphDefs for inference: what outputs need, with constants in the place of variables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from graphcore.attrs import AttrValue
from graphcore.definitions import GraphDef, NodeDef
from graphcore.dtypes import as_dtype, int32
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.graph import Graph, as_constant_array
from graphcore.plumbing import IDENTITY
from graphcore.registry import op_registry
from graphcore.runtime import Session
from graphcore.tf1.variables.variables import Variable

__all__ = ["convert_variables_to_constants", "extract_sub_graph", "remove_training_nodes", "tensor_shape_from_node_def_name"]


def extract_sub_graph(graph_def: GraphDef, dest_nodes: Sequence[str]) -> GraphDef:
    """The nodes that `dest_nodes` need, and they themselves, in their order.

    Args:
        graph_def: the graph.
        dest_nodes: names of nodes.

    Raises:
        InvalidArgumentError: `dest_nodes` is a text, or one of them is not in the graph.
    """
    if isinstance(dest_nodes, str):
        raise InvalidArgumentError(f"dest_nodes must be a list of names, got the text '{dest_nodes}'")
    nodes_by_name = {node.name: node for node in graph_def.node}
    missing = next((name for name in dest_nodes if name not in nodes_by_name), None)
    if missing is not None:
        raise InvalidArgumentError(f"{missing} is not in graph", node=missing)
    needed: set[str] = set()
    waiting = list(dest_nodes)
    while waiting:
        name = waiting.pop()
        if name not in needed and name in nodes_by_name:
            needed.add(name)
            waiting += [_node_of(text) for text in nodes_by_name[name].input]
    return msgspec.structs.replace(graph_def, node=tuple([node for node in graph_def.node if node.name in needed]))


def convert_variables_to_constants(
    sess: Session,
    input_graph_def: GraphDef,
    output_node_names: Sequence[str],
    variable_names_whitelist: Collection[str] | None = None,
    variable_names_blacklist: Collection[str] | None = None,
) -> GraphDef:
    """The part of a graph that outputs need, with its variables' values of a session as constants.

    Args:
        sess: the session.
        input_graph_def: the graph, often `sess.graph.as_graph_def()`.
        output_node_names: names of the nodes that are kept with all that they need.
        variable_names_whitelist: names of the variables to convert; all by default.
        variable_names_blacklist: names of variables to keep.

    Raises:
        InvalidArgumentError: an output is not in the graph.
        NotFoundError: the session's graph has no variable of a name in the graph.
        FailedPreconditionError: a variable has no value yet.
    """
    kept = extract_sub_graph(input_graph_def, output_node_names)
    names = [node.name for node in kept.node if node.op in op_registry and op_registry.look_up(node.op).traits.role == "variable"]
    chosen = [
        name
        for name in names
        if (variable_names_whitelist is None or name in variable_names_whitelist) and name not in (variable_names_blacklist or ())
    ]
    values = sess.run({name: _variable(sess.graph, name) for name in chosen}) if chosen else {}
    nodes: list[NodeDef] = []
    for node in kept.node:
        nodes += _frozen(node, values)
    return msgspec.structs.replace(kept, node=tuple(nodes))


def _variable(graph: Graph, name: str) -> Any:
    for collection in graph.get_all_collection_keys():
        for item in graph.get_collection(collection):
            if isinstance(item, Variable) and item.op.name == name:
                return item
    if graph.find(name) is None:
        raise NotFoundError(f"The session's graph has no variable '{name}'", node=name)
    return graph.get_tensor_by_name(f"{name}:0")


def _frozen(node: NodeDef, values: Mapping[str, Any]) -> list[NodeDef]:
    if node.name in values:
        dtype = as_dtype(node.attr["dtype"])
        value = as_constant_array(values[node.name], dtype, f"variable {node.name}")
        return [NodeDef(node.name, "Const", (), node.device, {"dtype": dtype, "value": value})]
    reads_constant = bool(node.input) and _node_of(node.input[0]) in values
    reads = op_registry.look_up(node.op).traits.reads_variable if reads_constant and node.op in op_registry else ""
    if reads == "whole":
        return [NodeDef(node.name, "Identity", node.input, node.device, {"T": node.attr["dtype"]})]
    if reads == "rows" and "batch_dims" not in node.attr:
        nd_attrs: dict[str, AttrValue] = {"Tparams": node.attr["dtype"], "Tindices": node.attr["Tindices"]}
        return [NodeDef(node.name, "GatherNd", node.input, node.device, nd_attrs)]
    if reads == "rows":
        axis = NodeDef(f"{node.name}/axis", "Const", (), node.device, {"dtype": int32, "value": as_constant_array(0, int32, "axis")})
        data, controls = [text for text in node.input if text[0] != "^"], [text for text in node.input if text[0] == "^"]
        attrs: dict[str, AttrValue] = {
            "Tparams": node.attr["dtype"],
            "Tindices": node.attr["Tindices"],
            "Taxis": int32,
            "batch_dims": node.attr["batch_dims"],
        }
        return [axis, NodeDef(node.name, "GatherV2", (*data, axis.name, *controls), node.device, attrs)]
    return [node]


def remove_training_nodes(input_graph: GraphDef, protected_nodes: Collection[str] | None = None) -> GraphDef:
    """A graph without `Identity` and `CheckNumerics` nodes, whose consumers take their inputs instead.

    Nodes that others wait for, and those of `protected_nodes`, are kept.
    """
    kept = set(protected_nodes or ()) | {text[1:] for node in input_graph.node for text in node.input if text[0] == "^"}
    passed_on = {node.name: node.input[0] for node in input_graph.node if _is_passed_on(node.op) and node.name not in kept}
    passed_on = {name: source for name, source in passed_on.items() if source[0] != "^"}
    needed = {node.name: [text for text in node.input if text[0] == "^"] for node in input_graph.node}

    def source(text: str) -> tuple[str, list[str]]:
        waited: list[str] = []
        while _node_of(text) in passed_on and text[0] != "^":
            waited += needed[_node_of(text)]
            text = passed_on[_node_of(text)]
        return text, waited

    def rewired(inputs: Iterable[str]) -> tuple[str, ...]:
        sources = [source(text) for text in inputs]
        data = [text for text, _ in sources if text[0] != "^"]
        controls = [text for text, _ in sources if text[0] == "^"] + [text for _, waited in sources for text in waited]
        return (*data, *dict.fromkeys(controls))

    nodes = [msgspec.structs.replace(node, input=rewired(node.input)) for node in input_graph.node if node.name not in passed_on]
    return msgspec.structs.replace(input_graph, node=tuple(nodes))


def _is_passed_on(op: str) -> bool:
    return op == IDENTITY or (op in op_registry and op_registry.look_up(op).traits.only_checks)


def tensor_shape_from_node_def_name(graph: Graph, input_name: str) -> Any:
    """The shape of the first output of a node of `graph`."""
    return graph.get_tensor_by_name(f"{_node_of(input_name)}:0").shape


def _node_of(text: str) -> str:
    return text.removeprefix("^").partition(":")[0]
