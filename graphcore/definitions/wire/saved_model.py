"""Graph files: GraphDef, MetaGraphDef, SavedModel file or directory, recognised by content."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from google.protobuf.message import DecodeError

from graphcore.definitions.types import GraphDef
from graphcore.definitions.wire import schema
from graphcore.definitions.wire.files import (
    graph_def_from_bytes,
    graph_def_to_bytes,
    graph_def_to_json,
    graph_def_to_text,
    looks_binary,
    may_have_unknown,
    reason,
    to_text,
)
from graphcore.definitions.wire.graphs import read_graph_def
from graphcore.definitions.wire.tensors import read_shape, write_shape
from graphcore.definitions.wire.text_cursor import TextError
from graphcore.definitions.wire.text_reader import read_text
from graphcore.dtypes import DType, dtype_from_wire
from graphcore.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from graphcore.shapes import Shape
from graphcore.support.files import checked_path, file_bytes, file_errors, is_file, is_folder, is_there
from graphcore.support.replacing import write_file

_OP_NAME: Final = re.compile(r"[A-Za-z_][\w.>/-]*", re.ASCII)
_FIRST_FIELD: Final = re.compile(r"(?:\s|#[^\n]*)*(\w+)", re.ASCII)
_SAVED_MODEL_FIELDS: Final = frozenset({"saved_model_schema_version", "meta_graphs"})
_META_GRAPH_FIELDS: Final = frozenset({"meta_info_def", "graph_def", "saver_def", "collection_def", "signature_def"})
_LOOKED_AT: Final = 1 << 16
_SCHEMA_VERSION_TAG: Final = b"\x08"
SCHEMA_VERSION: Final = 1
INIT_SIGNATURE: Final = "__saved_model_init_op"
"""The signature of the node that runs after restoring."""
_INIT_COLLECTIONS: Final = ("saved_model_main_op", "legacy_init_op")
VARIABLES: Final = "variables"
"""The folder of the checkpoint in a SavedModel directory, and the checkpoint's name."""
MODEL_FILE: Final = "saved_model.pb"
MODEL_TEXT_FILE: Final = "saved_model.pbtxt"


class TensorInfo(msgspec.Struct, frozen=True):
    """One input or output of a signature: the tensor's name in the graph, its type and shape."""

    name: str
    dtype: DType
    shape: Shape


class Signature(msgspec.Struct, frozen=True):
    """A way to call a saved model: tensors by argument name."""

    inputs: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]
    method_name: str = ""


class MetaGraph(msgspec.Struct, frozen=True):
    """One graph of a saved model with its tags and signatures. Nodes with equal attrs share them, so these must not be changed.

    `restores` are the tensor that takes the path of a checkpoint, and the node that restores it; () without a saver. `saves` is the tensor that
    saves, "" without one. `init_ops` are the nodes that run after that.
    """

    graph_def: GraphDef
    tags: tuple[str, ...] = ()
    signatures: Mapping[str, Signature] = {}
    tensorflow_version: str = ""
    restores: tuple[str, ...] = ()
    saves: str = ""
    init_ops: tuple[str, ...] = ()


def read_meta_graphs(data: bytes) -> tuple[MetaGraph, ...]:
    """The graphs in a file's content; a plain GraphDef is one graph without tags and signatures.

    Args:
        data: a SavedModel, MetaGraphDef or GraphDef, binary or text, or a GraphDef as JSON.

    Raises:
        InvalidArgumentError: it is none of these, or truncated.
    """
    first = "" if looks_binary(data) else _first_field(data)
    if data.startswith(_SCHEMA_VERSION_TAG) or first in _SAVED_MODEL_FIELDS:
        message = parse_saved_model(data)
        return tuple(_read_meta_graph(meta_graph, data) for meta_graph in message.meta_graphs)
    if first in _META_GRAPH_FIELDS or (not first and _is_binary_meta_graph(data)):
        return (_read_meta_graph(_parse(schema.MetaGraphDef(), data, "MetaGraphDef"), data),)
    return (MetaGraph(graph_def_from_bytes(data, shares_attrs=True)),)


def _first_field(data: bytes) -> str:
    match = _FIRST_FIELD.match(data[:_LOOKED_AT].decode(errors="replace"))
    return match.group(1) if match is not None else ""


