"""Files of a graph with its saver and collections, as they lie beside checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from google.protobuf.message import DecodeError

from graphcore.definitions.types import GraphDef
from graphcore.definitions.wire import schema
from graphcore.definitions.wire.files import graph_def_to_bytes, may_have_unknown, reason, to_text
from graphcore.definitions.wire.graphs import read_graph_def
from graphcore.definitions.wire.saved_model import (
    SCHEMA_VERSION,
    Signature,
    parse_meta_graph,
    parse_saved_model,
    read_signature,
    write_signature,
)
from graphcore.errors import InvalidArgumentError

_KINDS: Final = {"node_list": str, "bytes_list": bytes, "int64_list": int, "float_list": float}


class SaverDef(msgspec.Struct, frozen=True):
    """The nodes of a saver by their names, and what it keeps.

    Attributes:
        filename_tensor_name: the tensor that takes the path of a checkpoint.
        save_tensor_name: the tensor that saves when it is fetched.
        restore_op_name: the node that restores when it runs.
        max_to_keep: the number of checkpoints that are kept, 0 for all.
        keep_checkpoint_every_n_hours: one checkpoint of each such time is always kept.
        version: of the format; 2 is the only one here.
    """

    filename_tensor_name: str = ""
    save_tensor_name: str = ""
    restore_op_name: str = ""
    max_to_keep: int = 5
    sharded: bool = False
    keep_checkpoint_every_n_hours: float = 10000.0
    version: int = 2


class VariableDef(msgspec.Struct, frozen=True):
    """The nodes of a variable by their names: itself, its initializer, its value and its initial value."""

    variable_name: str
    initializer_name: str
    snapshot_name: str
    initial_value_name: str
    is_resource: bool = False
    trainable: bool = True


class QueueRunnerDef(msgspec.Struct, frozen=True):
    """The nodes of a queue runner by name, and the status codes that mean the end of the data."""

    queue_name: str
    enqueue_op_name: tuple[str, ...] = ()
    close_op_name: str = ""
    cancel_op_name: str = ""
    queue_closed_exception_types: tuple[int, ...] = ()


class FullMetaGraph(msgspec.Struct, frozen=True):
    """A graph with its saver, None without, and its collections: names of nodes, bytes, ints or floats.

    In a SavedModel it also has tags, and signatures by name.
    """

    graph_def: GraphDef
    saver_def: SaverDef | None = None
    collections: Mapping[str, list[Any]] = {}
    tags: tuple[str, ...] = ()
    signature_def: Mapping[str, Signature] = {}


def meta_graph_to_bytes(meta_graph: FullMetaGraph, *, text: bool = False) -> bytes:
    """A MetaGraphDef, binary or as protobuf text.

    Raises:
        InvalidArgumentError: a value cannot be represented in a file.
    """
    message = _written(meta_graph)
    if text:
        return to_text(message).encode()
    data: bytes = message.SerializeToString(deterministic=True)
    return data


def saved_model_to_bytes(meta_graphs: Sequence[FullMetaGraph], *, text: bool = False) -> bytes:
    """A SavedModel of these graphs, binary or as protobuf text.

    Raises:
        InvalidArgumentError: a value cannot be represented in a file.
    """
    message = schema.SavedModel(saved_model_schema_version=SCHEMA_VERSION)
    for meta_graph in meta_graphs:
        message.meta_graphs.add().CopyFrom(_written(meta_graph))
    if text:
        return to_text(message).encode()
    data: bytes = message.SerializeToString(deterministic=True)
    return data


def saved_model_from_bytes(data: bytes) -> list[FullMetaGraph]:
    """The graphs of a SavedModel, binary or text.

    Raises:
        InvalidArgumentError: it is none.
    """
    return [_read(message) for message in parse_saved_model(data).meta_graphs]


def _written(meta_graph: FullMetaGraph) -> Any:
    message = schema.MetaGraphDef()
    message.meta_info_def.SetInParent()
    message.meta_info_def.tags.extend(meta_graph.tags)
    for name, signature in meta_graph.signature_def.items():
        write_signature(signature, message.signature_def[name])
    message.graph_def.ParseFromString(graph_def_to_bytes(meta_graph.graph_def))
    if meta_graph.saver_def is not None:
        for name, value in msgspec.structs.asdict(meta_graph.saver_def).items():
            setattr(message.saver_def, name, value)
    for key, values in meta_graph.collections.items():
        kind = next(kind for kind, wanted in _KINDS.items() if isinstance(values[0], wanted))
        getattr(message.collection_def[key], kind).value.extend(values)
    return message


def meta_graph_from_bytes(data: bytes) -> FullMetaGraph:
    """The graph in a MetaGraphDef, binary or text.

    Raises:
        InvalidArgumentError: it is none.
    """
    return _read(parse_meta_graph(data))


def _read(message: Any) -> FullMetaGraph:
    graph = message.graph_def
    saver = None
    if message.HasField("saver_def"):
        saver = SaverDef(**{name: getattr(message.saver_def, name) for name in SaverDef.__struct_fields__})
    collections = {}
    for key, held in sorted(message.collection_def.items()):
        kind = held.WhichOneof("kind")
        if kind is not None:
            collections[key] = list(getattr(held, kind).value)
    graph_def = read_graph_def(graph, has_unknown=may_have_unknown(graph, graph.SerializeToString()))
    signatures = {name: read_signature(signature) for name, signature in sorted(message.signature_def.items())}
    return FullMetaGraph(graph_def, saver, collections, tuple(message.meta_info_def.tags), signatures)


def variable_def_to_bytes(variable: VariableDef) -> bytes:
    """A VariableDef as the collections of variables hold it."""
    data: bytes = schema.VariableDef(**msgspec.structs.asdict(variable)).SerializeToString(deterministic=True)
    return data


def variable_def_from_bytes(data: bytes) -> VariableDef:
    """The VariableDef in an item of a collection of variables.

    Raises:
        InvalidArgumentError: it is none.
    """
    message = _parsed(schema.VariableDef(), data, "variables")
    return VariableDef(**{name: getattr(message, name) for name in VariableDef.__struct_fields__})


def queue_runner_def_to_bytes(runner: QueueRunnerDef) -> bytes:
    """A QueueRunnerDef as the collection of queue runners holds it."""
    data: bytes = schema.QueueRunnerDef(**msgspec.structs.asdict(runner)).SerializeToString(deterministic=True)
    return data


def queue_runner_def_from_bytes(data: bytes) -> QueueRunnerDef:
    """The QueueRunnerDef in an item of the collection of queue runners.

    Raises:
        InvalidArgumentError: it is none.
    """
    message = _parsed(schema.QueueRunnerDef(), data, "queue runners")
    return QueueRunnerDef(
        message.queue_name,
        tuple(message.enqueue_op_name),
        message.close_op_name,
        message.cancel_op_name,
        tuple(message.queue_closed_exception_types),
    )


def _parsed(message: Any, data: bytes, collection: str) -> Any:
    """The message with the fields of an item of a collection."""
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise InvalidArgumentError(f"A collection of {collection} holds {len(data)} bytes that describe none: {reason(error)}") from None
    return message
