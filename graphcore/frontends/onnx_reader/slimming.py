"""ONNX models without their large tensors: the form that is parsed, while tensors stay in the file."""

from __future__ import annotations

import mmap
import secrets
from typing import Final

from graphcore.errors import InvalidArgumentError

SMALL: Final = 1 << 20
"""Models of at most so many bytes are parsed as they are."""
KEPT: Final = 1024
"""Messages of at most so many bytes are kept as they are."""
MAX_DEPTH: Final = 60
"""The deepest graphs within graphs."""
_MESSAGES: Final[dict[str, dict[int, str]]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor"},
    "function": {7: "node"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph"},
}
"""The fields that may hold large tensors, by message."""
_DATA: Final = frozenset({4, 5, 6, 7, 9, 10, 11})
"""The fields of a tensor with its elements."""
_FIXED: Final = {1: 8, 5: 4}


def slimmed(data: mmap.mmap | bytes, small: int = SMALL) -> tuple[bytes, str]:
    """The serialised model without the elements of large tensors, and a key.

    A tensor without its elements has external data under that key: the place and the size of the whole tensor in `data`.

    Args:
        data: the serialised model.
        small: models of at most so many bytes are given as they are.

    Raises:
        InvalidArgumentError: it is damaged.
    """
    if len(data) <= small:
        return bytes(data), ""
    token = secrets.token_hex(8)
    return b"".join(_slim(data, 0, len(data), "model", token, 0)), token


def _slim(data: mmap.mmap | bytes, place: int, end: int, message: str, token: str, depth: int) -> list[bytes]:
    """The parts of a message without large tensors."""
    if depth > MAX_DEPTH:
        raise InvalidArgumentError(f"The ONNX model has graphs that are nested more than {MAX_DEPTH} deep")
    if message == "tensor":
        return _slim_tensor(data, place, end, token)
    inner = _MESSAGES[message]
    parts: list[bytes] = []
    kept = place
    while place < end:
        tag, after = read_varint(data, place, end)
        if tag & 7 != 2:
            place = _skip(data, tag, after, end)
            continue
        size, start = read_varint(data, after, end)
        stop = start + size
        if stop > end:
            raise _cut_off()
        if size > KEPT and tag >> 3 in inner:
            parts.append(data[kept:place])
            shortened = b"".join(_slim(data, start, stop, inner[tag >> 3], token, depth + 1))
            parts += [data[place:after], write_varint(len(shortened)), shortened]
            kept = stop
        place = stop
    parts.append(data[kept:end])
    return parts


def _slim_tensor(data: mmap.mmap | bytes, place: int, end: int, token: str) -> list[bytes]:
    first, parts, dropped = place, [], False
    while place < end:
        tag, after = read_varint(data, place, end)
        stop = _skip(data, tag, after, end)
        if stop > end:
            raise _cut_off()
        if tag >> 3 in _DATA and tag & 7 == 2 and stop - after > KEPT // 2:
            dropped = True
        else:
            parts.append(data[place:stop])
        place = stop
    if not dropped:
        return [data[first:end]]
    value = f"{first}:{end}".encode()
    key = token.encode()
    entry = b"\x0a" + write_varint(len(key)) + key + b"\x12" + write_varint(len(value)) + value
    return [*parts, b"\x6a", write_varint(len(entry)), entry]


def _skip(data: mmap.mmap | bytes, tag: int, after: int, end: int) -> int:
    """The place after a field whose tag ends at `after`."""
    wire = tag & 7
    if not tag >> 3:
        raise InvalidArgumentError("The ONNX model is damaged: there is no field of number 0")
    if wire == 0:
        return read_varint(data, after, end)[1]
    if wire == 2:
        size, start = read_varint(data, after, end)
        return start + size
    if wire in _FIXED:
        return after + _FIXED[wire]
    raise InvalidArgumentError("The ONNX model is damaged: a field of an unknown form")


def read_varint(data: mmap.mmap | bytes, place: int, end: int) -> tuple[int, int]:
    """A number and the place after it.

    Raises:
        InvalidArgumentError: it is cut off or too long.
    """
    value = shift = 0
    while place < end and shift < 64:
        byte = data[place]
        place += 1
        if byte < 128:
            return value | byte << shift, place
        value |= (byte & 127) << shift
        shift += 7
    raise _cut_off()


def write_varint(value: int) -> bytes:
    """The bytes of a number."""
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _cut_off() -> InvalidArgumentError:
    return InvalidArgumentError("The ONNX model is damaged: it is cut off, or a part of it claims more bytes than there are")
