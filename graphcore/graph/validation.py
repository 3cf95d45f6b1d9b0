"""Validation of GraphDefs against a registry or a list of ops, without building a graph."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from graphcore.definitions import (
    GraphDef,
    OpDef,
    add_default_attrs,
    check_op_deprecation,
    validate_node_def,
    without_docs,
)
from graphcore.errors import AlreadyExistsError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.registry import OpRegistry, op_registry


def validate_graph_def(graph_def: GraphDef, registry: OpRegistry | None = None) -> None:
    """Check that every node fits its op as written: defaults do not replace missing attrs.

    Args:
        graph_def: the GraphDef; calls of its own functions are checked too.
        registry: the registry of the ops; the global one by default.

    Raises:
        NotFoundError: an op is not registered.
        InvalidArgumentError: a node does not fit its op.
        UnimplementedError: an op is deprecated at the GraphDef's version.
    """
    library = FunctionLibraryDefinition(registry, graph_def.library)
    for node_def in graph_def.node:
        op_def = library.look_up_op_def(node_def.op)
        validate_node_def(node_def, op_def)
        check_op_deprecation(op_def, graph_def.versions.producer)


def validate_graph_def_against_op_registry(graph_def: GraphDef, registry: OpRegistry | None = None) -> None:
    """As `validate_graph_def`, after filling in the ops' defaults."""
    validate_graph_def(add_default_attrs_to_graph_def(graph_def, registry), registry)


def validate_graph_def_against_op_list(graph_def: GraphDef, op_list: Iterable[OpDef]) -> None:
    """As `validate_graph_def_against_op_registry`, with these ops only.

    Raises:
        AlreadyExistsError: an op is in the list twice.
    """
    registry = OpRegistry()
    for op_def in op_list:
        registry.register(op_def)
    validate_graph_def_against_op_registry(graph_def, registry)


def get_op_list_for_validation(registry: OpRegistry | None = None) -> list[OpDef]:
    """The ops of a registry (by default the global one) without their docs, sorted by name."""
    return [without_docs(op_def) for op_def in (registry or op_registry).export(include_internal=False)]


def add_default_attrs_to_graph_def(graph_def: GraphDef, registry: OpRegistry | None = None, node_offset: int = 0) -> GraphDef:
    """The GraphDef with the ops' defaults for missing attrs.

    Args:
        graph_def: the GraphDef.
        registry: the registry of the ops; the global one by default.
        node_offset: the index of the first node to complete.

    Raises:
        NotFoundError: an op is not registered.
    """
    library = FunctionLibraryDefinition(registry, graph_def.library)
    completed = [add_default_attrs(node_def, library.look_up_op_def(node_def.op)) for node_def in graph_def.node[node_offset:]]
    return msgspec.structs.replace(graph_def, node=(*graph_def.node[:node_offset], *completed))


def verify_no_duplicate_node_names(graph_def: GraphDef) -> None:
    """Check that all nodes have different names.

    Raises:
        AlreadyExistsError: two have the same.
    """
    seen: set[str] = set()
    for node_def in graph_def.node:
        if node_def.name in seen:
            raise AlreadyExistsError(f"Node already exists: {node_def.name}", op=node_def.op, node=node_def.name)
        seen.add(node_def.name)
