"""Descriptions of message fields for the text and JSON readers, computed on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar

from google.protobuf.descriptor import FieldDescriptor

MOST_NESTED: Final = 100
"""The deepest nesting of messages in a file, as in the binary form, so that every read file can be written."""

_KINDS: Final = {
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_UINT64: "uint64",
    FieldDescriptor.TYPE_FIXED64: "uint64",
    FieldDescriptor.TYPE_FLOAT: "float",
    FieldDescriptor.TYPE_DOUBLE: "double",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_ENUM: "enum",
    FieldDescriptor.TYPE_MESSAGE: "message",
}
RANGES: Final = {
    "int32": range(-(2**31), 2**31),
    "int64": range(-(2**63), 2**63),
    "uint32": range(2**32),
    "uint64": range(2**64),
    "enum": range(-(2**31), 2**31),
}
_NOUNS: Final = {
    "float": "a number",
    "double": "a number",
    "bool": "true or false",
    "string": "a string",
    "bytes": "a string",
    "message": "a message in braces",
    **{kind: f"an integer from {allowed[0]} to {allowed[-1]}" for kind, allowed in RANGES.items()},
}

_F = TypeVar("_F", bound="Field")


class Field:
    """One field of a message; the readers extend it with a way to read its values."""

    __slots__ = (
        "default",
        "expected",
        "has_presence",
        "inside",
        "is_map",
        "is_message",
        "json_name",
        "kind",
        "name",
        "number",
        "numbers",
        "oneof",
        "repeated",
    )

    def __init__(self, descriptor: Any) -> None:
        self.name: str = descriptor.name
        self.number: int = descriptor.number
        self.json_name: str = descriptor.json_name
        self.kind = _KINDS[descriptor.type]
        self.is_message = self.kind == "message"
        self.repeated = isinstance(descriptor.default_value, list)
        self.inside: Any = descriptor.message_type
        """The descriptor of the message that it holds, or of the entries of its map."""
        self.is_map: bool = self.repeated and self.is_message and descriptor.message_type.GetOptions().map_entry
        self.has_presence = bool(descriptor.has_presence)
        self.default: Any = descriptor.default_value
        self.oneof: str | None = descriptor.containing_oneof.name if descriptor.containing_oneof else None
        self.expected = _NOUNS[self.kind]
        self.numbers: Mapping[str, int] = {}
        if self.kind == "enum":
            self.numbers = {value.name: value.number for value in descriptor.enum_type.values}
            self.expected = f"a {descriptor.enum_type.name} by its name or number"


class Fields(Generic[_F]):
    """The fields of one kind of message, by the names they have in text and in JSON."""

    __slots__ = ("by_json_name", "by_name", "full_name")

    def __init__(self, descriptor: Any, make: Callable[[Any], _F]) -> None:
        self.full_name: str = descriptor.full_name
        self.by_name = {field.name: make(field) for field in descriptor.fields}
        self.by_json_name = {**self.by_name, **{field.json_name: field for field in self.by_name.values()}}


class Schema(Generic[_F]):
    """The fields of all message types seen so far."""

    def __init__(self, make: Callable[[Any], _F]) -> None:
        self._make = make
        self._known: dict[str, Fields[_F]] = {}

    def fields_of(self, descriptor: Any) -> Fields[_F]:
        """The fields of a message type."""
        fields = self._known.get(descriptor.full_name)
        if fields is None:
            fields = self._known[descriptor.full_name] = Fields(descriptor, self._make)
        return fields
