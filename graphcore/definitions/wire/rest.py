"""Keeps the parts of a message that have no place in a definition, unknown fields included."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from google.protobuf.unknown_fields import UnknownFieldSet

_Value = TypeVar("_Value")
_LARGEST_SHARED: Final = 256


def read_each(messages: Iterable[Any], read: Callable[[Any], _Value]) -> list[_Value]:
    """Read messages to values. Equal small messages are read once and share a value.

    Long lists mostly hold few distinct values.

    Args:
        messages: of one kind.
        read: makes an immutable value of a message.
    """
    values_by_data: dict[bytes, _Value] = {}
    values = []
    for message in messages:
        data = message.SerializeToString()
        value = values_by_data.get(data)
        if value is None:
            value = read(message)
            if len(data) < _LARGEST_SHARED:
                values_by_data[data] = value
        values.append(value)
    return values


def has_unknown_fields(message: Any) -> bool:
    """True iff the message itself has fields unknown to the schema. Nested messages are ignored."""
    return len(UnknownFieldSet(message)) > 0


def rest_of(message: Any, field_names: frozenset[str], *, has_unknown: bool) -> bytes:
    """The message without its fields in `field_names`, serialised; empty if nothing is left.

    Args:
        message: a protobuf message.
        field_names: the names of the fields that a definition represents.
        has_unknown: False if unknown fields were ruled out, which saves a search for them.
    """
    others = any(field.name not in field_names for field, _ in message.ListFields())
    if not others and not (has_unknown and has_unknown_fields(message)):
        return b""
    return without(message, field_names)


def without(message: Any, field_names: frozenset[str]) -> bytes:
    """The message without these fields, serialised."""
    copy = type(message)()
    copy.CopyFrom(message)
    for name in field_names:
        copy.ClearField(name)
    data: bytes = copy.SerializeToString(deterministic=True)
    return data
