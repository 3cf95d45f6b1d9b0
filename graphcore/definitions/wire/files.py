"""GraphDefs as bytes, protobuf text and JSON, recognised by content."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

from google.protobuf import json_format, text_format
from google.protobuf.message import DecodeError, EncodeError

from graphcore.definitions.types import FunctionDef, GraphDef, NodeDef, OpDef
from graphcore.definitions.wire import schema
from graphcore.definitions.wire.graphs import (
    read_function_def,
    read_graph_def,
    read_node_def,
    write_function_def,
    write_graph_def,
    write_node_def,
)
from graphcore.definitions.wire.json_reader import JsonError, read_json
from graphcore.definitions.wire.ops import read_op_def, write_op_def
from graphcore.definitions.wire.text_cursor import TextError
from graphcore.definitions.wire.text_reader import read_text
from graphcore.errors import InvalidArgumentError, ResourceExhaustedError

_CONTROL: Final = bytes(code for code in range(32) if chr(code) not in "\t\n\v\f\r")
_Value = TypeVar("_Value")


_MAX_REASON: Final = 300
_LOOKED_AT: Final = 4096


def reason(error: Exception) -> str:
    """The reason in a protobuf error, without the whole file that it may quote."""
    text = str(error)
    return text if len(text) <= _MAX_REASON else f"{text[:_MAX_REASON]}..."


def looks_binary(data: bytes) -> bool:
    """True iff `data` looks binary: it has control characters near its beginning, or is not UTF-8.

    A serialised node always has some control characters.
    """
    begin = data[:_LOOKED_AT]
    if begin.translate(None, _CONTROL) != begin:
        return True
    try:
        begin.decode()
    except UnicodeDecodeError as error:
        # A character cut in two at the end is not an error.
        return error.start < len(begin) - 3 or len(data) <= _LOOKED_AT
    return False


def _decoded(data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"Not a {what}: text that is no UTF-8 at byte {error.start}") from None


def parse_message(message: Any, data: bytes, what: str) -> Any:
    """Fill a message from bytes, protobuf text or JSON, detected from `data`.

    Raises:
        InvalidArgumentError: the data is in none of these forms, truncated, or of another message type.
    """
    if looks_binary(data):
        return _parse_binary(message, data, what)
    text = _decoded(data, what)
    if text.lstrip().startswith("{"):
        return _parse_json(message, text, what)
    return _parse_text(message, text, what)


def _parse_binary(message: Any, data: bytes, what: str) -> Any:
    try:
        message.ParseFromString(data)
    except (DecodeError, ValueError) as error:
        raise InvalidArgumentError(f"Not a {what}: {reason(error)} in {len(data)} bytes of binary data") from None
    if data and not message.ListFields():
        raise InvalidArgumentError(f"Not a {what}: {len(data)} bytes of binary data have none of its fields")
    return message


def _parse_text(message: Any, text: str, what: str) -> Any:
    try:
        read_text(text, message)
    except TextError as error:
        raise InvalidArgumentError(f"Not a {what}: protobuf text at line:column {reason(error)}") from None
    return message


def _parse_json(message: Any, text: str, what: str) -> Any:
    try:
        read_json(text, message)
    except JsonError as error:
        raise InvalidArgumentError(f"Not a {what}: JSON: {reason(error)}") from None
    return message


def may_have_unknown(message: Any, data: bytes) -> bool:
    """Quick test for fields unknown to the schema; False saves a search of the whole message.

    Args:
        message: the message parsed from `data`; left unchanged.
        data: in any of the forms.
    """
    if not looks_binary(data):
        return False
    message.DiscardUnknownFields()
    if message.ByteSize() == len(data):
        return False
    message.ParseFromString(data)
    return True


def serialize(message: Any, what: str) -> bytes:
    """The message as bytes, maps sorted by key.

    Raises:
        ResourceExhaustedError: it exceeds 2 GiB, protobuf's limit.
    """
    try:
        data: bytes = message.SerializeToString(deterministic=True)
    except (EncodeError, ValueError) as error:
        raise ResourceExhaustedError(f"The {what} cannot be written: {reason(error)}; a message has at most 2 GiB") from None
    return data


def to_text(message: Any) -> str:
    """The message in protobuf's text form."""
    return str(text_format.MessageToString(message, descriptor_pool=schema.POOL))


