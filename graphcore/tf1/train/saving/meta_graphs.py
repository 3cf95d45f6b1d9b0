"""Writing graphs with their savers and collections to files, and reading them back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from graphcore.api.interchange import import_graph_def
from graphcore.definitions import GraphDef
from graphcore.definitions.wire.meta_graph import (
    FullMetaGraph,
    SaverDef,
    VariableDef,
    meta_graph_from_bytes,
    meta_graph_to_bytes,
    queue_runner_def_to_bytes,
    variable_def_from_bytes,
    variable_def_to_bytes,
)
from graphcore.errors import GraphError, InvalidArgumentError, NotFoundError
from graphcore.graph import Graph, Node, Tensor, get_default_graph
from graphcore.support.files import checked_path, file_bytes
from graphcore.support.replacing import write_file
from graphcore.tf1.train.queue_runners import QueueRunner
from graphcore.tf1.variables.collections import TRAINABLE_VARIABLES, VARIABLES, GraphKeys
from graphcore.tf1.variables.variables import Variable

OF_VARIABLES: Final = frozenset(
    {VARIABLES, TRAINABLE_VARIABLES, "local_variables", "model_variables", "moving_average_variables", "metric_variables"}
)
"""The collections that hold variables in files."""


def whole_meta_graph(graph: Graph, saver_def: SaverDef | None, collections: Sequence[str] | None, *, clear_devices: bool) -> FullMetaGraph:
    """A graph with its saver and collections; items of collections that a file cannot hold are left out."""
    kept = graph.collections if collections is None else {name: graph.get_collection(name) for name in collections}
    written = {name: list(_written(items)) for name, items in kept.items()}
    graph_def = graph.as_graph_def()
    if clear_devices:
        graph_def = _without_devices(graph_def)
    return FullMetaGraph(graph_def, saver_def, {name: items for name, items in written.items() if items})


def _without_devices(graph_def: GraphDef) -> GraphDef:
    nodes = tuple(msgspec.structs.replace(node, device="") for node in graph_def.node)
    return msgspec.structs.replace(graph_def, node=nodes)


def _written(items: Sequence[Any]) -> Iterator[Any]:
    """Items of one kind, the kind of the first that a file can hold."""
    kind = None
    for item in items:
        if isinstance(item, Variable):
            record: Any = variable_def_to_bytes(_described(item))
        elif isinstance(item, QueueRunner):
            record = queue_runner_def_to_bytes(item.to_proto())
        elif isinstance(item, Tensor | Node):
            record = item.name
        elif isinstance(item, str):
            record = item.encode()
        elif isinstance(item, bytes | int | float) and not isinstance(item, bool):
            record = item
        else:
            continue
        if kind is None or type(record) is kind:
            kind = type(record)
            yield record


def _described(variable: Variable) -> VariableDef:
    return VariableDef(
        variable.name,
        variable.initializer.name,
        variable.snapshot.name,
        variable.initial_value.name,
        variable.is_resource,
        any(other is variable for other in variable.graph.get_collection(TRAINABLE_VARIABLES)),
    )


def read_meta_graph(path: str | os.PathLike[str]) -> FullMetaGraph:
    """The graph in a file.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: it is no such file, or damaged.
    """
    try:
        data = file_bytes(path)
    except NotFoundError:
        raise NotFoundError(f"There is no file '{path}' with a graph") from None
    try:
        return meta_graph_from_bytes(data)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{path}: {error.message}") from None


def write_meta_graph(meta_graph: FullMetaGraph, path: str, *, text: bool) -> None:
    """Write a graph to a file.

    Raises:
        FailedPreconditionError: the file cannot be written.
    """
    write_file(checked_path(path), meta_graph_to_bytes(meta_graph, text=text))


def import_whole(meta_graph: FullMetaGraph, scope: str, *, clear_devices: bool) -> None:
    """Add the nodes and the collections of a graph to the default graph."""
    graph_def = _without_devices(meta_graph.graph_def) if clear_devices else meta_graph.graph_def
    import_graph_def(graph_def, prefix=scope, allow_unknown_ops=True)
    graph = get_default_graph()
    start = f"{scope}/" if scope else ""
    for name, items in meta_graph.collections.items():
        for item in items:
            restored = _found(graph, name, item, start)
            if restored is not None:
                graph.add_to_collection(name, restored)


def _found(graph: Graph, collection: str, item: Any, start: str) -> Any:
    """The item of a collection that stands for one in a file, None for one whose nodes are not there."""
    try:
        if isinstance(item, bytes):
            return _described_by(graph, collection, item, start)
        return graph.as_graph_element(start + item) if isinstance(item, str) else item
    except GraphError:  # a file may hold other things in the collections
        return None


def _described_by(graph: Graph, collection: str, data: bytes, start: str) -> Any:
    """The variable or queue runner that bytes describe.

    In collections of a program's own, the bytes themselves if they describe neither.
    """
    if collection in OF_VARIABLES:
        return _variable(graph, data, start)
    if collection == GraphKeys.QUEUE_RUNNERS:
        return QueueRunner(queue_runner_def=data, import_scope=start.removesuffix("/") or None)
    try:
        variable = _variable(graph, data, start)
    except GraphError:  # other data
        return data
    return data if variable is None else variable


def _variable(graph: Graph, data: bytes, start: str) -> Variable | None:
    described = variable_def_from_bytes(data)
    for existing in graph.get_collection(VARIABLES):
        if isinstance(existing, Variable) and existing.name == start + described.variable_name:
            return existing
    names = (described.variable_name, described.snapshot_name, described.initial_value_name)
    elements = [graph.as_graph_element(start + (name or described.variable_name)) for name in names]
    tensors = [element for element in elements if isinstance(element, Tensor)]
    initializer = graph.as_graph_element(start + described.initializer_name)
    if len(tensors) != len(names) or not isinstance(initializer, Node):
        return None
    variable, snapshot, initial_value = tensors
    return Variable.of_nodes(variable, initializer, snapshot, initial_value)
