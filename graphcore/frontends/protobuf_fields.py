"""Fields of protobuf messages, read without their schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphcore.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator


def fields_of(data: bytes, what: str) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message in order: the number, and an integer or the bytes of the value.

    Raises:
        InvalidArgumentError: the message is damaged.
    """
    place = 0
    while place < len(data):
        tag, place = _varint(data, place, what)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, place = _varint(data, place, what)
            yield number, value
            continue
        size = {1: 8, 5: 4}.get(wire, -1)
        if wire == 2:
            size, place = _varint(data, place, what)
        if size < 0 or size > len(data) - place or not number:
            raise InvalidArgumentError(f"{what} is damaged: field {number} at byte {place:,} of {len(data):,}")
        yield number, data[place : place + size]
        place += size


def _varint(data: bytes, place: int, what: str) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            break
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & ((1 << 64) - 1), place
    raise InvalidArgumentError(f"{what} is damaged: a number at byte {place:,} has no end")
