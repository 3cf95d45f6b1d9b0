"""Keeps what a message says beyond the fields that a value has: fields without a place there, and fields unknown to the schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from google.protobuf.unknown_fields import UnknownFieldSet

_Value = TypeVar("_Value")
_LARGEST_SHARED: Final = 256


def read_each(messages: Iterable[Any], read: Callable[[Any], _Value]) -> list[_Value]:
    """The values of messages. Small messages that are equal give one value, which is read once: long lists mostly hold few values.

    Args:
        messages: of one kind.
        read: makes an immutable value of one, whatever else it was given.
    """
    known: dict[bytes, _Value] = {}
    values = []
    for message in messages:
        data = message.SerializeToString()
        value = known.get(data)
        if value is None:
            value = read(message)
            if len(data) < _LARGEST_SHARED:
                known[data] = value
        values.append(value)
    return values


def has_unknown_fields(message: Any) -> bool:
    """Whether the message has fields unknown to the schema; those of messages in it do not count."""
    return len(UnknownFieldSet(message)) > 0


def rest_of(message: Any, known: frozenset[str], *, has_unknown: bool) -> bytes:
    """The message without its `known` fields, serialised; empty if nothing is left.

    Args:
        message: a protobuf message.
        known: the names of the fields that are read elsewhere.
        has_unknown: whether fields unknown to the schema may be there; looking for them takes time.
    """
    others = any(field.name not in known for field, _ in message.ListFields())
    if not others and not (has_unknown and has_unknown_fields(message)):
        return b""
    return without(message, known)


def without(message: Any, known: frozenset[str]) -> bytes:
    """The message without these fields, serialised."""
    copy = type(message)()
    copy.CopyFrom(message)
    for name in known:
        copy.ClearField(name)
    data: bytes = copy.SerializeToString(deterministic=True)
    return data
