"""Ops used by a GraphDef, and conversion for consumers with older ops."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping

import msgspec

from graphcore.attrs import AttrValue
from graphcore.brief import brief
from graphcore.definitions import (
    GraphDef,
    NodeDef,
    OpDef,
    OpDefSource,
    attr_values_equal,
    format_node_for_error,
    summarize_op_def,
    without_docs,
)
from graphcore.errors import InvalidArgumentError
from graphcore.inference.shape_fns.common_shape_fns import unknown_shape
from graphcore.registry import OpRegistry, op_registry

Removed = set[tuple[str, str]]
"""Op and attr of each attr that was removed."""


def ops_used_by_graph(graph_def: GraphDef) -> list[str]:
    """The ops of the nodes and of the bodies of functions reachable from them, sorted by name."""
    functions = {function.name: function for function in graph_def.library.function}
    used: set[str] = set()
    waiting = [graph_def.node]
    while waiting:
        fresh = {node.op for node in waiting.pop()} - used
        used |= fresh
        waiting += [functions[op].node_def for op in fresh if op in functions]
    return sorted(used - functions.keys())


def stripped_op_list(graph_def: GraphDef, registry: OpDefSource | None = None) -> list[OpDef]:
    """The OpDefs needed by a consumer of the GraphDef, without docs, sorted by name.

    Args:
        graph_def: the graph.
        registry: the registry of its ops; the global one by default.

    Raises:
        NotFoundError: an op is not registered.
    """
    source = op_registry if registry is None else registry
    return [without_docs(source.look_up_op_def(op)) for op in ops_used_by_graph(graph_def)]


def remove_new_default_attrs(graph_def: GraphDef, consumer: OpDefSource, producer: OpDefSource) -> tuple[GraphDef, Removed]:
    """Remove attrs with default values that the consumer's ops lack, also in function bodies.

    Args:
        graph_def: a graph made with the producer's ops.
        consumer: the ops of the consumer.
        producer: the ops of the producer.

    Returns:
        The changed GraphDef, and op and name of each removed attr.

    Raises:
        NotFoundError: an op is missing in one of the two.
        InvalidArgumentError: a node has an attr that the producer's op lacks.
    """
    names = {function.name for function in graph_def.library.function}
    removed: Removed = set()

    def strip(nodes: Iterable[NodeDef]) -> tuple[NodeDef, ...]:
        return tuple([node if node.op in names else _stripped(node, consumer, producer, removed) for node in nodes])

    functions = tuple([msgspec.structs.replace(function, node_def=strip(function.node_def)) for function in graph_def.library.function])
    library = msgspec.structs.replace(graph_def.library, function=functions)
    return msgspec.structs.replace(graph_def, node=strip(graph_def.node), library=library), removed


def _stripped(node: NodeDef, consumer: OpDefSource, producer: OpDefSource, removed: Removed) -> NodeDef:
    made_with, read_with = producer.look_up_op_def(node.op), consumer.look_up_op_def(node.op)
    unknown = [name for name in node.attr if not name.startswith("_") and read_with.find_attr(name) is None]
    needless = [name for name in unknown if _has_default(node, name, made_with)]
    if not needless:
        return node
    removed.update((node.op, name) for name in needless)
    kept: Mapping[str, AttrValue] = {name: value for name, value in node.attr.items() if name not in needless}
    return msgspec.structs.replace(node, attr=kept)


def _has_default(node: NodeDef, name: str, made_with: OpDef) -> bool:
    attr = made_with.find_attr(name)
    if attr is None:
        raise InvalidArgumentError(
            f"Attr '{name}' missing in producer's OpDef: {summarize_op_def(made_with)} but found in node: {format_node_for_error(node)}",
            op=node.op,
            node=node.name,
            attr=name,
        )
    return attr.default_value is not None and attr_values_equal(attr.default_value, node.attr[name])


def register_ops(op_defs: Iterable[OpDef], registry: OpRegistry | None = None) -> list[str]:
    """Register ops by signature only: their nodes have unknown shapes and cannot be run.

    Ops that are registered already are unchanged. An inconsistent OpDef is left out, with a warning that gives the reason.

    Args:
        op_defs: the ops.
        registry: the target; the global registry by default.

    Returns:
        The names of the new ops.
    """
    target = op_registry if registry is None else registry
    added: list[str] = []
    for op_def in op_defs:
        if op_def.name in target:
            continue
        try:
            target.register(op_def, unknown_shape)
        except InvalidArgumentError as error:
            warnings.warn(f"The op {brief(op_def.name)} of the list is left out. {error.message.partition('; in OpDef')[0]}", stacklevel=3)
            continue
        added.append(op_def.name)
    return added