def _is_binary_meta_graph(data: bytes) -> bool:
    """True iff the data is a MetaGraphDef: its field 1, read as a node, has no op name."""
    if not looks_binary(data):
        return False
    graph = schema.GraphDef()
    try:
        graph.ParseFromString(data)
    except DecodeError:
        return _has_graph(data)
    return bool(graph.node) and _OP_NAME.fullmatch(graph.node[0].op) is None and _has_graph(data)


def _has_graph(data: bytes) -> bool:
    message = schema.MetaGraphDef()
    try:
        message.ParseFromString(data)
    except DecodeError:
        return False
    return bool(message.HasField("meta_info_def") and message.HasField("graph_def"))


def _parse(message: Any, data: bytes, what: str) -> Any:
    try:
        if looks_binary(data):
            message.ParseFromString(data)
        else:
            # The schema contains only the fields of these messages that are read here.
            read_text(data.decode(), message, allow_unknown_field=True)
    except TextError as error:
        raise InvalidArgumentError(f"Not a {what}: protobuf text at line:column {reason(error)}") from None
    except (DecodeError, ValueError) as error:
        raise InvalidArgumentError(f"Not a {what}: {reason(error)} in {len(data)} bytes") from None
    return message


def parse_meta_graph(data: bytes) -> Any:
    """A MetaGraphDef message, from its binary or its text form.

    Raises:
        InvalidArgumentError: it is none.
    """
    return _parse(schema.MetaGraphDef(), data, "MetaGraphDef")


def _read_meta_graph(message: Any, data: bytes) -> MetaGraph:
    graph = message.graph_def
    has_unknown = looks_binary(data) and may_have_unknown(graph, graph.SerializeToString())
    info = message.meta_info_def
    saver = message.saver_def
    keys = [key for key in _INIT_COLLECTIONS if key in message.collection_def]
    collections = [node for key in keys for node in message.collection_def[key].node_list.value]
    outputs = message.signature_def[INIT_SIGNATURE].outputs if INIT_SIGNATURE in message.signature_def else {}
    return MetaGraph(
        graph_def=read_graph_def(graph, has_unknown=has_unknown, shares_attrs=True),
        tags=tuple(info.tags),
        signatures={name: read_signature(signature) for name, signature in sorted(message.signature_def.items())},
        tensorflow_version=info.tensorflow_version,
        restores=(saver.filename_tensor_name, saver.restore_op_name) if saver.restore_op_name else (),
        saves=saver.save_tensor_name,
        init_ops=tuple([info.name for _, info in sorted(outputs.items())] or collections[:1]),
    )


def parse_saved_model(data: bytes) -> Any:
    """A SavedModel message, from its binary or its text form.

    Raises:
        InvalidArgumentError: it is none.
    """
    return _parse(schema.SavedModel(), data, "SavedModel")


def read_signature(message: Any) -> Signature:
    """The signature in a SignatureDef message."""
    return Signature(_read_infos(message.inputs), _read_infos(message.outputs), message.method_name)


def _read_infos(infos: Any) -> dict[str, TensorInfo]:
    if not infos:
        return {}
    return {
        name: TensorInfo(info.name or info.coo_sparse.values_tensor_name, dtype_from_wire(info.dtype), read_shape(info.tensor_shape))
        for name, info in sorted(infos.items())
    }


def load_meta_graphs(path: str | Path) -> tuple[MetaGraph, ...]:
    """The graphs in a file, or in a SavedModel directory.

    Args:
        path: a file, or a directory that holds `saved_model.pb` or `saved_model.pbtxt`.

    Raises:
        NotFoundError: nothing is there.
        InvalidArgumentError: it is no graph file.
    """
    place = checked_path(path)
    if is_folder(place):
        model_file = next((place / name for name in (MODEL_FILE, MODEL_TEXT_FILE) if is_file(place / name)), None)
        if model_file is None:
            raise NotFoundError(f"No {MODEL_FILE} or {MODEL_TEXT_FILE} in directory {place}")
        place = model_file
    if not is_there(place):
        raise NotFoundError(f"No such file or directory: {place}")
    data = file_bytes(place)
    try:
        return read_meta_graphs(data)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{place}: {error.message}") from None


def load_meta_graph(path: str | Path, tags: Collection[str] | None = None) -> MetaGraph:
    """The one graph in a file or SavedModel directory, or the one with exactly these tags.

    Raises:
        NotFoundError: there is no file, or no graph with these tags.
        InvalidArgumentError: it is no graph file, or has several graphs and no `tags` were given.
    """
    return chosen_meta_graph(load_meta_graphs(path), path, tags)


