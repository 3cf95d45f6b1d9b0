"""Messages of CoreML models by the numbers of their fields, and the types of their features."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from graphcore.errors import InvalidArgumentError, ResourceExhaustedError
from graphcore.frontends.foreign import Port
from graphcore.frontends.protobuf_fields import fields_of

if TYPE_CHECKING:
    from graphcore.frontends.foreign import Size

_MAX_TEXT: Final = 2000
MAX_DEPTH: Final = 60
"""The most blocks and models within each other."""
_ARRAYS: Final = {65552: "float16", 65568: "float32", 65600: "float64", 131104: "int32", 131080: "int8"}
_SCALARS: Final = {1: "int64", 2: "double", 3: "string", 6: "dictionary", 7: "sequence", 8: "state"}
_COLOURS: Final = {10: "grayscale", 20: "RGB", 30: "BGR", 40: "grayscale float16"}


class Message:
    """The fields of a message, each as the list of its values."""

    def __init__(self, data: bytes, what: str = "The model") -> None:
        self.fields: dict[int, list[int | bytes]] = {}
        for number, value in fields_of(data, what):
            self.fields.setdefault(number, []).append(value)

    def number(self, field: int, default: int = 0) -> int:
        """An integer."""
        value = self.fields.get(field, [default])[-1]
        return value if isinstance(value, int) else default

    def raw(self, field: int) -> bytes:
        """Bytes, or none."""
        value = self.fields.get(field, [b""])[-1]
        return value if isinstance(value, bytes) else b""

    def text(self, field: int) -> str:
        """A text."""
        return self.raw(field)[:_MAX_TEXT].decode(errors="replace")

    def real(self, field: int) -> float:
        """A float of 4 bytes."""
        data = self.raw(field)
        return float(struct.unpack("<f", data)[0]) if len(data) == 4 else 0.0

    def parts(self, field: int) -> list[bytes]:
        """The values of a repeated message or text."""
        return [value for value in self.fields.get(field, ()) if isinstance(value, bytes)]

    def texts(self, field: int) -> list[str]:
        """The values of a repeated text."""
        return [part[:_MAX_TEXT].decode(errors="replace") for part in self.parts(field)]

    def message(self, field: int) -> Message | None:
        """A message, None if it is left out."""
        return Message(self.raw(field)) if field in self.fields else None

    def numbers(self, field: int) -> list[int]:
        """The values of a repeated integer, packed or not."""
        numbers: list[int] = []
        for value in self.fields.get(field, ()):
            numbers += [value] if isinstance(value, int) else unpacked(value)
        return numbers

    def entries(self, field: int) -> dict[str, bytes]:
        """A map from texts to messages."""
        pairs = [Message(part) for part in self.parts(field)]
        return {pair.text(1): pair.raw(2) for pair in pairs}


def unpacked(data: bytes) -> list[int]:
    """Packed integers, as signed ones.

    Raises:
        InvalidArgumentError: the last has no end.
    """
    numbers, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            value &= (1 << 64) - 1
            numbers.append(value - (1 << 64) if value >> 63 else value)
            value = shift = 0
        elif shift > 63:
            raise InvalidArgumentError("The model is damaged: a packed number is too long")
    return numbers


def check_depth(depth: int) -> None:
    """Limit how deep parts lie within each other.

    Raises:
        ResourceExhaustedError: they are too deep.
    """
    if depth > MAX_DEPTH:
        raise ResourceExhaustedError(f"The model has parts within each other, more than {MAX_DEPTH} deep")


def feature_port(data: bytes) -> Port:
    """An input or output as the description of a model gives it."""
    feature = Message(data)
    kind = feature.message(3) or Message(b"")
    name, doc = feature.text(1), feature.text(2)
    array, image = kind.message(5), kind.message(4)
    if array is not None:
        shape: tuple[Size, ...] | None = tuple(array.numbers(1)) or None
        flexible = "; its shape is flexible" if {21, 31} & array.fields.keys() else ""
        return Port(name, _ARRAYS.get(array.number(2), ""), shape, f"{doc}{flexible}".strip("; "))
    if image is not None:
        colour = _COLOURS.get(image.number(3), "")
        return Port(name, "image", (image.number(2) or None, image.number(1) or None), f"{colour} image {doc}".strip())
    word = next((word for field, word in _SCALARS.items() if field in kind.fields), "")
    return Port(name, word, () if word in {"int64", "double", "string"} else None, doc)
