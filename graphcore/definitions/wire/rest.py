"""Keeps what a message says beyond the fields that a value has: fields without a place there, and fields unknown to the schema."""

from __future__ import annotations

from typing import Any

from google.protobuf.unknown_fields import UnknownFieldSet


def rest_of(message: Any, known: frozenset[str], *, has_unknown: bool) -> bytes:
    """The message without its `known` fields, serialised; empty if nothing is left.

    Args:
        message: a protobuf message.
        known: the names of the fields that are read elsewhere.
        has_unknown: whether fields unknown to the schema may be there; looking for them takes time.
    """
    others = any(field.name not in known for field, _ in message.ListFields())
    if not others and not (has_unknown and len(UnknownFieldSet(message))):
        return b""
    copy = type(message)()
    copy.CopyFrom(message)
    for name in known:
        copy.ClearField(name)
    data: bytes = copy.SerializeToString(deterministic=True)
    return data