def _written(value: _Value, write: Callable[[_Value, Any], None], message: Any, what: str) -> Any:
    try:
        write(value, message)
    except (TypeError, ValueError, UnicodeError) as error:
        raise InvalidArgumentError(f"The {what} cannot be written: {reason(error)}") from None
    return message


def graph_def_from_bytes(data: bytes, *, shares_attrs: bool = False) -> GraphDef:
    """Read a GraphDef.

    Args:
        data: a GraphDef in binary, text or JSON form, detected from the content.
        shares_attrs: nodes with equal attrs have one dict of them, which must not be changed.

    Raises:
        InvalidArgumentError: it is in none of these forms, or truncated.
    """
    message = parse_message(schema.GraphDef(), data, "GraphDef")
    return read_graph_def(message, has_unknown=may_have_unknown(message, data), shares_attrs=shares_attrs)


def graph_def_to_bytes(graph_def: GraphDef) -> bytes:
    """Serialise a GraphDef, deterministically.

    Raises:
        InvalidArgumentError: a value cannot be represented in a file.
        ResourceExhaustedError: it exceeds 2 GiB.
    """
    return serialize(_written(graph_def, write_graph_def, schema.GraphDef(), "GraphDef"), "GraphDef")


def graph_def_to_text(graph_def: GraphDef) -> str:
    """A GraphDef in protobuf's text form (pbtxt). Unknown fields have no name and are left out."""
    return to_text(_written(graph_def, write_graph_def, schema.GraphDef(), "GraphDef"))


def graph_def_to_json(graph_def: GraphDef) -> str:
    """A GraphDef in protobuf's JSON form. Unknown fields have no name and are left out."""
    message = _written(graph_def, write_graph_def, schema.GraphDef(), "GraphDef")
    return str(json_format.MessageToJson(message, descriptor_pool=schema.POOL))


def op_list_from_bytes(data: bytes) -> list[OpDef]:
    """Read the OpDefs of an OpList from bytes, protobuf text or JSON.

    Raises:
        InvalidArgumentError: it is none.
    """
    return list(op_defs_of(data))


def op_defs_of(data: bytes) -> Iterator[OpDef]:
    """Iterate over the OpDefs of an OpList. They are read one by one, so a consumer may stop early.

    Raises:
        InvalidArgumentError: the data is not an OpList.
    """
    message = parse_message(schema.OpList(), data, "OpList")
    return map(functools.partial(read_op_def, has_unknown=may_have_unknown(message, data)), message.op)


def op_list_to_bytes(op_defs: Iterable[OpDef]) -> bytes:
    """Serialise OpDefs as an OpList."""
    message = schema.OpList()
    for op_def in op_defs:
        _written(op_def, write_op_def, message.op.add(), "OpDef")
    return serialize(message, "OpList")


def node_def_from_bytes(data: bytes) -> NodeDef:
    """Read a NodeDef from bytes, protobuf text or JSON.

    Raises:
        InvalidArgumentError: it is none.
    """
    return read_node_def(parse_message(schema.NodeDef(), data, "NodeDef"), has_unknown=True)


def node_def_to_bytes(node_def: NodeDef) -> bytes:
    """Serialise a NodeDef."""
    return serialize(_written(node_def, write_node_def, schema.NodeDef(), "NodeDef"), "NodeDef")


def op_def_from_bytes(data: bytes) -> OpDef:
    """Read an OpDef from bytes, protobuf text or JSON.

    Raises:
        InvalidArgumentError: it is none.
    """
    return read_op_def(parse_message(schema.OpDef(), data, "OpDef"), has_unknown=True)


def op_def_to_bytes(op_def: OpDef) -> bytes:
    """Serialise an OpDef."""
    return serialize(_written(op_def, write_op_def, schema.OpDef(), "OpDef"), "OpDef")


def function_def_from_bytes(data: bytes) -> FunctionDef:
    """Read a FunctionDef from bytes, protobuf text or JSON.

    Raises:
        InvalidArgumentError: it is none.
    """
    return read_function_def(parse_message(schema.FunctionDef(), data, "FunctionDef"), has_unknown=True)


def function_def_to_bytes(function: FunctionDef) -> bytes:
    """Serialise a FunctionDef."""
    return serialize(_written(function, write_function_def, schema.FunctionDef(), "FunctionDef"), "FunctionDef")
