"""The message classes of the wire form, made from the .proto files beside this module.

The files are read here, not compiled by protoc: code that protoc makes works with one or two major versions of the protobuf runtime only.
The classes are in a separate descriptor pool, so that TensorFlow can be loaded into the same process.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE: Final = "graphloupe"
_FILES: Final = ("tensor.proto", "node.proto", "graph.proto", "saved_model.proto", "checkpoint.proto", "event.proto", "example.proto")
_TOKEN: Final = re.compile(r'//[^\n]*|"[^"]*"|[\w.]+|[{}<>=;,]')
_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final = {
    "double": _Field.TYPE_DOUBLE,
    "float": _Field.TYPE_FLOAT,
    "int64": _Field.TYPE_INT64,
    "uint64": _Field.TYPE_UINT64,
    "int32": _Field.TYPE_INT32,
    "fixed32": _Field.TYPE_FIXED32,
    "fixed64": _Field.TYPE_FIXED64,
    "bool": _Field.TYPE_BOOL,
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
    "uint32": _Field.TYPE_UINT32,
}


class _Reader:
    """Reads the subset of the proto language in these files: messages, enums, maps, oneofs and fields."""

    def __init__(self, name: str, text: str) -> None:
        self.file = descriptor_pb2.FileDescriptorProto(name=f"{_PACKAGE}/{name}", package=_PACKAGE, syntax="proto3")
        self.tokens = [token for token in _TOKEN.findall(text) if not token.startswith("//")]
        self.tokens.reverse()

    def take(self, *expected: str) -> str:
        token: str = self.tokens.pop()
        if expected and token not in expected:
            raise ValueError(f"{self.file.name}: expected {' or '.join(expected)}, found {token}")
        return token

    def read(self) -> descriptor_pb2.FileDescriptorProto:
        while self.tokens:
            match self.take("syntax", "package", "import", "message", "enum"):
                case "message":
                    self.message(self.file.message_type.add())
                case "enum":
                    self.enum(self.file.enum_type.add())
                case "import":
                    self.file.dependency.append(f"{_PACKAGE}/{self.take()[1:-1]}")
                    self.take(";")
                case _:
                    while self.take() != ";":
                        pass
        return self.file

    def enum(self, enum: descriptor_pb2.EnumDescriptorProto) -> None:
        enum.name = self.take()
        self.take("{")
        while (name := self.take()) != "}":
            self.take("=")
            enum.value.add(name=name, number=int(self.take()))
            self.take(";")

    def message(self, message: descriptor_pb2.DescriptorProto) -> None:
        message.name = self.take()
        self.take("{")
        while (word := self.take()) != "}":
            match word:
                case "message":
                    self.message(message.nested_type.add())
                case "enum":
                    self.enum(message.enum_type.add())
                case "oneof":
                    self.oneof(message)
                case "map":
                    self.map_field(message)
                case "repeated":
                    self.field(message, self.take(), _Field.LABEL_REPEATED)
                case _:
                    self.field(message, word, _Field.LABEL_OPTIONAL)

    def oneof(self, message: descriptor_pb2.DescriptorProto) -> None:
        index = len(message.oneof_decl)
        message.oneof_decl.add(name=self.take())
        self.take("{")
        while (word := self.take()) != "}":
            self.field(message, word, _Field.LABEL_OPTIONAL).oneof_index = index

    def map_field(self, message: descriptor_pb2.DescriptorProto) -> None:
        self.take("<")
        key = self.take()
        self.take(",")
        value = self.take()
        self.take(">")
        field = self.field(message, "", _Field.LABEL_REPEATED)
        entry = message.nested_type.add(name=field.name.title().replace("_", "") + "Entry")
        entry.options.map_entry = True
        _set_type(entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL), key)
        _set_type(entry.field.add(name="value", number=2, label=_Field.LABEL_OPTIONAL), value)
        field.type_name = entry.name

    def field(
        self, message: descriptor_pb2.DescriptorProto, kind: str, label: descriptor_pb2.FieldDescriptorProto.Label.ValueType
    ) -> descriptor_pb2.FieldDescriptorProto:
        name = self.take()
        self.take("=")
        field = message.field.add(name=name, number=int(self.take()), label=label)
        self.take(";")
        _set_type(field, kind)
        return field


def _set_type(field: descriptor_pb2.FieldDescriptorProto, kind: str) -> None:
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        # The pool resolves the name to a message or an enum.
        field.type_name = kind


def _load() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    folder = files(__package__)
    for name in _FILES:
        pool.Add(_Reader(name, (folder / name).read_text(encoding="utf-8")).read())
    return pool


POOL: Final = _load()
"""The descriptors of all these messages."""


def message_class(name: str) -> Any:
    """The class of message `name`. Its fields are known to the protobuf runtime, not to a type checker."""
    message = message_factory.GetMessageClass(POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
    message.__module__ = __name__  # protobuf gives it none, and `help` of modules that have it would fail
    return message


AttrValue: Final = message_class("AttrValue")
BundleEntry: Final = message_class("BundleEntryProto")
BundleHeader: Final = message_class("BundleHeaderProto")
CheckpointState: Final = message_class("CheckpointState")
Event: Final = message_class("Event")
Example: Final = message_class("Example")
FunctionDef: Final = message_class("FunctionDef")
GraphDef: Final = message_class("GraphDef")
HistogramProto: Final = message_class("HistogramProto")
MetaGraphDef: Final = message_class("MetaGraphDef")
NodeDef: Final = message_class("NodeDef")
OpDef: Final = message_class("OpDef")
OpList: Final = message_class("OpList")
ReaderBaseState: Final = message_class("ReaderBaseState")
RunMetadata: Final = message_class("RunMetadata")
SavedModel: Final = message_class("SavedModel")
Summary: Final = message_class("Summary")
QueueRunnerDef: Final = message_class("QueueRunnerDef")
SummaryMetadata: Final = message_class("SummaryMetadata")
TensorProto: Final = message_class("TensorProto")
VariableDef: Final = message_class("VariableDef")
