"""Variables in several parts: the description of a part, and its key in an index."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

import msgspec

from graphcore.brief import brief
from graphcore.errors import InvalidArgumentError

_FULL: Final = -1
_EXTENT: Final = re.compile(r"(\d{1,19}),(\d{1,19})", re.ASCII)
_SIZE: Final = re.compile(r"\d{1,19}", re.ASCII)
_INT64_MAX: Final = (1 << 63) - 1
_ESCAPED: Final = {0: b"\0\xff", 0xFF: b"\xff\0"}


class SliceSpec(msgspec.Struct, frozen=True):
    """A part of a tensor.

    Attributes:
        full_shape: the shape of the whole.
        extents: start and length in each dimension; a length of -1 is all of it.
    """

    full_shape: tuple[int, ...]
    extents: tuple[tuple[int, int], ...]

    def index(self) -> tuple[slice, ...]:
        """The part, as an index of the whole."""
        return tuple(slice(None) if length == _FULL else slice(start, start + length) for start, length in self.extents)

    def shape(self) -> tuple[int, ...]:
        """The shape of the part."""
        return tuple(size if length == _FULL else length for size, (_, length) in zip(self.full_shape, self.extents, strict=True))


def parse_slice_spec(spec: str | bytes) -> SliceSpec | None:
    """The part that a text such as `10 4 0,5:-` describes, None for an empty one, the whole.

    First come the sizes of the whole, then `start,length` for each dimension, or `-` for all of it.

    Raises:
        InvalidArgumentError: it is not such a text, or does not fit into the whole.
    """
    text = spec.decode(errors="backslashreplace") if isinstance(spec, bytes) else spec
    if not text:
        return None
    *sizes, last = text.split(" ")
    extents = []
    for part in last.split(":"):
        match = _EXTENT.fullmatch(part)
        if match is None and part != "-":
            raise _wrong(text)
        extents.append((0, _FULL) if match is None else (int(match[1]), int(match[2])))
    if not all(_SIZE.fullmatch(size) for size in sizes) or len(sizes) != len(extents):
        raise _wrong(text)
    full = tuple(map(int, sizes))
    if math.prod(full) > _INT64_MAX or any(
        size > _INT64_MAX or (length != _FULL and start + length > size) for size, (start, length) in zip(full, extents, strict=True)
    ):
        raise _wrong(text)
    return SliceSpec(full, tuple(extents))


def _wrong(text: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"Required a part of a tensor such as '10 4 0,5:-', or '' for the whole; got {brief(text)}")


def slice_key(name: bytes, extents: Sequence[tuple[int, int]]) -> bytes:
    """The key of a part in an index: an ordered code of name and extents."""
    escaped = b"".join(_ESCAPED.get(byte, bytes([byte])) for byte in name)
    parts = b"".join(_signed(start) + _signed(length) for start, length in extents)
    return b"\0" + escaped + b"\0\1" + _unsigned(len(extents)) + parts


def _unsigned(number: int) -> bytes:
    digits = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return bytes([len(digits)]) + digits


def _signed(number: int) -> bytes:
    """Seven bits for each byte, after as many ones as there are bytes; all bits inverted below 0."""
    magnitude = ~number if number < 0 else number
    size = 1
    while magnitude >= 1 << (7 * size - 1):
        size += 1
    header = ((1 << size) - 1) << (8 * size - size)
    code = (magnitude | header).to_bytes(size, "big")
    return bytes(~byte & 0xFF for byte in code) if number < 0 else code
