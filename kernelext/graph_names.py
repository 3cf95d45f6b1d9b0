"""Graphs behind the user's variables, and the node names in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import signature
from types import FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from graphcore.api import Function, ops
from graphcore.api.ops import snake_case
from graphcore.definitions import FunctionDef
from graphcore.difference import GraphDiff, difference_graph
from graphcore.graph import Graph, get_default_graph
from graphcore.placement.placer import last_placer
from graphcore.plumbing import FEEDABLE
from graphcore.registry import op_registry

_WITHOUT_GRAPHS: Final = frozenset({str, int, float, bool, list, tuple, dict, set, type, type(None), FunctionType, ModuleType, np.ndarray})
_SHORT_DEVICES: Final = ("/cpu:0", "/gpu:0")


def graph_of(value: object) -> Graph | None:
    """The graph of `value`: itself, or that of a tensor, node, variable, session or difference."""
    if isinstance(value, Graph):
        return value
    if isinstance(value, GraphDiff):
        return difference_graph(value)
    graph = getattr(value, "graph", None) if type(value).__module__.startswith("graphcore.") else None
    return graph if isinstance(graph, Graph) else None


def seen_graphs(variables: Mapping[str, Any]) -> set[Graph]:
    """The default graph, and those of the user's variables."""
    graphs = {get_default_graph()}
    for value in variables.values():
        # Most of many hundred values are texts and numbers: IPython keeps each cell and its result. Every cell looks at all of them.
        if type(value) not in _WITHOUT_GRAPHS and not isinstance(value, GraphDiff):
            graph = graph_of(value)
            graphs |= {graph} if graph is not None else set()
    return graphs


def beginning(typed: str, words: Iterable[str]) -> list[str]:
    """The words that begin with `typed`."""
    return [word for word in words if word.startswith(typed)]


def own_names(names: Iterable[str]) -> list[str]:
    """The names without those that IPython makes, which begin with `_`."""
    return [name for name in names if not name.startswith("_")]


def can_be_shown(value: object) -> bool:
    """True iff `%graph` can show `value`: it is or has a graph, or is a function."""
    return isinstance(value, Function | FunctionDef | GraphDiff) or graph_of(value) is not None


def matching_names(graph: Graph, typed: str, *, outputs: bool) -> list[str]:
    """Names of nodes (after a colon, of their outputs) that begin with `typed`, in graph order."""
    head, colon, _ = typed.partition(":")
    if outputs and colon:
        node = graph.find(head)
        return [] if node is None else [name for name in (tensor.name for tensor in node.outputs) if name.startswith(typed)]
    return [node.name for node in graph.nodes if node.name.startswith(typed)]


def feedable_names(graph: Graph, typed: str) -> list[str]:
    """Names of tensors to feed that begin with `typed`: placeholders, and others once something is typed."""
    tensors = [tensor.name for node in graph.op_nodes() if node.op in FEEDABLE for tensor in node.outputs]
    others = [tensor.name for node in graph.op_nodes() if node.op not in FEEDABLE for tensor in node.outputs] if typed else []
    return [name for name in (*tensors, *others) if name.startswith(typed)]


def device_names(graph: Graph) -> list[str]:
    """The devices of the last placement of a graph, and the usual short names."""
    placer = last_placer.of(graph)
    placed = [] if placer is None else [device.name for device in placer.options.devices]
    return [*_SHORT_DEVICES, *placed]


def allowed_values(function: str, attr: str | int) -> list[str]:
    """The texts that an attr may have, for a function that has the name of an op.

    Args:
        function: the function, such as `conv2d`.
        attr: the name of the argument, or its number among those of the function in `gc.ops`.
    """
    if function not in dir(ops):
        return []
    op_def = op_registry.look_up_op_def(next(op for op in op_registry.names() if snake_case(op) == function))
    if isinstance(attr, int):
        parameters = list(signature(getattr(ops, function)).parameters)
        attr = parameters[attr] if attr < len(parameters) else ""
    declared = op_def.find_attr(attr)
    values = () if declared is None else declared.allowed_values or ()
    return [value.decode() for value in values if isinstance(value, bytes)]


def function_names(variables: Mapping[str, Any], typed: str) -> list[str]:
    """The functions of the user and of the default graph's library that begin with `typed`."""
    own = [name for name, value in variables.items() if isinstance(value, Function | FunctionDef) and not name.startswith("_")]
    library = [function.name for function in get_default_graph().library]
    return [name for name in dict.fromkeys([*sorted(own), *library]) if name.startswith(typed)]