def chosen_meta_graph(graphs: tuple[MetaGraph, ...], path: str | Path, tags: Collection[str] | None = None) -> MetaGraph:
    """The one graph among those of a file, or the one with exactly these tags.

    Raises:
        NotFoundError: there is no graph with these tags.
        InvalidArgumentError: there are several graphs and no `tags` were given.
    """
    if tags is None and len(graphs) == 1:
        return graphs[0]
    choices = ", ".join("{" + ", ".join(graph.tags) + "}" for graph in graphs) or "none"
    if tags is None:
        raise InvalidArgumentError(f"{path} holds {len(graphs)} graphs; say which by its tags: {choices}")
    chosen = next((graph for graph in graphs if set(graph.tags) == set(tags)), None)
    if chosen is None:
        raise NotFoundError(f"{path} holds no graph tagged {{{', '.join(sorted(tags))}}}; there are: {choices}")
    return chosen


def load_graph_def(path: str | Path, tags: Collection[str] | None = None) -> GraphDef:
    """The GraphDef in a file (binary, pbtxt, JSON, MetaGraphDef, SavedModel) or SavedModel directory.

    Raises:
        NotFoundError: there is no file, or no graph with these tags.
        InvalidArgumentError: it is no graph file, or has several graphs and no `tags` were given.
    """
    return load_meta_graph(path, tags).graph_def


def save_graph_def(graph_def: GraphDef, path: str | Path) -> None:
    """Write a GraphDef in the form of the suffix: `.pbtxt` and `.txt` are text, `.json` is JSON.

    Any other suffix is binary.

    Raises:
        InvalidArgumentError: a value cannot be represented in a file.
        FailedPreconditionError: the file cannot be written.
    """
    place = checked_path(path)
    if place.suffix in {".pbtxt", ".txt"}:
        data = graph_def_to_text(graph_def).encode()
    elif place.suffix == ".json":
        data = graph_def_to_json(graph_def).encode()
    else:
        data = graph_def_to_bytes(graph_def)
    write_file(place, data)


def meta_graphs_to_bytes(meta_graphs: Collection[MetaGraph], *, text: bool = False) -> bytes:
    """A SavedModel of these graphs, binary or as protobuf text.

    Raises:
        InvalidArgumentError: a value cannot be represented in a file.
    """
    message = schema.SavedModel(saved_model_schema_version=SCHEMA_VERSION)
    for meta_graph in meta_graphs:
        entry = message.meta_graphs.add()
        entry.meta_info_def.tags.extend(meta_graph.tags)
        entry.meta_info_def.tensorflow_version = meta_graph.tensorflow_version
        entry.graph_def.ParseFromString(graph_def_to_bytes(meta_graph.graph_def))
        for name, signature in meta_graph.signatures.items():
            write_signature(signature, entry.signature_def[name])
    if text:
        return to_text(message).encode()
    data: bytes = message.SerializeToString(deterministic=True)
    return data


def write_signature(signature: Signature, message: Any) -> None:
    """Write a signature into a SignatureDef message."""
    message.method_name = signature.method_name
    for infos, ours in ((message.inputs, signature.inputs), (message.outputs, signature.outputs)):
        for name, info in ours.items():
            infos[name].name = info.name
            infos[name].dtype = info.dtype.number
            write_shape(info.shape, infos[name].tensor_shape)


def save_meta_graphs(meta_graphs: Collection[MetaGraph], directory: str | Path, *, text: bool = False) -> None:
    """Write a SavedModel directory; it is created if missing.

    Raises:
        InvalidArgumentError: a value cannot be represented in a file.
        FailedPreconditionError: it cannot be written, or holds a model in the other form, which readers would prefer.
    """
    place = checked_path(directory)
    data = meta_graphs_to_bytes(meta_graphs, text=text)
    name, other = (MODEL_TEXT_FILE, MODEL_FILE) if text else (MODEL_FILE, MODEL_TEXT_FILE)
    if is_there(place / other):
        raise FailedPreconditionError(f"Cannot write {place / name}: {other} is there already, and one directory holds one model")
    with file_errors(place, "make"):
        place.mkdir(parents=True, exist_ok=True)
    write_file(place / name, data)
