"""Conversion of a graph with argument and return nodes to a function definition."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from graphcore.definitions import ArgDef, FunctionDef, NodeDef, OpDef, name_ranges_for_node
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Graph, Node, Tensor, topological_order
from graphcore.plumbing import ARG, RETVAL, USER_NAME

_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9_]")


def graph_to_function_def(graph: Graph, name: str, control_rets: Sequence[Node] = ()) -> FunctionDef:
    """The function with body `graph`: `_Arg` nodes are its arguments, `_Retval` nodes its returns.

    Args:
        graph: the body.
        name: the function's name.
        control_rets: nodes that run before the function returns.

    Raises:
        InvalidArgumentError: arguments or returns are not numbered from 0 on.
    """
    nodes = topological_order(graph)
    args = _numbered(nodes, ARG)
    rets = _numbered(nodes, RETVAL)
    arg_names = _unique([normalized_name(node.name) for node in args])
    names = dict(zip(args, arg_names, strict=True))
    body = [node for node in nodes if node.op not in ARG and node.op not in RETVAL]
    taken = set(arg_names)
    for node in body:
        names[node] = _free(node.name, taken)
    ret_names = _unique([normalized_name(node.name.removesuffix("_RetVal")) for node in rets])
    signature = OpDef(
        name=name,
        input_arg=tuple([_arg(label, node.outputs[0]) for label, node in zip(arg_names, args, strict=True)]),
        output_arg=tuple([_arg(label, node.inputs[0]) for label, node in zip(ret_names, rets, strict=True)]),
        control_output=tuple([names[node] for node in control_rets]),
        is_stateful=any(node.op_def.is_stateful for node in body),
    )
    return FunctionDef(
        signature=signature,
        node_def=tuple([_body_node(node, names) for node in body]),
        ret={label: _source(node.inputs[0], names) for label, node in zip(ret_names, rets, strict=True)},
        control_ret={names[node]: names[node] for node in control_rets},
        arg_attr={index: {USER_NAME: node.node_def.attr[USER_NAME]} for index, node in enumerate(args) if USER_NAME in node.node_def.attr},
    )


def normalized_name(name: str) -> str:
    """Convert `name` to a valid argument name: small letters, digits and `_`, beginning with a letter."""
    plain = _NOT_IN_NAMES.sub("_", name.lower())
    return plain if plain[:1].isalpha() else f"arg{plain if plain.startswith('_') else '_' + plain}"


def _numbered(nodes: list[Node], ops: frozenset[str]) -> list[Node]:
    nodes_by_index = {str(node.get_attr("index")): node for node in nodes if node.op in ops}
    count = sum(node.op in ops for node in nodes)
    if sorted(nodes_by_index) != sorted(str(index) for index in range(count)):
        raise InvalidArgumentError(f"Required {max(ops)} nodes numbered from 0 on, got the indices {', '.join(sorted(nodes_by_index))}")
    return [nodes_by_index[str(index)] for index in range(count)]


def _unique(names: list[str]) -> list[str]:
    taken: set[str] = set()
    return [_free(name, taken) for name in names]


def _free(name: str, taken: set[str]) -> str:
    candidate, count = name, 0
    while candidate in taken:
        count += 1
        candidate = f"{name}_{count}"
    taken.add(candidate)
    return candidate


def _arg(name: str, tensor: Tensor) -> ArgDef:
    return ArgDef(name=name, type=tensor.dtype.base, is_ref=tensor.dtype.is_ref)


def _body_node(node: Node, names: dict[Node, str]) -> NodeDef:
    inputs = [_source(tensor, names) for tensor in node.inputs] + [f"^{names[control]}" for control in node.control_inputs]
    return msgspec.structs.replace(node.node_def, name=names[node], input=tuple(inputs))


def _source(tensor: Tensor, names: dict[Node, str]) -> str:
    node = tensor.node
    if node.op in ARG:
        return names[node]
    _, outputs = name_ranges_for_node(node.node_def, node.op_def)
    for output, (start, end) in outputs.items():
        if start <= tensor.index < end:
            return f"{names[node]}:{output}:{tensor.index - start}"
    raise InvalidArgumentError(f"Node '{node.name}' has no output {tensor.index}", node=node.name)
