"""Numbers of seven bits a byte, the last byte below 128."""

from __future__ import annotations

from graphcore.errors import InvalidArgumentError

_MOST_BITS = 64


def varint(number: int) -> bytes:
    """The bytes of a number >= 0."""
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def read_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """The number at a position, and the position after it.

    Raises:
        InvalidArgumentError: the data end within it, or it has more than 64 bits.
    """
    number = 0
    for shift in range(0, _MOST_BITS, 7):
        if position >= len(data):
            raise InvalidArgumentError("a number is cut off")
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
    raise InvalidArgumentError("a number has more than 64 bits")
